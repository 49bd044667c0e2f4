"""Tables of MIMIC-CXR: which images there are, in which split and view, and what was read from their reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medground.datasets._folder.tables import number, read_all, read_table, truth
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.report import Ledger
from medground.errors import DatasetError, RegionError
from medground.imaging.regions import Box, Region

Study = tuple[str, str]
"""``(subject, study)``."""

Labels = Mapping[str, bool | None]


@dataclass(frozen=True)
class Image:
    """One row of the split table, joined with the metadata.

    Attributes:
        dicom: id of the image.
        study: subject and study.
        split: ``train``, ``validate`` or ``test``.
        view: projection, such as ``PA``; None: not stated.
    """

    dicom: str
    study: Study
    split: str
    view: str | None = None

    @property
    def folder(self) -> str:
        """Where its picture lies below ``files``."""
        subject, study = self.study
        return f"p{subject[:2]}/p{subject}/s{study}"


def read_images(splits: Path, metadata: Path | None, ledger: Ledger) -> list[Image]:
    """Return every image of the split table, in its order.

    Raises:
        DatasetError: a table lacks a column.
    """
    views: dict[str, str | None] = {}
    if metadata is not None:
        views = dict(read_table(metadata, ["dicom_id", "ViewPosition"], key=["dicom_id"]).iter_rows())
    else:
        ledger.remark("table of metadata is absent: no view is known", "mimic-cxr-2.0.0-metadata.csv.gz")
    images: dict[str, Image] = {}
    table = read_table(splits, ["dicom_id", "study_id", "subject_id", "split"])
    for line, (dicom, study, subject, split) in enumerate(table.iter_rows(), start=2):
        if None in (dicom, study, subject, split) or split not in ("train", "validate", "test"):
            ledger.problem("a row of the split table cannot be read", f"{splits.name} line {line}", got=dicom)
            continue
        view = views.get(dicom)
        image = Image(dicom, (subject, study), split, view.upper() if view else None)
        if images.setdefault(dicom, image) != image:
            ledger.problem("an image has two rows that differ", f"{splits.name} line {line}", got=dicom)
    return list(images.values())


def read_study_labels(path: Path, vocabulary: Vocabulary, ledger: Ledger) -> Mapping[Study, Labels]:
    """Return the labels of every study: 1 present, 0 absent, -1 (uncertain) and blank unknown.

    A study read as "No Finding" has every blank finding absent, devices excepted.

    Raises:
        DatasetError: the table lacks subject and study, or has no column of a known finding.
    """
    columns = {name: vocabulary.get(name) for name in read_all(path).columns}
    known = {column: finding for column, finding in columns.items() if finding is not None}
    if not known:
        raise DatasetError("a table of labels has no known finding", where=path, expected=", ".join(vocabulary.names))
    normal = ["No Finding"] if "No Finding" in columns else []
    frame = read_table(path, ["subject_id", "study_id", *known, *normal])
    read: dict[Study, Labels] = {}
    for line, (subject, study, *cells) in enumerate(frame.iter_rows(), start=2):
        labels = {f: truth(text) for f, text in zip(known.values(), cells, strict=False)}
        if normal and number(cells[-1]) == 1.0:
            labels = {f: False if v is None and f != "Support Devices" else v for f, v in labels.items()}
        if read.setdefault((subject, study), labels) != labels:
            ledger.problem("a study has two rows that differ", f"{path.name} line {line}", got=study)
    return read


def read_boxes(path: Path, vocabulary: Vocabulary, ledger: Ledger) -> Mapping[str, Mapping[str, Region]]:
    """Return MS-CXR's boxes: image -> finding -> union of its boxes, each box once.

    Several sentences of a report may share a box. The table's own column ``split`` is not read: it is not MIMIC's.

    Raises:
        DatasetError: a column is missing.
    """
    columns = ["dicom_id", "category_name", "x", "y", "w", "h", "image_width", "image_height"]
    regions: dict[str, dict[str, Region]] = {}
    seen: set[tuple[str, ...]] = set()
    rows = 0
    for line, cells in enumerate(read_table(path, columns).iter_rows(), start=2):
        rows += 1
        dicom, category, *texts = cells
        finding = vocabulary.get(category or "")
        sizes = [value for value in map(number, texts) if value is not None]
        where = f"{path.name} line {line}"
        if not dicom or finding is None or len(sizes) != len(columns) - 2:
            ledger.problem("a box cannot be read", where, expected=", ".join(columns), got=str(cells)[:120])
            continue
        if cells in seen:
            continue
        seen.add(cells)
        try:
            region = Region.from_boxes((int(sizes[4]), int(sizes[5])), [Box.from_xywh(*sizes[:4])], clip=True)
            earlier = regions.setdefault(dicom, {}).get(finding)
            regions[dicom][finding] = Region.union(earlier, region) if earlier else region
        except RegionError as error:
            ledger.problem(error.what, where, expected=error.expected, got=error.got)
    ledger.counts |= {"box rows": rows, "images with boxes": len(regions)}
    return regions


def in_split(images: Sequence[Image], wanted: str, boxed: Mapping[str, object]) -> Iterator[Image]:
    """Yield the images of a split, or those with boxes."""
    for image in images:
        if wanted == "all" or (image.dicom in boxed if wanted == "boxed" else image.split == wanted):
            yield image
