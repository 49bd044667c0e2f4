"""What a dataset says about its own reading: counts, what was mended or left out, what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from medground.datasets.base import Case
from medground.errors import DataError, DatasetError, ImageError
from medground.imaging.reading import image_size
from medground.imaging.regions import Region
from medground.paths import is_file
from medground.tables.join import join

EXAMPLES = 3


@dataclass
class Remark:
    """Something that was mended, left out or missing; it stops nothing, and nothing is left out without one.

    Attributes:
        text: what happened to what, in the plural.
        count: how often; 0: the text says it.
        examples: where, for the first few.
    """

    text: str
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.count == 0:
            return self.text
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.text}: {self.count:,}" + (f" ({', '.join(self.examples)}{more})" if self.examples else "")


@dataclass(frozen=True)
class Problem:
    """Something wrong: what, in which file, row or case, what was expected and what was found."""

    what: str
    where: str
    expected: str | None = None
    got: str | None = None

    def __str__(self) -> str:
        parts = [f"{self.where}: {self.what}"]
        parts += [f"expected {self.expected}"] if self.expected else []
        parts += [f"got {self.got}"] if self.got else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Report:
    """What was read.

    Attributes:
        dataset: its name.
        cases: how many cases it yields.
        missing: ids of cases whose picture is absent.
        counts: name of a count -> value found in the tables, whatever the split and the pictures at hand.
        published: name of a count -> value that the publisher or the literature gives.
        remarks: what was mended, left out or missing, each with a count.
        advice: where pictures were looked for and where they come from, if some are missing.
    """

    dataset: str
    cases: int
    missing: tuple[str, ...]
    counts: Mapping[str, int]
    published: Mapping[str, int]
    remarks: tuple[Remark, ...]
    advice: str | None = None

    def lines(self) -> list[str]:
        """Return the report in plain lines."""
        head = [f"{self.dataset}: {self.cases:,} cases; pictures missing: {len(self.missing):,}"]
        tail = [f"  {self.advice}"] if self.advice else []
        return head + [self._count_line(n) for n in self.counts] + [f"  {r}" for r in self.remarks] + tail

    def _count_line(self, name: str) -> str:
        published = f" (published: {self.published[name]:,})" if name in self.published else ""
        return f"  {name}: {self.counts[name]:,}{published}"


@runtime_checkable
class Reporting(Protocol):
    """A dataset that says what reading it gave."""

    def report(self) -> Report:
        """Return what was read."""


@runtime_checkable
class Checking(Protocol):
    """A dataset that can look for all its problems, where ``cases`` stops at the first."""

    def check(self) -> Sequence[Problem]:
        """Return what is wrong."""


class Ledger:
    """Collects counts, remarks and problems while tables are read.

    Attributes:
        counts: name of a count -> value found in the tables.
        problems: what is wrong in them.
        listed: every picture that the tables name, in the split or not; others are unknown. None: not told.
    """

    def __init__(self) -> None:
        self._remarks: dict[str, Remark] = {}
        self.counts: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.listed: set[str] | None = None

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All remarks, first met first."""
        return tuple(self._remarks.values())

    def remark(self, text: str, *examples: str, count: int | None = None) -> None:
        """Count a remark, once an example unless a count is given; the first examples are kept."""
        entry = self._remarks.setdefault(text, Remark(text))
        entry.count += max(1, len(examples)) if count is None else count
        for example in examples[:EXAMPLES]:
            if len(entry.examples) < EXAMPLES and example not in entry.examples:
                entry.examples.append(example)

    def join(
        self, wanted: Iterable[str], given: Iterable[str], *, what: str, unit: str, larger: bool = False
    ) -> Mapping[str, str]:
        """Join a table to the data by one id each, and remark what did not fit.

        Args:
            wanted: ids of the data.
            given: ids of the table.
            what: the table, as a remark names it.
            unit: what an id stands for, in the plural.
            larger: the table is of more than this data, so that what it has beyond is no remark.

        Returns:
            Wanted id -> id of the table.

        Raises:
            DatasetError: nothing in the table fits.
        """
        joined = join(((one,) for one in wanted), ((one,) for one in given), what=what, unit=unit)
        joined.require_some(DatasetError)
        if joined.missing or joined.rewritten or (joined.extra and not larger):
            self.remark(joined.line(extra=not larger), count=0)
        return {mine[0]: theirs[0] for mine, theirs in joined.matched.items()}

    def problem(self, what: str, where: str, *, expected: object = None, got: object = None) -> None:
        """Keep a problem; :meth:`raise_problems` stops at the first."""
        shown = [None if value is None else str(value) for value in (expected, got)]
        self.problems.append(Problem(what, where, *shown))

    def raise_problems(self) -> None:
        """Stop if there are problems.

        Raises:
            DatasetError: the first problem, and how many more there are.
        """
        if not self.problems:
            return
        first, others = self.problems[0], len(self.problems) - 1
        raise DatasetError(
            first.what + (f" (and {others:,} more)" if others else ""),
            where=first.where,
            expected=first.expected,
            got=first.got,
            fix="correct the file" + ("; `medground validate` lists every problem" if others else ""),
        )


def check_cases(
    cases: Iterable[Case], findings: Iterable[str], seen: Callable[[Case, Region], None] | None = None
) -> list[Problem]:
    """Return what is wrong with cases: absent pictures, labels and regions outside the vocabulary, bad regions.

    Every region is made, so every box meets its frame and every code its size, and a frame that is no square meets the
    header of its picture. No picture is decoded.

    Args:
        cases: of any dataset.
        findings: every class that the dataset may speak of.
        seen: called with every region that could be made.
    """
    known, problems = set(findings), []
    for case in cases:
        if not is_file(case.image):
            problems.append(Problem("a picture is missing", case.case_id, got=str(case.image)))
        strange = dict.fromkeys(name for name in (*case.labels, *case.regions) if name not in known)
        problems += [Problem(f"{name!r} is no finding of this dataset", case.case_id) for name in strange]
        for name in case.regions:
            try:
                region = case.regions[name]
            except DataError as error:
                where = f"{case.case_id}, {name}" + (f": {error.where}" if error.where is not None else "")
                problems.append(Problem(error.what, where, _text(error.expected), _text(error.got)))
            else:
                problems += _turned(case, name, region)
                if seen is not None:
                    seen(case, region)
    return problems


def _turned(case: Case, name: str, region: Region) -> Iterator[Problem]:
    """Yield a problem where width and height of a frame are swapped; a copy may have any size, but not that shape."""
    (width, height), place = region.frame, f"{case.case_id}, {name}"
    if width == height or not is_file(case.image):
        return
    try:
        across, down = image_size(case.image)
    except ImageError as error:
        yield Problem(error.what, f"{place}: {error.where}", _text(error.expected), _text(error.got))
    else:
        if _alike(height, width, across, down) and not _alike(width, height, across, down):
            expected, got = f"the shape of its picture, {across} x {down}", f"{width} x {height}"
            yield Problem("width and height of a frame are swapped", place, expected, got)


def _alike(width: int, height: int, across: int, down: int) -> bool:
    """Return whether two sizes have the same shape, but for the rounding of a resize."""
    return abs(width * down - height * across) <= 0.01 * height * across


def shorten(names: Iterable[str], most: int = EXAMPLES) -> str:
    """Return the first names, and how many more there are.

    >>> shorten(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    listed = list(names)
    rest = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def _text(value: object) -> str | None:
    return None if value is None else str(value)
