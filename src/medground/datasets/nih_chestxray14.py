"""NIH ChestX-ray14: 112,120 radiographs with text-mined labels, 880 of them with 984 boxes drawn by hand."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.nih import FRAME, patient_of, plain_number
from medground.datasets._folder.tables import number, read_rows, read_table
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.base import DatasetInfo
from medground.datasets.report import Ledger
from medground.errors import RegionError
from medground.imaging.regions import Box, Region

LABEL_TABLES = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")

MOST_YEARS = 120
"""Above this the table holds a slip of the pen: it has ages of 411."""

Boxes = Mapping[str, Mapping[str, Region]]


class _Entry(NamedTuple):
    """A row of the label table; ``positives`` are the classes it names."""

    positives: frozenset[str]
    patient_id: str
    view: str | None
    sex: str | None = None
    age: str | None = None

    @property
    def traits(self) -> Mapping[str, str]:
        """What the table says of the patient."""
        return {name: value for name, value in (("sex", self.sex), ("age", self.age)) if value}


@dataclass(repr=False, eq=False)
class NihChestXray14(PublishedDataset):
    """ChestX-ray14 as the NIH distributes it, or as Kaggle mirrors it.

    Args:
        split: ``boxed`` (the images with boxes, which the paper grounds on), ``test`` or ``train_val`` (the official
            lists), or ``all``.

    Image labels come from ``Data_Entry_2017``; without that file only the boxes' own classes are known.
    """

    name: ClassVar[str] = "nih_chestxray14"
    folders: ClassVar[tuple[str, ...]] = ("images", "images_*")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="NIH ChestX-ray14",
        findings=(
            "Atelectasis",
            "Cardiomegaly",
            "Effusion",
            "Infiltration",
            "Mass",
            "Nodule",
            "Pneumonia",
            "Pneumothorax",
        ),
        further=("Consolidation", "Edema", "Emphysema", "Fibrosis", "Hernia", "Pleural Thickening"),
        aliases={"Infiltrate": "Infiltration"},
        prompts={"Effusion": "pleural effusion", "Mass": "lung mass", "Nodule": "lung nodule"},
        licence="no restriction on use; attribution, the link and the citation are asked for",
        redistributable=True,
        citation=(
            "Wang X, Peng Y, Lu L, Lu Z, Bagheri M, Summers RM. ChestX-ray8: Hospital-scale Chest X-ray Database and "
            "Benchmarks on Weakly-Supervised Classification and Localization of Common Thorax Diseases. "
            "IEEE CVPR 2017, 3462-3471."
        ),
        obtain="NIH Clinical Center, https://nihcc.app.box.com/v/ChestXray-NIHCC, freely.",
        layout=(
            "BBox_List_2017.csv: 984 boxes",
            "Data_Entry_2017_v2020.csv or Data_Entry_2017.csv: image labels, patients, views",
            "test_list.txt: official test list, for split: test",
            "train_val_list.txt: official training list, for split: train_val",
            "images/ or images_*/images/ or images_*/: pictures, PNG of 1024 x 1024 or copies of any size",
        ),
        published_counts={
            "boxes": 984,
            "images with boxes": 880,
            "patients with boxes": 726,
            "images": 112_120,
            "patients": 30_805,
        },
    )

    split: Literal["boxed", "test", "train_val", "all"] = "boxed"

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        boxes = self._boxes(ledger)
        entries = self._entries(ledger)
        labels = cache(partial(_labels, tuple(self.findings)))  # few combinations serve all images
        chosen = list(self._chosen(boxes, entries))
        if entries and chosen:
            ledger.join(chosen, entries, what="the table of image labels", unit="images", larger=True)
        for image in chosen:
            entry, regions = entries.get(image), boxes.get(image, {})
            named = entry.positives if entry else None
            if entries and entry is None:
                ledger.remark("images without a row of image labels; what no box shows is unknown", image)
            if named is not None and not named.issuperset(regions):
                ledger.remark("images whose boxed finding is not among their image labels; the box counts", image)
            yield Draft(
                image,
                labels(named, frozenset(regions)),
                {f: regions[f] for f in self.findings if f in regions},
                entry.patient_id if entry else patient_of(image),
                entry.view if entry else None,
                traits=entry.traits if entry else {},
            )

    def _chosen(self, boxes: Boxes, entries: Mapping[str, _Entry]) -> Iterable[str]:
        """Return the images of the split: boxed ones in order of their names, others in the order of their table."""
        if self.split == "boxed":
            return sorted(boxes)
        if self.split == "all":
            self._find(*LABEL_TABLES)
            return entries
        listed = [Path(row[0]).stem for row in read_rows(self._find(f"{self.split}_list.txt"))]
        return dict.fromkeys(listed)

    def _boxes(self, ledger: Ledger) -> Boxes:
        """Read the box table by position: its header has nine fields and its rows six, or nine."""
        path = self._find("BBox_List_2017.csv")
        vocabulary = Vocabulary(self.info)
        regions: dict[str, dict[str, Region]] = defaultdict(dict)
        count = 0
        for line, row in enumerate(read_rows(path), start=1):
            where, sizes = f"{path.name} line {line}", [number(field) for field in row[2:6]]
            if line == 1 and None in sizes:
                continue
            finding = vocabulary.get(row[1]) if len(row) > 1 else None
            if finding is None or len(sizes) < 4 or None in sizes:
                ledger.problem(
                    "a box cannot be read", where, expected="image, finding, x, y, w, h", got=", ".join(row)[:120]
                )
                continue
            try:
                region = Region.from_boxes(FRAME, [Box.from_xywh(*(s for s in sizes if s is not None))])
            except RegionError as error:
                ledger.problem(error.what, where, expected=error.expected, got=error.got)
                continue
            image, count = Path(row[0]).stem, count + 1
            earlier = regions[image].get(finding)
            regions[image][finding] = Region.union(earlier, region) if earlier else region
        ledger.counts |= {
            "boxes": count,
            "images with boxes": len(regions),
            "patients with boxes": len({patient_of(image) for image in regions}),
        }
        return regions

    def _entries(self, ledger: Ledger) -> Mapping[str, _Entry]:
        """Read the image labels; its header's brackets hold commas, so columns are taken by name."""
        path = self._find_optional(*LABEL_TABLES)
        if path is None:
            ledger.remark("table of image labels is absent: only boxed findings are known", LABEL_TABLES[0])
            return {}
        further = ["Patient ID", "View Position", "Patient Gender", "Patient Sex", "Patient Age"]
        frame = read_table(path, ["Image Index", "Finding Labels"], further, ledger=ledger)
        read_labels = cache(partial(_positives, Vocabulary(self.info)))
        entries: dict[str, _Entry] = {}
        for line, (image, text, patient, view, gender, sex, age) in enumerate(frame.iter_rows(), start=2):
            positives, strange = read_labels(text or "")
            where = f"{path.name} line {line}"
            if image is None or text is None or strange:
                ledger.problem("a row of image labels cannot be read", where, got=strange or image)
                continue
            stem = Path(image).stem
            entry = _Entry(
                positives,
                plain_number(patient) if patient else patient_of(stem),
                view.upper() if view else None,
                gender or sex,
                years(age),
            )
            if entries.setdefault(stem, entry) != entry:
                ledger.problem("an image has two rows that differ", where, got=image)
        ledger.listed = set(entries)
        ledger.counts |= {"images": len(entries), "patients": len({e.patient_id for e in entries.values()})}
        return entries


def years(age: str | None) -> str | None:
    """Return an age in whole years: ``058Y``, as the first edition writes it, is 58; what is no age is not known.

    >>> years("058Y"), years("63"), years("411"), years("011M")
    ('58', '63', None, None)
    """
    digits = (age or "").strip().upper().removesuffix("Y")
    return str(int(digits)) if digits.isdecimal() and int(digits) <= MOST_YEARS else None


def _labels(
    findings: tuple[str, ...], named: frozenset[str] | None, boxed: frozenset[str]
) -> Mapping[str, bool | None]:
    """Return labels: a box implies presence; a class that no image label names is absent, or unknown without labels."""
    unnamed = None if named is None else False
    return {f: True if f in boxed or f in (named or ()) else unnamed for f in findings}


def _positives(vocabulary: Vocabulary, text: str) -> tuple[frozenset[str], str | None]:
    """Return the classes of ``A|B`` (none for ``No Finding``), and the first name that is no class."""
    names = [name.strip() for name in text.split("|") if name.strip().casefold() not in {"", "no finding"}]
    known = {name: vocabulary.get(name) for name in names}
    strange = next((name for name, finding in known.items() if finding is None), None)
    return frozenset(finding for finding in known.values() if finding), strange
