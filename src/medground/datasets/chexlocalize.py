"""CheXlocalize: the CheXpert validation and test radiographs with masks of ten findings, outlines of thirteen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from medground.datasets._chexlocalize.ground_truth import Parts, Truth, read_masks, read_outlines
from medground.datasets._folder.absent import absent
from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.tables import read_all, read_json, truth
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.base import DatasetInfo
from medground.datasets.lazy import as_regions
from medground.datasets.report import Ledger
from medground.errors import DatasetError
from medground.imaging.regions import Region

FOLDERS = ("CheXlocalize", "CheXpert", ".")
LABELS = {"test": ("test_labels.csv",), "val": ("val_labels.csv", "valid.csv", "val.csv")}


@dataclass(frozen=True)
class _Row:
    """A row of the label table."""

    labels: Mapping[str, bool | None]
    view: str


@dataclass(repr=False, eq=False)
class CheXlocalize(PublishedDataset):
    """CheXlocalize: the validation or test images of CheXpert with masks and outlines of findings.

    Args:
        split: ``test`` (668 images, the paper's) or ``val`` (234).
        ground_truth: ``both``: the masks of the segmentation file, and outlines for the findings it lacks (Fracture,
            Pneumonia, Pleural Other); ``segmentations`` or ``annotations``: one file alone.
        views: ``all``, or only ``frontal`` or ``lateral`` images.

    An image that the ground truth does not name has labels and no regions. A positive label without a region is
    undefined for grounding, never a miss.
    """

    name: ClassVar[str] = "chexlocalize"
    folders: ClassVar[tuple[str, ...]] = ("CheXpert/{}", "{}")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="CheXlocalize",
        findings=(
            "Airspace Opacity",
            "Atelectasis",
            "Cardiomegaly",
            "Consolidation",
            "Edema",
            "Enlarged Cardiomediastinum",
            "Fracture",
            "Lung Lesion",
            "Pleural Effusion",
            "Pleural Other",
            "Pneumonia",
            "Pneumothorax",
            "Support Devices",
        ),
        further=("No Finding",),
        aliases={"Lung Opacity": "Airspace Opacity"},
        prompts={"Pleural Other": "other pleural abnormality"},
        licence="Stanford AIMI research agreement; no redistribution",
        redistributable=False,
        citation=(
            "Saporta A, Gui X, Agrawal A, et al. Benchmarking saliency methods for chest X-ray interpretation. "
            "Nature Machine Intelligence 2022;4:867-878."
        ),
        obtain="Stanford AIMI, https://stanfordaimi.azurewebsites.net (account and agreement), dataset CheXlocalize.",
        layout=(
            "CheXlocalize/gt_segmentations_test.json or gt_segmentations_test.json: masks of ten findings",
            "CheXlocalize/gt_annotations_test.json or gt_annotations_test.json: outlines",
            "CheXpert/test_labels.csv or test_labels.csv: labels (val_labels.csv or valid.csv of the other part)",
            "CheXpert/test/ or test/: pictures, patient/study/view, JPEG (val/ or valid/ of the other part)",
        ),
        published_counts={
            "test images": 668,
            "test images with ground truth": 499,
            "val images": 234,
            "val images with ground truth": 187,
        },
    )

    split: Literal["test", "val"] = "test"
    ground_truth: Literal["both", "segmentations", "annotations"] = "both"
    views: Literal["all", "frontal", "lateral"] = "all"

    def _folders(self) -> list[str]:
        names = ("val", "valid") if self.split == "val" else ("test",)
        return [pattern.format(name) for pattern in self.folders for name in names]

    @staticmethod
    def _picture_key(path: Path) -> str:
        """Return what the ground truth calls a picture: ``patient_study_view``."""
        return "_".join([*path.parts[-3:-1], path.stem])

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        rows = self._rows(ledger)
        located = self._located(ledger)
        ledger.listed = {*rows, *located}
        ledger.counts |= {
            f"{self.split} images": len(rows) or len(located),
            f"{self.split} images with ground truth": len(located),
        }
        unlabelled = [case for case in located if case not in rows]
        if rows and unlabelled:
            ledger.remark("images with ground truth but without a row of labels", *unlabelled)
        for case in dict.fromkeys([*rows, *located]):
            view = rows[case].view if case in rows else _view(case)
            if self.views == "all" or (view == "LATERAL") == (self.views == "lateral"):
                parts = {f: located[case][f] for f in self.findings if f in located.get(case, {})}
                labels = self._labels(case, rows.get(case), parts, ledger)
                yield Draft(case, labels, as_regions(parts), case.partition("_")[0], view)

    def _labels(self, case: str, row: _Row | None, parts: Parts, ledger: Ledger) -> Mapping[str, bool | None]:
        """Return labels of the table; a region implies presence, whatever the table says."""
        told = row.labels if row else {}
        for finding in self.findings:
            if finding in parts and told.get(finding) is False:
                ledger.remark("findings with a region whose label is 0; the region counts", f"{case}: {finding}")
            if finding not in parts and told.get(finding) and finding != "No Finding":
                ledger.remark("positive labels without ground truth; undefined, not a miss", f"{case}: {finding}")
        return {f: True if f in parts else told.get(f) for f in self.findings}

    def _rows(self, ledger: Ledger) -> Mapping[str, _Row]:
        """Read the label table; it has several names, and its paths several beginnings."""
        path = self._find_optional(*LABELS[self.split], below=FOLDERS)
        if path is None:
            ledger.remark("table of labels is absent: only findings with a region are known", LABELS[self.split][0])
            return {}
        vocabulary, rows = Vocabulary(self.info), dict[str, _Row]()
        table = read_all(path)
        if "Path" not in table.columns:
            raise DatasetError("a table has no column 'Path'", where=path, got=", ".join(table.columns))
        names = {column: name for column in table.columns if (name := vocabulary.get(column))}
        for line, row in enumerate(table.iter_rows(named=True), start=2):
            where = f"{path.name} row {line}"
            if row["Path"] is None:
                ledger.problem("a row lacks its image", where)
                continue
            case = self._picture_key(Path(PurePosixPath(row["Path"])))
            lateral = (row.get("Frontal/Lateral") or "").casefold() == "lateral"
            view = "LATERAL" if lateral else row.get("AP/PA") or _view(case)
            labelled = _Row({name: truth(row[column]) for column, name in names.items()}, view)
            if rows.setdefault(case, labelled) != labelled:
                ledger.problem("an image has two rows that differ", where, got=case)
        return rows

    def _located(self, ledger: Ledger) -> Truth:
        """Return the regions of every image of the ground truth; masks go before outlines of the same finding."""
        truth: Truth = {}
        for kind, read in (("annotations", read_outlines), ("segmentations", read_masks)):
            if self.ground_truth in {"both", kind}:
                path = self._ground_truth_file(kind, ledger)
                for case, parts in (read(path, Vocabulary(self.info), ledger) if path else {}).items():
                    truth.setdefault(case, {}).update(parts)
        return truth

    def _ground_truth_file(self, kind: str, ledger: Ledger) -> Path | None:
        """Return one of the two files; None where it is absent and the other one may serve alone."""
        names = [f"gt_{k}_{self.split}.json" for k in ("segmentations", "annotations")]
        name = f"gt_{kind}_{self.split}.json"
        path = self._find_optional(name, below=FOLDERS)
        if path is None and (self.ground_truth != "both" or not self._find_optional(*names, below=FOLDERS)):
            raise absent(self.root, [name], FOLDERS, self.info)
        if path is None:
            ledger.remark("file of ground truth is absent; the other one serves alone", name)
        return path

    def human_points(self) -> Mapping[str, Mapping[str, tuple[tuple[float, float], ...]]]:
        """Return the points that the human benchmark named most telling, by case and finding.

        Raises:
            DatasetError: the file ``hb_salient_pt_<split>.json`` is absent or malformed.
        """
        path = self._find(f"hb_salient_pt_{self.split}.json", below=FOLDERS)
        vocabulary = Vocabulary(self.info)
        return {
            case: {
                vocabulary.get(t) or t: tuple((float(x), float(y)) for x, y in points) for t, points in tasks.items()
            }
            for case, tasks in read_json(path, dict).items()
        }

    def human_hits(self) -> Mapping[str, Mapping[str, bool | None]]:
        """Return whether any human point, cut to whole numbers, lies in the region.

        None where there is no region, or where the humans named no point.
        """
        points = self.human_points()
        return {
            case.case_id: {f: _hit(case.regions, f, points.get(case.case_id, {}).get(f, ())) for f in self.findings}
            for case in self.cases()
        }


def _hit(regions: Mapping[str, Region], finding: str, points: Sequence[tuple[float, float]]) -> bool | None:
    if finding not in regions or not points:
        return None
    region = regions[finding]
    return any(region.contains(int(x), int(y)) for x, y in points)


def _view(case: str) -> str:
    return "LATERAL" if case.casefold().endswith("lateral") else "FRONTAL"
