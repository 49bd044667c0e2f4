"""ChestX-Det10 and ChestX-Det: NIH radiographs with boxes (and polygons) agreed on by three radiologists."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.nih import FRAME
from medground.datasets._folder.tables import read_json
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.base import DatasetInfo
from medground.datasets.report import Ledger
from medground.errors import DatasetError, RegionError
from medground.imaging.regions import Region

Variant = Literal["chestx_det10", "chestx_det"]
TABLES: dict[Variant, str] = {"chestx_det10": "{}.json", "chestx_det": "ChestX_Det_{}.json"}
TEN = (
    "Atelectasis",
    "Calcification",
    "Consolidation",
    "Effusion",
    "Emphysema",
    "Fibrosis",
    "Fracture",
    "Mass",
    "Nodule",
    "Pneumothorax",
)
THREE_MORE = ("Cardiomegaly", "Diffuse Nodule", "Pleural Thickening")


@dataclass(repr=False, eq=False)
class ChestXDet(PublishedDataset):
    """ChestX-Det10 (ten classes, boxes) or ChestX-Det (thirteen classes, boxes and polygons).

    Args:
        split: the published ``test`` or ``train`` part, or ``all``.
        variant: ``chestx_det10`` (``test.json``, the paper's) or ``chestx_det`` (``ChestX_Det_test.json``); by default
            the one that is there, the paper's first. All of its classes are evaluated where ``findings`` is not given.
        shapes: ``boxes``, or ``polygons`` of ChestX-Det.
    """

    name: ClassVar[str] = "chestx_det"
    folders: ClassVar[tuple[str, ...]] = ("test_data", "train_data")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="ChestX-Det",
        findings=TEN,
        further=THREE_MORE,
        prompts={"Effusion": "pleural effusion", "Mass": "lung mass", "Nodule": "lung nodule"},
        licence="annotations of ChestX-Det Apache-2.0, of ChestX-Det10 not stated; pictures under the terms of the NIH",
        redistributable=True,
        citation=(
            "Liu J, Lian J, Yu Y. ChestX-Det10: Chest X-ray Dataset on Detection of Thoracic Abnormalities. "
            "arXiv:2006.10550; Lian J, et al. A Structure-Aware Relation Network for Thoracic Diseases Detection and "
            "Segmentation. IEEE TMI 2021."
        ),
        obtain="github.com/Deepwise-AILab, repositories ChestX-Det10-Dataset and ChestX-Det-Dataset, freely.",
        layout=(
            "test.json or ChestX_Det_test.json: annotations of the test part",
            "train.json or ChestX_Det_train.json: annotations of the training part",
            "test_data/: pictures of the test part, PNG of 1024 x 1024 or copies of any size",
            "train_data/: pictures of the training part",
        ),
        pixels_from="nih_chestxray14",
        published_counts={
            "ChestX-Det10 test images": 542,
            "ChestX-Det10 test boxes": 1_476,
            "ChestX-Det test images": 553,
            "ChestX-Det test boxes": 1_734,
            "ChestX-Det train images": 3_025,
            "ChestX-Det train boxes": 7_905,
        },
    )

    split: Literal["test", "train", "all"] = "test"
    variant: Variant | None = None
    shapes: Literal["boxes", "polygons"] = "boxes"

    def _default_findings(self) -> tuple[str, ...]:
        return tuple(sorted(TEN + THREE_MORE)) if self._variant() == "chestx_det" else TEN

    def _variant(self) -> Variant:
        """Return the variant asked for, or the first that is there."""
        if self.variant is not None:
            return self.variant
        there = (v for v, name in TABLES.items() if any(self._find_optional(name.format(s)) for s in self._splits()))
        return next(there, "chestx_det10")

    def _splits(self) -> Sequence[str]:
        return ("test", "train") if self.split == "all" else (self.split,)

    def _folders(self) -> Sequence[str]:
        return [f"{split}_data" for split in self._splits()]

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        variant = self._variant()
        if self.shapes == "polygons" and variant == "chestx_det10":
            raise DatasetError("ChestX-Det10 has no polygons", where="shapes", expected="boxes, or variant: chestx_det")
        annotated = TEN if variant == "chestx_det10" else TEN + THREE_MORE
        records = [record for split in self._splits() for record in self._records(variant, split, ledger)]
        by_image: dict[str, list[_Record]] = {}
        for record in records:
            by_image.setdefault(record.image, []).append(record)
        ledger.listed = set(by_image)
        repeated = [image for image, entries in by_image.items() if len(entries) > 1]
        if repeated:
            ledger.remark("images with several records; their boxes are united", *repeated)
        for image, entries in by_image.items():
            shapes = {f: [r.shapes[f] for r in entries if f in r.shapes] for f in self.findings}
            regions = {f: Region.union(*(part for parts in shapes[f] for part in parts)) for f in shapes if shapes[f]}
            yield Draft(image, {f: f in regions if f in annotated else None for f in self.findings}, regions)

    def _records(self, variant: Variant, split: str, ledger: Ledger) -> list["_Record"]:
        path = self._find(TABLES[variant].format(split))
        vocabulary = Vocabulary(self.info)
        records = []
        for place, content in enumerate(read_json(path, list)):
            if record := _read(content, f"{path.name} record {place}", vocabulary, self.shapes, ledger):
                records.append(record)
        title = f"{'ChestX-Det10' if variant == 'chestx_det10' else 'ChestX-Det'} {split}"
        ledger.counts |= {f"{title} images": len(records), f"{title} boxes": sum(r.objects for r in records)}
        return records


@dataclass(frozen=True)
class _Record:
    """One record of the JSON: an image and its objects, as one region each."""

    image: str
    shapes: Mapping[str, Sequence[Region]]
    objects: int


def _read(content: Any, where: str, vocabulary: Vocabulary, shapes: str, ledger: Ledger) -> _Record | None:
    """Return a record; ``syms`` and the list of shapes run in parallel, and a class may come several times."""
    parts = [content.get(key) if isinstance(content, dict) else None for key in ("syms", "boxes", shapes)]
    syms, boxes, drawn = (part if isinstance(part, list) else None for part in parts)
    name = content.get("file_name") if isinstance(content, dict) else None
    if not isinstance(name, str) or syms is None or boxes is None or drawn is None:
        ledger.problem("a record is malformed", where, expected=f"file_name, syms, boxes, {shapes}")
        return None
    if not len(syms) == len(boxes) == len(drawn):
        got = f"{len(syms)}, {len(boxes)}, {len(drawn)}"
        ledger.problem("syms, boxes and polygons differ in number", f"{where}, {name}", expected="one each", got=got)
        return None
    regions: dict[str, list[Region]] = {}
    make = Region.from_boxes if shapes == "boxes" else Region.from_polygons
    for sym, shape in zip(syms, drawn, strict=True):
        finding = vocabulary.get(str(sym))
        if finding is None:
            ledger.problem(f"{sym!r} is no class", f"{where}, {name}", expected=", ".join(vocabulary.names))
            continue
        try:
            region = make(FRAME, [shape])
        except RegionError as error:
            ledger.problem(error.what, f"{where}, {name}, {sym}", expected=error.expected, got=error.got)
        else:
            regions.setdefault(finding, []).append(region)
    return _Record(Path(name).stem, regions, len(syms))
