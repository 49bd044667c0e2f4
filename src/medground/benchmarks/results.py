"""What a benchmark comes to: cells, verdicts, and the summary that holds them. One type for all benchmarks.

::

    Cell      one number: whose it is, its interval, its floor, and how many items it rests on
    Verdict   one answer to one question about one model, with the cells that it follows from
    Summary   all of these, the tables made for people, and what else the benchmark's own report draws

Reports, tables, the terminal, comparisons and exports read these and nothing else. ``summary.json`` holds a summary
under a format number; whoever reads one that another version wrote is told so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from medground.errors import MetricError, RunError
from medground.metrics.spec import MetricSpec, spec_of

if TYPE_CHECKING:
    import polars as pl

FORMAT = 2
"""Of ``summary.json``: raised whenever a reader of the last one could misread this one."""

Answer = Literal["yes", "in part", "no", "cannot be told", "not asked"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)

Role = Literal["headline", "floor", "twin", "companion", "difference"]
ROLES: tuple[Role, ...] = get_args(Role)

_CHECKED: dict[str, Any] = {"extra": "forbid", "strict": False}
"""How pydantic reads a record: fields that it does not know are errors."""

_NUMBERS = ("value", "low", "high", "sd", "floor", "ceiling")
_COUNTS = ("n", "undefined", "flat", "failed")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of a summary.

    Attributes:
        benchmark: the benchmark's name.
        reading: the protocol, reader or judge under which it was read; empty where there is one way alone.
        model: label of the model. A blind twin is a model of its own, see :class:`ModelFacts`.
        dataset: label of the dataset.
        subset: ``main`` (every item that the model may be scored on), or another choice of items, such as ``shared``
            (those that no model of the run has seen in training).
        method: what stood between model and number: an explainer, say; empty where nothing did.
        scope: of which kind the group is: ``all`` (every item), ``macro`` (mean over classes), ``pairs``, ``class``,
            ``view``, ``size``, ``depth`` and whatever else the benchmark groups by.
        group: which of them: a finding, a view; empty for a scope with one group.
        metric: its name; what it means, in which unit and which way is good, stands in its specification.
        value: the number in the metric's own unit (shares in [0, 1]), or None where it is undefined.
        low: lower end of the interval; None where there is no interval.
        high: upper end.
        sd: population standard deviation over the items, where it is printed.
        n: items that the number rests on.
        undefined: items left out because their value is undefined.
        flat: items used whose map is flat.
        failed: items left out because they could not be read, or were not answered.
        floor: what can be had without looking, on the same items; None where the metric has none.
        ceiling: the best that can be had on the same items, where it is below the metric's own.
        reason: why the value is undefined.
        counts: further counts of the benchmark, by name.

    Raises:
        MetricError: a number is NaN or infinite, or a value and a reason are both there or both missing.

    Example:
        >>> Cell(benchmark="xbench", model="clip", dataset="nih", metric="pointing", value=0.31, n=984).value
        0.31
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CHECKED

    benchmark: str
    model: str
    metric: str
    reading: str = ""
    dataset: str = ""
    subset: str = "main"
    method: str = ""
    scope: str = "all"
    group: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int = 0
    undefined: int = 0
    flat: int = 0
    failed: int = 0
    floor: float | None = None
    ceiling: float | None = None
    reason: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise MetricError(
                    "an undefined number is None with a reason", where=f"{self.metric}.{name}", got=number
                )
        if (self.value is None) != (self.reason is not None):
            raise MetricError(
                "a cell has a value, or a reason for having none",
                where=f"{self.metric} of {self.model} on {self.dataset or 'everything'}",
                got=f"value {self.value}, reason {self.reason!r}",
            )
        if (self.low is None) != (self.high is None):
            raise MetricError("an interval has two ends", where=self.metric, got=f"[{self.low}, {self.high}]")

        if taken := set(self.counts) & {f.name for f in fields(self)}:
            raise MetricError("a further count has a name of its own", where=self.metric, got=", ".join(sorted(taken)))

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other cell of its run."""
        return tuple(getattr(self, name) for name in KEYS)

    @property
    def items(self) -> int:
        """Items that were asked about: used, undefined and failed."""
        return self.n + self.undefined + self.failed


KEYS = ("benchmark", "reading", "model", "dataset", "subset", "method", "scope", "group", "metric")


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that is asked of a model, and that a verdict answers.

    Attributes:
        key: its name in summaries.
        title: as the head of a column: a verb that the model is the subject of.
        asks: the question in full, of any model.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CHECKED

    key: str
    title: str
    asks: str


QUESTIONS: Mapping[str, Question] = {
    q.key: q
    for q in (
        Question(key="recognises", title="Tells present from absent", asks="Does it tell which findings are there?"),
        Question(key="points", title="Points at the finding", asks="Does its map peak on the finding that it names?"),
        Question(key="overlaps", title="Covers the finding", asks="Does its map cover the finding and little else?"),
        Question(
            key="words",
            title="Follows when words change",
            asks="Does a yes turn into a no when the question names another region or finding?",
        ),
        Question(
            key="pixels",
            title="Follows when pixels change",
            asks="Does the answer follow when the finding is painted out of the picture?",
        ),
        Question(
            key="captions",
            title="Prefers the true caption",
            asks="Does it prefer the true caption over one with a single wrong medical term?",
        ),
        Question(
            key="dialogue",
            title="Stays faithful in a dialogue",
            asks="Do its answers over a dialogue agree with what was measured?",
        ),
        Question(
            key="explains",
            title="Explains itself truthfully",
            asks="Does its explanation lie on what its answer depends on?",
        ),
    )
}
"""The questions that reports put side by side, in their order. A benchmark may ask others: ``Summary.questions``."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One answer to one question about one model.

    It follows from its cells by the one decision rule; nothing else may be read into it.

    Attributes:
        benchmark: the benchmark that asked.
        question: key of the question, see ``QUESTIONS``.
        model: label of the model.
        answer: ``yes``, ``in part``, ``no``, ``cannot be told`` or ``not asked``.
        because: one sentence: what decided; for ``not asked`` the capability that is missing.
        reading: the protocol, reader or judge.
        dataset: label of the dataset.
        method: an explainer, where it is about one.
        margin: what the headline must clear beside its floor, in the metric's own unit; None where none was needed.
        roles: which cell plays which part: ``headline`` (the figure), ``floor`` (what can be had without looking),
            ``twin`` (the same model that cannot look), ``companion`` (what separates *yes* from *in part*),
            ``difference`` (headline minus floor or twin, paired; where it is there, its interval decides).
        notes: codes of reasons to doubt: ``seen``, ``searched``, ``few``, ``judged``, ``shared_pool``, ``unparsed``.

    Raises:
        MetricError: no such answer or role, or ``not asked`` with cells, or another answer without a headline.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CHECKED

    benchmark: str
    question: str
    model: str
    answer: Answer
    because: str
    reading: str = ""
    dataset: str = ""
    method: str = ""
    margin: float | None = None
    roles: Mapping[str, Cell] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"{self.question} of {self.model}"
        if self.answer not in ANSWERS:
            raise MetricError("no such answer", where=where, expected=", ".join(ANSWERS), got=self.answer)
        if unknown := set(self.roles) - set(ROLES):
            raise MetricError("no such role", where=where, expected=", ".join(ROLES), got=", ".join(sorted(unknown)))
        if (self.answer == "not asked") == ("headline" in self.roles):
            raise MetricError(
                "a verdict rests on its headline cell, and what was not asked has none",
                where=where,
                got=f"{self.answer}, {', '.join(self.roles) or 'no cell'}",
            )

    @property
    def headline(self) -> Cell | None:
        """The cell whose figure stands beside the answer."""
        return self.roles.get("headline")

    @property
    def comparator(self) -> Cell | None:
        """The cell that the headline is held against: the blind twin where there is one, else the floor."""
        return self.roles.get("twin") or self.roles.get("floor")


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What reports must know of a model beside its numbers.

    Attributes:
        label: how the run calls it.
        title: its name in the literature.
        kind: ``zero-shot``, ``supervised``, ``baseline`` and the like; None where it is not known.
        twin_of: label of the model of which this is the blind twin: the same, without the picture.
        seen: dataset -> what it has seen of it in training; a dataset that it has not seen is absent.
        unverified: why it is not known to be the published model; None where it is.
        missing: capabilities that the benchmark asked for and that it has not.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CHECKED

    label: str
    title: str = ""
    kind: str | None = None
    twin_of: str | None = None
    seen: Mapping[str, str] = field(default_factory=dict, hash=False)
    unverified: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def baseline(self) -> bool:
        """Whether it is a yardstick rather than a model."""
        return self.kind == "baseline" or self.twin_of is not None


class Cells(Sequence[Cell]):
    """Cells with an index, so that one or several are found by any of their fields.

    Example:
        >>> cells = Cells([Cell(benchmark="b", model="m", metric="auc", value=0.8, n=10)])
        >>> cells.one(model="m", metric="auc").value
        0.8
        >>> cells.one(model="m", metric="dice") is None
        True
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = tuple(cells)
        self._by_metric: dict[tuple[str, str], list[Cell]] = {}
        for cell in self._cells:
            self._by_metric.setdefault((cell.model, cell.metric), []).append(cell)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        return self._cells[index]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    def where(self, **wanted: str) -> list[Cell]:
        """Return the cells whose fields are as given, in their order.

        Args:
            wanted: any of ``KEYS``.

        Raises:
            MetricError: a cell has no such field.
        """
        if unknown := set(wanted) - set(KEYS):
            raise MetricError("cells are not told apart by that", expected=", ".join(KEYS), got=", ".join(unknown))
        near: Iterable[Cell] = self._cells
        if {"model", "metric"} <= set(wanted):
            near = self._by_metric.get((wanted["model"], wanted["metric"]), [])
        return [cell for cell in near if all(getattr(cell, name) == value for name, value in wanted.items())]

    def one(self, **wanted: str) -> Cell | None:
        """Return the one cell whose fields are as given, or None where there is none.

        Raises:
            MetricError: there are several: more must be given.
        """
        chosen = self.where(**wanted)
        if len(chosen) > 1:
            raise MetricError("several cells are like that", got=f"{len(chosen)} with {wanted}", fix="give more fields")
        return chosen[0] if chosen else None

    def values(self, name: str) -> list[str]:
        """Return what a field takes over all cells, each once, in order of first appearance."""
        return list(dict.fromkeys(getattr(cell, name) for cell in self._cells))


def with_floors(cells: Sequence[Cell], metrics: Iterable[MetricSpec]) -> list[Cell]:
    """Return cells with what can be had without looking at the same items, where the metric names such a floor.

    A floor that a cell already has stays.

    Args:
        cells: in order; the metrics that hold floors are among them.
        metrics: their specifications.
    """
    specs = {spec.name: spec for spec in metrics}
    values = {cell.key: cell.value for cell in cells}

    def beside(cell: Cell, own: float | None, metric: str | None, constant: float | None) -> float | None:
        if own is not None or cell.value is None:
            return own
        return constant if metric is None else values.get((*cell.key[:-1], metric))

    floored = []
    for cell in cells:
        spec = specs.get(cell.metric)
        if spec is None:
            floored.append(cell)
            continue
        floor = beside(cell, cell.floor, spec.floor_metric, spec.floor_value)
        ceiling = beside(cell, cell.ceiling, spec.ceiling_metric, spec.ceiling_value)
        floored.append(replace(cell, floor=floor, ceiling=ceiling))
    return floored


def frame(cells: Sequence[Cell]) -> pl.DataFrame:
    """Return cells as a table in their order, every digit kept: a column a field, and one for every further count."""
    import polars as pl

    names = list(dict.fromkeys(name for cell in cells for name in cell.counts))
    schema = pl.Schema(
        dict.fromkeys(KEYS, pl.String())
        | dict.fromkeys(_NUMBERS, pl.Float64())
        | dict.fromkeys(_COUNTS, pl.Int64())
        | dict.fromkeys(names, pl.Int64())
        | {"reason": pl.String()}
    )
    plain = (*KEYS, *_NUMBERS, *_COUNTS, "reason")
    records = [{f: getattr(c, f) for f in plain} | {n: c.counts.get(n, 0) for n in names} for c in cells]
    return pl.DataFrame(records, schema=schema)


@dataclass(frozen=True)
class Summary:
    """What a benchmark says at the end.

    Attributes:
        cells: every number.
        verdicts: every answer.
        tables: file stem -> table made for people, written as CSV, Markdown and LaTeX below ``tables``.
        data: what else the benchmark's own report draws (curves, pictures): JSON-like, no NaN.
        benchmark: the benchmark's name.
        reading: the protocol, reader or judge that made it; empty where there is one way alone.
        models: facts of every model, in the order of the run.
        metrics: what each metric of the cells is, in the order of tables.
        questions: those of its verdicts that are not in ``QUESTIONS``.
        level: coverage of every interval.
        described: the reading in one sentence.
        legend: what columns and marks of the tables in ``shown`` mean.
        shown: names of the tables that a terminal shows, in order; none: the first table.
        notes: what a reader must know of the whole: one sentence each.
    """

    cells: Sequence[Cell] = ()
    verdicts: Sequence[Verdict] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    benchmark: str = ""
    reading: str = ""
    models: Sequence[ModelFacts] = ()
    metrics: Sequence[MetricSpec] = ()
    questions: Sequence[Question] = ()
    level: float = 0.95
    described: str = ""
    legend: str = ""
    shown: tuple[str, ...] = ()
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``summary.json``: everything but the tables."""
        return {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "reading": self.reading,
            "level": self.level,
            "described": self.described,
            "legend": self.legend,
            "shown": list(self.shown),
            "notes": list(self.notes),
            "models": [_record(model) for model in self.models],
            "metrics": [_record(metric) for metric in self.metrics],
            "questions": [_record(question) for question in self.questions],
            "verdicts": [_record(verdict) for verdict in self.verdicts],
            "cells": [_record(cell) for cell in self.cells],
            "data": dict(self.data),
        }

    @classmethod
    def from_json(cls, content: Any, where: object = "summary.json") -> Summary:
        """Return the summary that ``content`` holds, without tables.

        Args:
            content: what ``to_json`` gave, read from a file: nothing in it is trusted.
            where: what to name in an error.

        Raises:
            RunError: another format number, a field that is missing, unknown or of another type, or a number that is
                not finite.
        """
        if not isinstance(content, Mapping):
            raise RunError("a summary is an object", where=where, got=type(content).__name__)
        if content.get("format") != FORMAT:
            raise RunError(
                "the summary was written by another version of medground",
                where=where,
                expected=f"format {FORMAT}",
                got=f"format {content.get('format', 'unnamed')}",
                fix="run the same run file again: what was predicted is kept, and summarised anew",
            )
        return _read(content, where)

    def question(self, key: str) -> Question:
        """Return a question by its key, this summary's own before the shared ones.

        Raises:
            MetricError: nothing asks it.
        """
        own = {question.key: question for question in self.questions}
        if key not in own and key not in QUESTIONS:
            raise MetricError("no such question", expected=", ".join([*own, *QUESTIONS]), got=key)
        return own.get(key) or QUESTIONS[key]

    def facts(self, model: str) -> ModelFacts:
        """Return the facts of a model; its label alone where nothing is known."""
        return next((facts for facts in self.models if facts.label == model), ModelFacts(label=model))

    def spec(self, metric: str) -> MetricSpec:
        """Return what a metric is; a plain number of which nothing may be claimed where nobody says."""
        return spec_of(metric, self.benchmark, self.metrics)

    def named(self, benchmark: str, reading: str | None = None) -> Summary:
        """Return the summary under a benchmark's name, and a reading's where one is given."""
        return replace(self, benchmark=benchmark, reading=self.reading if reading is None else reading)


def _record(thing: Any) -> dict[str, Any]:
    """Return a dataclass as JSON takes it; cells inside a verdict as objects of their own."""
    return {f.name: _plain(getattr(thing, f.name)) for f in fields(thing)}


def _plain(value: Any) -> Any:
    if isinstance(value, Cell):
        return _record(value)
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _read(content: Mapping[str, Any], where: object) -> Summary:
    from pydantic import ValidationError

    place = ""
    try:
        parts = {}
        for place, adapter in _adapters().items():
            parts[place] = adapter.validate_python(content[place])
        return Summary(**parts)
    except KeyError:
        where, problem = f"{where}: {place}", "it is missing"
    except MetricError as error:
        where, problem = f"{where}: {place}, {error.where}", error.what
    except ValidationError as error:
        first = error.errors()[0]
        where, problem = f"{where}: {'.'.join(map(str, (place, *first['loc'])))}", first["msg"]
    raise RunError("the summary is damaged", where=where, got=problem, fix="run the same run file again")


@cache
def _adapters() -> dict[str, Any]:
    """Return field of a summary -> what checks it; pydantic is imported when one is read."""
    from pydantic import TypeAdapter

    types: dict[str, Any] = {
        "benchmark": str,
        "reading": str,
        "level": float,
        "described": str,
        "legend": str,
        "shown": tuple[str, ...],
        "notes": list[str],
        "models": list[ModelFacts],
        "metrics": list[MetricSpec],
        "questions": list[Question],
        "verdicts": list[Verdict],
        "cells": list[Cell],
        "data": dict[str, Any],
    }
    return {name: TypeAdapter(kind) for name, kind in types.items()}
