"""From a publisher's folder to cases: tables first, then the pictures that the tables name."""

# No `from __future__ import annotations` here and in the loaders: the run file's parameters are checked against the
# annotations of the generated constructors, and those of inherited fields must not be text of another module.

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Literal

from medground.datasets._folder.absent import absent
from medground.datasets._folder.pictures import NamedPictures, Pictures
from medground.datasets._folder.tables import find_file
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.base import Case, DatasetInfo, fingerprint_cases
from medground.datasets.report import Ledger, Problem, Report, check_cases, shorten
from medground.errors import DatasetError
from medground.imaging.regions import Region

Missing = Literal["skip", "error", "keep"]
"""What to do with a case whose picture is absent: leave it out and say so, stop, or keep it (for work on tables)."""


@dataclass
class Draft:
    """A case before its picture was found.

    ``keys`` is what the index is asked for, by default the case's id; ``regions`` is a function of the picture's path
    where boxes are in the pixels of a picture whose size only its header tells.
    """

    case_id: str
    labels: Mapping[str, bool | None] = field(default_factory=dict)
    regions: Mapping[str, Region] | Callable[[Path], Mapping[str, Region]] = field(default_factory=dict)
    patient_id: str | None = None
    view: str | None = None
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    traits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Everything that one reading of the tables gave."""

    cases: tuple[Case, ...]
    missing: tuple[str, ...]
    ledger: Ledger


class FolderDataset(ABC):
    """A dataset in a folder. A subclass says how its tables become drafts; this class finds the pictures.

    Pictures are looked up by stem, so resized and re-encoded copies serve; regions keep the frame of the publication.
    """

    name: ClassVar[str]
    info: ClassVar[DatasetInfo]
    folders: ClassVar[tuple[str, ...]]
    """Where pictures may lie, see :meth:`_folders`."""

    root: Path
    image_dir: str | None
    missing: Missing
    allow_outside: Sequence[Path]

    @property
    @abstractmethod
    def findings(self) -> Sequence[str]:
        """The ordered classes that are evaluated."""

    @abstractmethod
    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        """Read the tables; counts, remarks and problems go to the ledger.

        Raises:
            DatasetError: a table is absent or unreadable.
        """

    def cases(self) -> Sequence[Case]:
        """Every case whose picture is there, in a stable order. Reads tables once, opens no picture.

        Raises:
            DatasetError: the folder or a table is not as expected, or pictures are missing under ``missing: error``.
        """
        self._reading.ledger.raise_problems()
        return self._reading.cases

    def fingerprint(self) -> str:
        """A hash of what ``cases()`` returns; part of every chunk's name."""
        return fingerprint_cases(self.cases(), self.root)

    def report(self) -> Report:
        """What was read: counts beside the published ones, what was mended, left out and missing.

        What only shows when regions are made (boxes clipped to a picture of unknown size) is in it after
        :meth:`check`.
        """
        reading = self._reading
        checked = self._checked.remarks if "_checked" in vars(self) else ()
        return Report(
            self.name,
            len(reading.cases),
            reading.missing,
            reading.ledger.counts,
            self.info.published_counts,
            (*reading.ledger.remarks, *checked),
            f"pictures were looked for in {self._sought()}. {self._origin()}" if reading.missing else None,
        )

    def check(self) -> Sequence[Problem]:
        """Everything that is wrong, for ``medground validate``: problems of the tables, then of every case.

        Makes every region, which may read mask files and the headers of pictures, but decodes no picture.
        """
        return [*self._reading.ledger.problems, *self._checked.problems]

    @cached_property
    def _checked(self) -> Ledger:
        ledger = Ledger()
        seen = partial(self._see, ledger)
        ledger.problems = check_cases(self._reading.cases, self._vocabulary(), seen)
        return ledger

    def _vocabulary(self) -> Sequence[str]:
        """Return every class that cases may speak of."""
        return Vocabulary(self.info).names

    def _see(self, ledger: Ledger, case: Case, region: Region) -> None:  # noqa: B027  most have nothing to look at
        """Look at a region that was made during a check."""

    @cached_property
    def _reading(self) -> Reading:
        ledger = Ledger()
        drafts = list(self._drafts(ledger))
        pictures = self._index()
        cases, missing = self._placed(drafts, pictures)
        self._judge_missing(ledger, missing, len(drafts))
        if ledger.listed is not None and (unknown := sorted(pictures.keys() - ledger.listed)):
            ledger.remark("pictures that no table names; they are unknown, not negatives", *unknown)
        return Reading(tuple(cases), tuple(missing), ledger)

    def _index(self) -> Pictures | NamedPictures:
        """Return where the pictures lie."""
        return Pictures(
            self.root, self._folders(), image_dir=self.image_dir, allowed=self.allow_outside, key=self._picture_key
        )

    def _folders(self) -> Sequence[str]:
        """Return where pictures lie: glob patterns below the root, searched with all that is in them."""
        return self.folders

    @staticmethod
    def _picture_key(path: Path) -> str:
        """Return what a picture is looked up by: its name without the last suffix."""
        return path.stem

    def _placed(self, drafts: Iterable[Draft], pictures: Pictures | NamedPictures) -> tuple[list[Case], list[str]]:
        """Return cases for the drafts whose picture is there (or all, under ``keep``), and the ids of the others."""
        cases, missing = [], []
        for d in drafts:
            keys = d.keys or (d.case_id,)
            path = next((located for key in keys if (located := pictures.locate(key))), None)
            if path is None:
                missing.append(d.case_id)
            if path is not None or self.missing == "keep":
                image = path or self.root / pictures.searched[0] / keys[0]
                regions = d.regions(image) if callable(d.regions) else d.regions
                cases.append(Case(d.case_id, image, d.patient_id, d.view, d.labels, regions, d.notes, traits=d.traits))
        return cases, missing

    def _judge_missing(self, ledger: Ledger, missing: Sequence[str], wanted: int) -> None:
        if wanted == 0 and not ledger.problems:
            raise DatasetError(f"{self.info.title} has no cases here", where=self.root, expected="at least one")
        if not missing or self.missing == "keep":
            return
        if self.missing == "error" or len(missing) == wanted:
            ledger.raise_problems()  # a table that is wrong may be why its pictures are not found
            some = " Or take those that are there: missing: skip" if len(missing) < wanted else ""
            raise DatasetError(
                f"{len(missing):,} of {wanted:,} pictures of {self.info.title} are missing",
                where=self.root,
                expected=self._sought(),
                got=f"no picture for {shorten(missing)}",
                fix=f"{self._origin()}{some}",
            )
        ledger.remark("cases left out because their picture is missing; they are not negatives", *missing)

    def _sought(self) -> str:
        """Return the folders that pictures are looked for in."""
        return ", ".join([self.image_dir] if self.image_dir else self._folders())

    def _origin(self) -> str:
        """Return where the dataset comes from, and under which licence."""
        return f"{self.info.obtain} Licence: {self.info.licence}."

    def _find(self, *names: str, below: Sequence[str] = (".",)) -> Path:
        """Return the first of some tables that is there.

        Raises:
            DatasetError: none is; the message says what was looked for, what is there and where it is obtained.
        """
        path = self._find_optional(*names, below=below)
        if path is None:
            raise absent(self.root, names, below, self.info)
        return path

    def _find_optional(self, *names: str, below: Sequence[str] = (".",)) -> Path | None:
        """Return the first of some tables that is there, or None."""
        return find_file([self.root / folder for folder in below], names)


@dataclass(repr=False, eq=False)
class PublishedDataset(FolderDataset):
    """A public dataset: a folder with fixed classes.

    Args:
        root: the folder that was downloaded.
        findings: the classes to evaluate, under any of their spellings; by default all of the paper's, in its order.
        image_dir: the only folder to take pictures from, below the root or elsewhere.
        missing: what to do where a picture is absent.
        allow_outside: folders outside the root that links may lead into.
    """

    root: Path
    _: KW_ONLY
    findings: Sequence[str] = ()
    image_dir: str | None = None
    missing: Missing = "skip"
    allow_outside: Sequence[Path] = ()

    def __post_init__(self) -> None:
        self.root = Path(self.root).expanduser().resolve()
        self.findings = Vocabulary(self.info).pick(self.findings) or self._default_findings()

    def _default_findings(self) -> tuple[str, ...]:
        """Return the classes that are evaluated where the user names none."""
        return self.info.findings
