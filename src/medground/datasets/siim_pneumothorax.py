"""SIIM-ACR Pneumothorax Segmentation 2019: 12,047 NIH radiographs, 2,669 of them with masks in a relative run code."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.nih import FRAME
from medground.datasets._folder.tables import read_table
from medground.datasets.base import DatasetInfo
from medground.datasets.lazy import LazyRegions, Maker
from medground.datasets.report import Ledger
from medground.errors import RegionError
from medground.imaging import rle
from medground.imaging.regions import Region

FINDING = "Pneumothorax"
NEGATIVE = "-1"
STAGES = {2: ("stage_2_train.csv", "siim-pneumothorax-train-rle.csv"), 1: ("train-rle.csv",)}

Row = tuple[str, str]  # image and code
Codes = Mapping[str, Sequence[str]]


@dataclass(repr=False, eq=False)
class SiimPneumothorax(PublishedDataset):
    """SIIM-ACR Pneumothorax: the labelled images of stage 1 or 2, or those of a split file.

    Args:
        stage: 1 (``train-rle.csv``) or 2 (``stage_2_train.csv``); by default stage 2 where it is there.
        split_file: a table of yours, ``ImageId,EncodedPixels``, that names the cases.
        tables: the tables whose rows make the masks, by default the stage's. Rows of one image are united over all
            of them, and over the split file.
        cases_are: ``images``, or ``rows``: every row of the split is a case of its own with its image's whole mask, as
            the paper counted; the rows of one image share a patient.
    """

    name: ClassVar[str] = "siim_pneumothorax"
    folders: ClassVar[tuple[str, ...]] = ("dicom-images-train", "dicom-images-test", "stage_2_images")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="SIIM-ACR Pneumothorax",
        findings=(FINDING,),
        licence="rules of the Kaggle competition; no redistribution",
        redistributable=False,
        citation=(
            "SIIM-ACR Pneumothorax Segmentation Challenge, Society for Imaging Informatics in Medicine and American "
            "College of Radiology, 2019, on pictures of NIH ChestX-ray14 (Wang X, et al. CVPR 2017)."
        ),
        obtain="Kaggle, competition siim-acr-pneumothorax-segmentation (account, acceptance of its rules).",
        layout=(
            "train-rle.csv or stage_2_train.csv: codes of stage 1 or 2, a row a mask",
            "dicom-images-train/ or dicom-images-test/ or stage_2_images/: pictures, DICOM of 1024 x 1024, nested",
        ),
        pixels_from="nih_chestxray14",
        published_counts={"rows": 12_954, "images": 12_047, "positive images": 2_669},
    )

    stage: Literal[1, 2] | None = None
    split_file: Path | None = None
    tables: Sequence[Path] = ()
    cases_are: Literal["images", "rows"] = "images"

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        paths = list(self.tables) or [self._find(*(STAGES[self.stage] if self.stage else (*STAGES[2], *STAGES[1])))]
        rows = [row for path in paths for row in _rows(path, ledger)]
        chosen = rows if self.split_file is None else list(_rows(self.split_file, ledger))
        codes = self._united([*rows, *chosen], ledger)
        ledger.listed = set(codes)
        ledger.counts |= {
            "rows": len(rows),
            "images": len(codes),
            "positive images": sum(bool(c) for c in codes.values()),
        }
        times: dict[str, int] = defaultdict(int)
        for image, _ in chosen:
            times[image] += 1
            if times[image] == 1 or self.cases_are == "rows":
                yield _draft(image, times[image], codes[image])

    @staticmethod
    def _united(rows: Iterable[Row], ledger: Ledger) -> Codes:
        """Return the codes of every image, each once; an image without any is negative."""
        codes: dict[str, dict[str, None]] = defaultdict(dict)
        negative = set()
        for image, code in rows:
            if code == NEGATIVE:
                negative.add(image)
                codes.setdefault(image, {})
            else:
                codes[image][code] = None
        mixed = [image for image in negative if codes[image]]
        if mixed:
            ledger.remark("images with both a mask and a row that says there is none; the mask counts", *sorted(mixed))
        return {image: list(parts) for image, parts in codes.items()}


def _rows(path: Path, ledger: Ledger) -> Iterator[Row]:
    """Yield image and code of every row; names and values of the published files carry blanks."""
    for line, (image, code) in enumerate(read_table(path, ["ImageId", "EncodedPixels"]).iter_rows(), start=2):
        if image is None or code is None:
            ledger.problem("a row lacks its image or its code", f"{path.name} row {line}", got=f"{image}, {code}")
        else:
            yield image, code


def _draft(image: str, time: int, codes: Sequence[str]) -> Draft:
    regions = LazyRegions({FINDING: Maker(partial(_region, image, tuple(codes)), "|".join(codes))} if codes else {})
    name = image if time == 1 else f"{image}#{time}"
    return Draft(name, {FINDING: bool(codes)}, regions, image, keys=(image,))


def _region(image: str, codes: tuple[str, ...]) -> Region:
    """Return the union of all codes of an image."""
    try:
        return Region.union(*(Region.from_counts(FRAME, rle.counts_from_siim(code, FRAME)) for code in codes))
    except RegionError as error:
        raise RegionError(error.what, where=image, expected=error.expected, got=error.got) from None
