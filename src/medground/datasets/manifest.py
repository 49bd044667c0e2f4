"""A user's own images, described by a table: ``manifest.jsonl`` (a case a line) or ``manifest.csv`` (a finding a row).

``docs/datasets.md`` shows both by example.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from medground.datasets._folder.absent import absent
from medground.datasets._folder.dataset import Draft, FolderDataset, Missing
from medground.datasets._folder.inside import Inside
from medground.datasets._folder.pictures import NamedPictures
from medground.datasets._manifest.rows import ManifestEntry, Shape, read_entries
from medground.datasets._manifest.shapes import region_of
from medground.datasets.base import DatasetInfo
from medground.datasets.lazy import Maker, as_regions
from medground.datasets.report import Ledger
from medground.errors import DataError, DatasetError, did_you_mean
from medground.imaging.regions import Region

TABLES = ("manifest.jsonl", "manifest.csv")


class Manifest(FolderDataset):
    """Images, labels, boxes, polygons and masks of your own.

    Args:
        root: the folder that the table's paths start from, or the table itself.
        table: name of the table in the root; by default ``manifest.jsonl`` or ``manifest.csv``.
        findings: the classes to evaluate, in order; by default all that the table names, in order of appearance.
            Where it is given, any other name in the table is an error unless ``ignore`` has it.
        ignore: classes of the table that are left out on purpose.
        aliases: other spelling in the table -> finding.
        unlisted: what a finding is that a case says nothing about: ``unknown``, or ``absent`` for a table that names
            everything present.
        traits: further columns of a ``manifest.csv`` by which results are split, beside sex, age, device and site.
        frame: (width, height) of boxes and polygons whose row names none.
        missing: what to do where a picture is absent.
        allow_outside: folders outside the root that paths and links may lead into.
    """

    name: ClassVar[str] = "manifest"
    folders: ClassVar[tuple[str, ...]] = (".",)
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="a manifest of your own",
        findings=(),
        licence="your own",
        redistributable=False,
        citation="yours",
        obtain="Write the table, or let `medground import` write it from annotations in a usual form.",
        layout=(
            "manifest.jsonl: a case a line, with image and any of case_id, patient_id, view, traits {sex: F}, "
            "labels {finding: true}, frame [width, height], boxes {finding: [[x0, y0, x1, y1]]}, boxes_xywh, "
            "polygons, masks",
            "or manifest.csv: a finding or region a row: image, and any of case_id, patient_id, view, sex, age, "
            "device, site, finding, label, x0, y0, x1, y1 (or x, y, width, height), frame_width, "
            "frame_height, polygon, mask, rle",
            "any other file: pictures and masks that it names",
        ),
    )

    def __init__(
        self,
        root: Path,
        *,
        table: str | None = None,
        findings: Sequence[str] = (),
        ignore: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        unlisted: Literal["unknown", "absent"] = "unknown",
        traits: Sequence[str] = (),
        frame: tuple[int, int] | None = None,
        missing: Missing = "error",
        allow_outside: Sequence[Path] = (),
    ) -> None:
        given = Path(root).expanduser().resolve()
        self.root, self.table = (given.parent, given.name) if given.is_file() else (given, table)
        self.unlisted, self.frame, self.missing, self.image_dir = unlisted, frame, missing, None
        self.allow_outside = allow_outside
        self.traits = tuple(traits)
        if len(set(findings)) < len(findings):
            raise DatasetError("a finding is asked for twice", where="findings", expected="each once", got=findings)
        self._names = _Names(tuple(findings), frozenset(ignore), dict(aliases or {}))
        self._inside = Inside(self.root, allow_outside)

    @property
    def findings(self) -> Sequence[str]:
        """The ordered classes that are evaluated; reads the table where the user named none."""
        return self._names.asked or self._content[1]

    @cached_property
    def _content(self) -> tuple[list[ManifestEntry], tuple[str, ...], Ledger]:
        """The table's cases under the names of their findings, these names, and what was met on the way."""
        ledger = Ledger()
        path = self._path()
        entries = read_entries(path, ledger, self.traits)
        self._names.settle(entries, ledger)
        if not entries and not ledger.problems:
            raise DatasetError("a manifest has no cases", where=path, expected="at least one")
        seen = dict.fromkeys(f for e in entries for f in (*e.labels, *(s.finding for s in e.shapes)))
        return entries, tuple(seen), ledger

    def _path(self) -> Path:
        names = (self.table,) if self.table else TABLES
        there = [self.root / name for name in names if (self.root / name).is_file()]
        if len(there) > 1:
            raise DatasetError("there are two manifests", where=self.root, fix="name one of them: table: manifest.csv")
        if not there:
            raise absent(self.root, names, (".",), self.info)
        return there[0]

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        entries, findings, met = self._content
        ledger.problems += met.problems
        ledger.counts |= {"cases": len(entries), "findings": len(findings)}
        taken: dict[str, str] = {}
        for entry in entries:
            if entry.case_id in taken:
                ledger.problem(
                    f"two cases are called {entry.case_id!r}", entry.where, expected="a case_id of its own each"
                )
            elif (draft := self._draft(entry, ledger)) is not None:
                yield draft
            taken[entry.case_id] = entry.where

    def _draft(self, entry: ManifestEntry, ledger: Ledger) -> Draft | None:
        """Return the draft of one case, or None where its picture's name is at fault."""
        regions = self._regions(entry, ledger)
        for finding in regions:
            if entry.labels.get(finding) is False:
                ledger.problem("a finding is labelled absent but has a region", entry.where, got=finding)
        unlisted = False if self.unlisted == "absent" else None
        labels = {f: True if f in regions else entry.labels.get(f, unlisted) for f in self.findings}
        try:
            picture = str(self._inside(entry.image)) if entry.image else ""
        except DatasetError as error:
            ledger.problem(error.what, f"{entry.where}, image: {error.where}", expected=error.expected, got=error.got)
            return None
        return Draft(entry.case_id, labels, regions, entry.patient_id, entry.view, keys=(picture,), traits=entry.traits)

    def _regions(self, entry: ManifestEntry, ledger: Ledger) -> Mapping[str, Region]:
        shapes: dict[str, list[Shape]] = defaultdict(list)
        for shape in entry.shapes:
            shapes[shape.finding].append(shape)
        regions: dict[str, Region | Maker] = {}
        for finding in self.findings:
            if finding in shapes:
                try:
                    regions[finding] = region_of(shapes[finding], self.frame, self._inside)
                except DataError as error:
                    ledger.problem(error.what, str(error.where), expected=error.expected, got=error.got)
        return as_regions(regions)

    def _index(self) -> NamedPictures:
        return NamedPictures()

    def _sought(self) -> str:
        return f"the files that {self._path().name} names"

    def _origin(self) -> str:
        return "Correct the table."

    def _vocabulary(self) -> Sequence[str]:
        return self.findings


class _Names:
    """Which finding every name of the table stands for."""

    def __init__(self, asked: tuple[str, ...], ignored: frozenset[str], aliases: Mapping[str, str]) -> None:
        self.asked, self._ignored, self._aliases = asked, ignored, aliases

    def settle(self, entries: Sequence[ManifestEntry], ledger: Ledger) -> None:
        """Rename aliases and take ignored findings out of the entries; unknown names are problems."""
        met: dict[str, str] = {}
        for entry in entries:
            for name in (*entry.labels, *(shape.finding for shape in entry.shapes)):
                met.setdefault(name, entry.where)
        self._judge(met, ledger)
        if self._ignored or self._aliases:
            for entry in entries:
                labels, entry.labels = entry.labels, {}
                for finding, present in labels.items():
                    if self._of(finding) not in self._ignored:
                        entry.say(self._of(finding), present, f"{entry.where}, labels.{finding}", ledger)
                named = (shape._replace(finding=self._of(shape.finding)) for shape in entry.shapes)
                entry.shapes = [shape for shape in named if shape.finding not in self._ignored]

    def _of(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _judge(self, met: Mapping[str, str], ledger: Ledger) -> None:
        places = {self._of(name): where for name, where in met.items()}
        folded: dict[str, str] = {}
        for name, where in places.items():
            if name in self._ignored:
                continue
            if self.asked and name not in self.asked:
                near = did_you_mean(name, self.asked)
                what = f"{name!r} is no finding of this manifest" + (f", {near}" if near else "")
                ledger.problem(what, where, expected=", ".join(self.asked) + "; others by name in ignore")
            elif folded.setdefault(name.casefold(), name) != name:
                ledger.problem("one finding has two spellings", where, expected=folded[name.casefold()], got=name)
        for name in self.asked:
            if name not in places:
                ledger.problem(f"the manifest never mentions {name!r}", "findings", expected=", ".join(places) or None)
