"""What a dataset is: an ordered list of cases, each one image with its truth.

A dataset reads tables and never opens an image. Its constructor takes typed keywords (``root`` first), which the
registry checks; ``cases()`` is cheap enough to be called by every command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from medground.datasets.lazy import LazyRegions
from medground.identity import fingerprint_of
from medground.imaging.augmenting import Augmentation
from medground.imaging.reading import Radiograph, read_radiograph
from medground.imaging.regions import Region
from medground.paths import resolve_inside

__all__ = [
    "Case",
    "Dataset",
    "DatasetInfo",
    "fingerprint_cases",
    "names_of",
    "picture_of",
    "pictures_from",
    "resolve_inside",
]


@dataclass(frozen=True)
class Case:
    """One image with its truth.

    Attributes:
        case_id: stable and unique within the dataset.
        image: the file to decode; it may turn out to be unreadable, never to be outside the dataset's roots.
        patient_id: who was imaged; intervals are clustered by it. None: unknown, the case is its own cluster.
        view: projection as the publisher writes it, usually ``PA``, ``AP`` or ``LATERAL``. None: unknown.
        labels: finding -> present (True), absent (False) or not annotated (None). A finding that is missing
            from the mapping is not annotated.
        regions: finding -> where it is, for the findings that are localised in this case. A look-up may read a mask
            file or a picture's header and raise a DataError; ``in``, iteration and ``len`` never do.
        notes: what was mended while reading this case (clipped boxes, merged readers), for the report.
        augmentation: the change that its picture is shown with; regions and labels are those of the changed picture.
            Read pictures with :func:`picture_of`, which makes the change.
        traits: what else the tables say of the patient or the picture, as text, by which results are split: ``sex``,
            ``age``, ``device``, ``site`` and whatever a table of the user's names.
    """

    case_id: str
    image: Path
    patient_id: str | None = None
    view: str | None = None
    labels: Mapping[str, bool | None] = field(default_factory=dict)
    regions: Mapping[str, Region] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    augmentation: Augmentation | None = None
    traits: Mapping[str, str] = field(default_factory=dict)


def picture_of(case: Case, read: Callable[..., Radiograph] = read_radiograph) -> Radiograph:
    """Return a case's picture as the case is to be shown.

    Args:
        case: whose picture is read.
        read: reads a file, as :func:`~medground.imaging.reading.read_radiograph` does; a cache may.

    Raises:
        ImageError: the file cannot be decoded.
    """
    image = read(case.image, case_id=case.case_id, patient_id=case.patient_id)
    return image if case.augmentation is None else case.augmentation.picture(image, case.case_id)


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a dataset that need no folder: shown by ``medground describe``.

    Attributes:
        title: the name in the literature.
        findings: the classes in the paper's order.
        further: classes that the files also annotate; they can be asked for by name.
        licence: terms of use in one sentence.
        redistributable: whether a report may show its pictures without being asked.
        citation: how to cite it.
        obtain: where it is obtained, and under which conditions.
        layout: the files that are looked for, one a line, relative to the root.
        pixels_from: the collection whose pictures these are (``nih_chestxray14`` for RSNA, SIIM and ChestX-Det);
            patients are counted twice when two datasets with the same source are pooled.
        published_counts: name of a count -> published value, shown by ``validate`` beside the found one.
        aliases: other spelling of a finding -> its name in ``findings`` or ``further``.
        prompts: finding -> words for a prompt, where its name is an abbreviation or a file's spelling.
    """

    title: str
    findings: tuple[str, ...]
    licence: str
    redistributable: bool
    citation: str
    obtain: str
    layout: tuple[str, ...] = ()
    pixels_from: str | None = None
    published_counts: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Dataset(Protocol):
    """The contract of a dataset; see ``docs/adding.md`` for a complete example."""

    name: ClassVar[str]
    info: ClassVar[DatasetInfo]

    @property
    def findings(self) -> Sequence[str]:
        """The ordered classes that are evaluated."""

    def cases(self) -> Sequence[Case]:
        """Every case, in a stable order. Reads tables, opens no image.

        Raises:
            DatasetError: the folder or a table is not as expected.
        """

    def fingerprint(self) -> str:
        """A hash of what ``cases()`` returns; part of every chunk's name."""


def names_of(dataset: Dataset) -> tuple[str, ...]:
    """Return the names under which somebody may know a dataset's cases: its own, and that of the dataset it changes."""
    changed = getattr(dataset, "changes", None)
    return (dataset.name, *(names_of(changed) if changed is not None else ()))


def pictures_from(dataset: Dataset) -> str | None:
    """Return the collection that a dataset takes its pictures from; None where they are its own."""
    changed = getattr(dataset, "changes", None)
    if changed is None:
        return dataset.info.pixels_from
    return pictures_from(changed) or changed.name


def fingerprint_cases(cases: Sequence[Case], root: Path) -> str:
    """Return a hash of cases that does not depend on where the dataset's folder lies."""
    rows = [
        (
            c.case_id,
            str(c.image.relative_to(root)) if c.image.is_relative_to(root) else c.image.name,
            c.patient_id,
            c.view,
            sorted(c.labels.items()),
            sorted(_region_hashes(c.regions)),
            *(() if c.augmentation is None else (c.augmentation.key,)),
            *([sorted(c.traits.items())] if c.traits else []),
        )
        for c in cases
    ]
    return fingerprint_of(rows)


def _region_hashes(regions: Mapping[str, Region]) -> list[tuple[str, str]]:
    if isinstance(regions, LazyRegions):
        return [(name, regions.fingerprint(name)) for name in regions]
    return [(name, region.fingerprint()) for name, region in regions.items()]
