"""RSNA Pneumonia Detection Challenge 2018: 26,684 NIH radiographs, 9,555 boxes around possible pneumonia."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.nih import FRAME, patient_of
from medground.datasets._folder.tables import number, read_all, read_table, truth
from medground.datasets.base import DatasetInfo
from medground.datasets.report import Ledger
from medground.errors import RegionError
from medground.imaging.regions import Box, Region

FINDING = "Pneumonia"
LABELS = "stage_2_train_labels.csv"
CLASSES = "stage_2_detailed_class_info.csv"


@dataclass
class _Truth:
    """What the rows of one image say: present or not, its boxes, and a second name of its picture."""

    present: bool
    boxes: list[Box] = field(default_factory=list)
    picture: str | None = None


@dataclass(repr=False, eq=False)
class RsnaPneumonia(PublishedDataset):
    """RSNA Pneumonia Detection Challenge: the labelled images of stage 2, or those of a split file.

    Args:
        split_file: a table of yours that names the images: columns ``ID`` (or ``patientId``) and, where it carries the
            truth itself, ``boxes`` (``x;y;w;h|x;y;w;h``) and ``classes`` (0 or 1), as the split behind the paper does.
            Pictures are looked up by id, then by the last part of ``img_path``.
        crossref: a table of yours with columns ``patientId`` and ``nih_image``; it gives the NIH patient, without which
            every image counts as a patient of its own.
    """

    name: ClassVar[str] = "rsna_pneumonia"
    folders: ClassVar[tuple[str, ...]] = ("stage_2_train_images", "stage_2_test_images", "mdai_rsna_project_*")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="RSNA Pneumonia",
        findings=(FINDING,),
        aliases={"Lung Opacity": FINDING},
        licence=(
            "RSNA: research, education and other commercial or non-commercial use with attribution; the copy on Kaggle "
            "also asks for acceptance of the competition's rules"
        ),
        redistributable=False,
        citation=(
            "Shih G, Wu CC, Halabi SS, et al. Augmenting the National Institutes of Health Chest Radiograph Dataset "
            "with Expert Annotations of Possible Pneumonia. Radiology: Artificial Intelligence 2019;1(1):e180041."
        ),
        obtain="Kaggle, competition rsna-pneumonia-detection-challenge (account), or the challenge's page on rsna.org.",
        layout=(
            f"{LABELS}: a row a box",
            f"{CLASSES}: a row a box again; optional, for the counts",
            "stage_2_train_images/ or mdai_rsna_project_*/: pictures, DICOM of 1024 x 1024 or copies of any size",
        ),
        pixels_from="nih_chestxray14",
        published_counts={
            "rows": 30_227,
            "images": 26_684,
            "positive images": 6_012,
            "boxes": 9_555,
            "class Normal": 8_851,
            "class No Lung Opacity / Not Normal": 11_821,
            "class Lung Opacity": 6_012,
        },
    )

    split_file: Path | None = None
    crossref: Path | None = None

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        truths = self._from_labels(ledger) if self.split_file is None else self._from_split(self.split_file, ledger)
        if self.split_file is None:
            ledger.listed = set(truths)
        patients = self._patients(truths, ledger)
        for image, truth_ in truths.items():
            region = {FINDING: Region(FRAME, boxes=tuple(truth_.boxes))} if truth_.boxes else {}
            keys = (image, truth_.picture) if truth_.picture else (image,)
            yield Draft(image, {FINDING: truth_.present}, region, patients.get(image, image), keys=keys)

    def _from_labels(self, ledger: Ledger) -> Mapping[str, _Truth]:
        """Read the challenge's own table, one row a box."""
        path = self._find(LABELS)
        table = read_table(path, ["patientId", "x", "y", "width", "height", "Target"], ledger=ledger)
        truths: dict[str, _Truth] = {}
        for line, (image, *sides, target) in enumerate(table.iter_rows(), start=2):
            _add(
                truths,
                f"{path.name} row {line}",
                image,
                target,
                [sides] if any(number(s) is not None for s in sides) else [],
                ledger,
            )
        self._count(truths, table.height, ledger)
        self._count_classes(ledger)
        return truths

    def _from_split(self, path: Path, ledger: Ledger) -> Mapping[str, _Truth]:
        """Read the user's split; a table of ids alone takes its truth from the challenge's table."""
        columns = {name.casefold() for name in read_all(path).columns}
        key = "ID" if "id" in columns else "patientId"
        if not {"boxes", "classes"} <= columns:
            labelled = self._from_labels(ledger)
            ids = dict.fromkeys(read_table(path, [key])[key])
            unknown = [i for i in ids if i not in labelled]
            if unknown:
                ledger.problem("a split names images that are not labelled", path.name, got=", ".join(unknown[:3]))
            return {i: labelled[i] for i in ids if i in labelled}
        table = read_table(path, [key, "boxes", "classes"], ["img_path"], ledger=ledger)
        truths: dict[str, _Truth] = {}
        for line, (image, boxes, target, picture) in enumerate(table.iter_rows(), start=2):
            listed = [] if boxes in {None, "nan"} else [box.split(";") for box in boxes.split("|")]
            _add(truths, f"{path.name} row {line}", image, target, listed, ledger)
            if image in truths and picture:
                truths[image].picture = Path(picture).stem
        self._count(truths, table.height, ledger)
        return truths

    @staticmethod
    def _count(truths: Mapping[str, _Truth], rows: int, ledger: Ledger) -> None:
        ledger.counts |= {
            "rows": rows,
            "images": len(truths),
            "positive images": sum(t.present for t in truths.values()),
            "boxes": sum(len(t.boxes) for t in truths.values()),
        }

    def _count_classes(self, ledger: Ledger) -> None:
        """Count images by class; the table has a row a box, so images are counted once."""
        path = self._find_optional(CLASSES)
        if path is not None:
            classes = dict(read_table(path, ["patientId", "class"]).iter_rows())
            ledger.counts |= {f"class {name}": n for name, n in sorted(Counter(classes.values()).items())}

    def _patients(self, images: Iterable[str], ledger: Ledger) -> Mapping[str, str]:
        """Return the NIH patient of every image that the user's cross-reference names."""
        if self.crossref is None:
            return {}
        table = read_table(self.crossref, ["patientId", "nih_image"], key=["patientId"], ledger=ledger)
        named = {image: patient_of(nih) for image, nih in table.iter_rows() if image and nih}
        matched = ledger.join(images, named, what="the cross-reference to NIH", unit="images", larger=True)
        return {mine: named[theirs] for mine, theirs in matched.items()}


def _add(
    truths: dict[str, _Truth],
    where: str,
    image: str | None,
    target: str | None,
    boxes: list[list[str | None]],
    ledger: Ledger,
) -> None:
    """Add one row to its image: rows of one image are united, and must agree on whether the finding is present."""
    present = truth(target)
    if image is None or present is None:
        ledger.problem("a row has no image or no label", where, expected="an id and 0 or 1", got=f"{image}, {target}")
    elif present != bool(boxes):
        ledger.problem("a row's label and its boxes contradict each other", where, got=f"label {target}, boxes {boxes}")
    elif truths.setdefault(image, _Truth(present)).present != present:
        ledger.problem("rows of one image contradict each other", where, got=image)
    else:
        truths[image].boxes += _boxes(boxes, where, ledger)


def _boxes(rows: list[list[str | None]], where: str, ledger: Ledger) -> Iterator[Box]:
    for row in rows:
        sides = [value for field_ in row if (value := number(field_)) is not None]
        try:
            if len(sides) != 4:
                raise RegionError("a box is not four numbers", expected="x, y, width, height", got=row)
            yield from Region.from_boxes(FRAME, [Box.from_xywh(*sides)]).boxes
        except RegionError as error:
            ledger.problem(error.what, where, expected=error.expected, got=error.got)
