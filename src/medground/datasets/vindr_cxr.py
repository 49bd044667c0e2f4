"""VinDr-CXR: 18,000 radiographs with boxes of 22 findings, in the pixels of DICOM files of many sizes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets._vindr.regions import Frames, read_sizes, regions_of
from medground.datasets._vindr.tables import CONSENSUS, Reading, Readings, merged, read_labels, read_marks
from medground.datasets.base import Case, DatasetInfo
from medground.datasets.report import Ledger
from medground.errors import DatasetError
from medground.imaging.regions import Region

LOCAL = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Clavicle fracture",
    "Consolidation",
    "Emphysema",
    "Enlarged PA",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Lung cavity",
    "Lung cyst",
    "Mediastinal shift",
    "Nodule/Mass",
    "Other lesion",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
    "Rib fracture",
)
GLOBAL = ("COPD", "Lung tumor", "Pneumonia", "Tuberculosis", "Other diseases", "No finding")
KAGGLE = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Consolidation",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Nodule/Mass",
    "Other lesion",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
)
LOCAL_TOLD = frozenset((*LOCAL, "Edema", "No finding"))
KAGGLE_TOLD = frozenset((*KAGGLE, "No finding"))
"""Findings whose absence an annotation row tells: readers marked every local finding that their release has."""

KAGGLE_TABLES = ("train.csv", "vinbigdata-train.csv")

Release = Literal["physionet", "kaggle"]


@dataclass(repr=False, eq=False)
class VindrCxr(PublishedDataset):
    """VinDr-CXR: the test or training part of PhysioNet, or the training part of Kaggle's VinBigData challenge.

    Args:
        split: ``test`` (3,000 images, a consensus of five) or ``train`` (15,000 images, three readers each).
        release: ``physionet`` (21 evaluated classes) or ``kaggle`` (14 classes, training part only); by default the one
            that is there.
        readers: ``union`` (any reader), ``majority`` (a pixel, or a label, of at least two readers), or the id of one
            reader, whose images alone are taken.
        sizes: a table of yours ``image_id,width,height`` of the original sizes, where pictures are resized copies.
        copies: ``original`` says that pictures that are no DICOM files have the original size.

    Boxes are clipped to their picture when they are looked at; boxes without area are dropped. Both are counted.
    """

    name: ClassVar[str] = "vindr_cxr"
    folders: ClassVar[tuple[str, ...]] = ("test", "train")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="VinDr-CXR",
        findings=LOCAL,
        further=("Edema", *GLOBAL),
        aliases={"Other disease": "Other diseases"},
        prompts={"Enlarged PA": "enlarged pulmonary artery", "ILD": "interstitial lung disease"},
        licence="PhysioNet credentialed access (training and data use agreement); no resharing",
        redistributable=False,
        citation=(
            "Nguyen HQ, Lam K, Le LT, et al. VinDr-CXR: An open dataset of chest X-rays with radiologist's "
            "annotations. Scientific Data 2022;9:429; PhysioNet, version 1.0.0."
        ),
        obtain="PhysioNet, https://physionet.org/content/vindr-cxr/1.0.0/ (credentialed account).",
        layout=(
            "annotations/annotations_test.csv or train.csv: boxes (PhysioNet test part, or Kaggle)",
            "annotations/image_labels_test.csv: labels of the test part",
            "annotations/annotations_train.csv: boxes of the training part, a row a reader and box",
            "annotations/image_labels_train.csv: labels of the training part, a row a reader",
            "test/: pictures of the test part, .dicom",
            "train/: pictures of the training part",
        ),
        published_counts={
            "test images": 3_000,
            "train images": 15_000,
            "Kaggle rows": 67_914,
            "Kaggle images": 15_000,
            "Kaggle images with boxes": 4_394,
            "Kaggle readers": 17,
        },
    )

    split: Literal["test", "train"] = "test"
    release: Release | None = None
    readers: str = "union"
    sizes: Path | None = None
    copies: Literal["unknown", "original"] = "unknown"

    def _default_findings(self) -> tuple[str, ...]:
        return KAGGLE if self._release() == "kaggle" else LOCAL

    def _release(self) -> Release:
        if self.release is not None:
            return self.release
        published = self._find_optional(f"annotations_{self.split}.csv", below=("annotations", "."))
        return "kaggle" if published is None and self._find_optional(*KAGGLE_TABLES) else "physionet"

    def _folders(self) -> tuple[str, ...]:
        return (self.split,)

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        readings = self._readings(ledger)
        ledger.listed = set(readings)
        needed = 2 if self.readers == "majority" else 1
        exhaustive = KAGGLE_TOLD if self._release() == "kaggle" else LOCAL_TOLD
        sizes = read_sizes(self.sizes, readings, ledger) if self.sizes else None
        frames = Frames(sizes, copies=self.copies == "original")
        for image, by_reader in self._chosen(readings).items():
            together = merged(by_reader, needed, exhaustive)
            boxes = {f: together.boxes[f] for f in self.findings if f in together.boxes}
            labels = {f: together.label(f) for f in self.findings}
            lost = sum(reading.without_box for reading in by_reader.values())
            notes = (f"{lost} rows without a usable box",) if lost else ()
            yield Draft(image, labels, partial(regions_of, boxes, needed, frames), notes=notes)

    def _readings(self, ledger: Ledger) -> Readings:
        """Read the tables; return them by image and reader."""
        vocabulary, kaggle = Vocabulary(self.info), self._release() == "kaggle"
        if kaggle and self.split == "test":
            raise DatasetError(
                "the test part of Kaggle's release has no annotations",
                where=self.root,
                expected="split: train, or annotations/annotations_test.csv of PhysioNet",
                fix=f"split: train. The test part: {self.info.obtain}",
            )
        below = ("annotations", ".")
        path = self._find(*KAGGLE_TABLES) if kaggle else self._find(f"annotations_{self.split}.csv", below=below)
        readings, rows = read_marks(path, vocabulary, ledger)
        labels = None if kaggle else self._find_optional(f"image_labels_{self.split}.csv", below=below)
        if labels is not None:
            read_labels(labels, vocabulary, readings, ledger)
        prefix = "Kaggle" if kaggle else self.split
        everyone = {reader for by_reader in readings.values() for reader in by_reader}
        ledger.counts |= {
            f"{prefix} rows": rows,
            f"{prefix} images": len(readings),
            f"{prefix} images with boxes": sum(any(r.boxes for r in by.values()) for by in readings.values()),
            f"{prefix} readers": len(everyone - {CONSENSUS}),
        }
        return readings

    def _chosen(self, readings: Readings) -> Mapping[str, Mapping[str, Reading]]:
        """Return the readings of the readers asked for."""
        everyone = {reader for by_reader in readings.values() for reader in by_reader}
        if self.readers == "union":
            return readings
        if everyone == {CONSENSUS}:
            raise DatasetError("this part is a consensus and names no readers", where="readers", expected="union")
        if self.readers == "majority":
            return readings
        if self.readers not in everyone:
            raise DatasetError(
                f"there is no reader {self.readers!r}",
                where="readers",
                expected=", ".join(["union", "majority", *sorted(everyone)]),
            )
        return {image: {self.readers: by[self.readers]} for image, by in readings.items() if self.readers in by}

    def _see(self, ledger: Ledger, case: Case, region: Region) -> None:
        """Count the boxes that had to be clipped to their picture or lie outside it."""
        for note in region.notes:
            dropped = note.endswith("dropped")
            text = "boxes outside their picture dropped" if dropped else "boxes clipped at the edge of their picture"
            ledger.remark(text, case.case_id)
