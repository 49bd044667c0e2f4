"""MIMIC-CXR: 377,110 radiographs of 65,379 patients with labels read from reports, and MS-CXR's boxes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.pictures import NamedPictures
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets._mimic.tables import Image, Labels, in_split, read_boxes, read_images, read_study_labels
from medground.datasets.base import DatasetInfo
from medground.datasets.report import Ledger
from medground.errors import DatasetError
from medground.imaging.regions import Region
from medground.paths import resolve_inside

FRONTAL = frozenset({"PA", "AP"})
SUFFIXES = (".jpg", ".dcm", ".png")
BOXES = ("MS_CXR_Local_Alignment_v1.1.0.csv", "MS_CXR_Local_Alignment_v1.0.0.csv")


@dataclass(repr=False, eq=False)
class MimicCxr(PublishedDataset):
    """MIMIC-CXR as PhysioNet distributes it, as JPG or as DICOM; reports are never read.

    Args:
        split: ``test``, ``validate`` or ``train`` of MIMIC's own split, ``boxed`` (the images that MS-CXR has boxes
            for), or ``all``.
        views: ``frontal`` (PA and AP) or ``all``.
        labels: the labeller whose table is read: ``chexpert``, ``negbio``, or ``none``.
        boxes: MS-CXR's table ``MS_CXR_Local_Alignment_v1.*.csv``, or the folder that holds it; by default looked for
            beside MIMIC's tables.

    Labels belong to a study: a finding on the lateral view alone counts for the frontal one too. Blank and uncertain
    labels are unknown, never absent, unless the study was read as "No Finding".
    """

    name: ClassVar[str] = "mimic_cxr"
    folders: ClassVar[tuple[str, ...]] = ("files",)
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="MIMIC-CXR",
        findings=(
            "Atelectasis",
            "Cardiomegaly",
            "Consolidation",
            "Edema",
            "Lung Opacity",
            "Pleural Effusion",
            "Pneumonia",
            "Pneumothorax",
        ),
        further=(
            "Enlarged Cardiomediastinum",
            "Fracture",
            "Lung Lesion",
            "Pleural Other",
            "Support Devices",
        ),
        aliases={"Airspace Opacity": "Lung Opacity", "Effusion": "Pleural Effusion"},
        licence="PhysioNet credentialed access (training and data use agreement); no resharing",
        redistributable=False,
        citation=(
            "Johnson AEW, Pollard TJ, Berkowitz SJ, et al. MIMIC-CXR, a de-identified publicly available database of "
            "chest radiographs with free-text reports. Scientific Data 2019;6:317. Boxes: Boecking B, Usuyama N, "
            "Bannur S, et al. MS-CXR: Making the Most of Text Semantics to Improve Biomedical Vision-Language "
            "Processing. PhysioNet."
        ),
        obtain="PhysioNet, https://physionet.org/content/mimic-cxr-jpg/ and https://physionet.org/content/ms-cxr/ "
        "(credentialed account).",
        layout=(
            "mimic-cxr-2.0.0-split.csv.gz: the official split",
            "mimic-cxr-2.0.0-metadata.csv.gz: views",
            "mimic-cxr-2.0.0-chexpert.csv.gz or -negbio.csv.gz: labels of studies",
            "MS_CXR_Local_Alignment_v1.1.0.csv: boxes of eight findings",
            "files/pNN/pNNNNNNNN/sNNNNNNNN/: pictures, .jpg or .dcm, or copies of any size",
        ),
        published_counts={"images": 377_110, "patients": 65_379},
    )

    split: Literal["test", "validate", "train", "boxed", "all"] = "test"
    views: Literal["frontal", "all"] = "frontal"
    labels: Literal["chexpert", "negbio", "none"] = "chexpert"
    boxes: Path | None = None

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        vocabulary = Vocabulary(self.info)
        splits = self._find("mimic-cxr-2.0.0-split.csv")
        images = read_images(splits, self._find_optional("mimic-cxr-2.0.0-metadata.csv"), ledger)
        ledger.counts |= {"images": len(images), "patients": len({image.study[0] for image in images})}
        regions = self._regions(vocabulary, ledger)
        if regions:
            boxed = [image.dicom for image in images]
            ledger.join(regions, boxed, what="the split table", unit="images with boxes", larger=True)
        studies = self._studies(images, vocabulary, ledger)
        for image in in_split(images, self.split, regions):
            if self.views == "frontal" and image.view is not None and image.view not in FRONTAL:
                continue
            here = regions.get(image.dicom, {})
            labels = {f: True if f in here else studies.get(image.study[1], {}).get(f) for f in self.findings}
            shown = {f: here[f] for f in self.findings if f in here}
            yield Draft(image.dicom, labels, shown, image.study[0], image.view, keys=self._places(image))

    def _studies(self, images: Sequence[Image], vocabulary: Vocabulary, ledger: Ledger) -> Mapping[str, Labels]:
        """Return the labels of the studies of images, by the number of the study."""
        if self.labels == "none":
            return {}
        path = self._find(f"mimic-cxr-2.0.0-{self.labels}.csv")
        told = {study: labels for (_, study), labels in read_study_labels(path, vocabulary, ledger).items()}
        wanted = dict.fromkeys(image.study[1] for image in images)
        matched = ledger.join(wanted, told, what=path.name, unit="studies", larger=True)
        return {mine: told[theirs] for mine, theirs in matched.items()}

    def _regions(self, vocabulary: Vocabulary, ledger: Ledger) -> Mapping[str, Mapping[str, Region]]:
        """Return MS-CXR's boxes, or nothing where its table is absent and not asked for."""
        path = self.boxes and Path(self.boxes).expanduser()
        if path and path.is_dir():
            path = next((path / name for name in BOXES if (path / name).is_file()), path / BOXES[0])
        path = path or self._find_optional(*BOXES, below=(".", "ms-cxr", "MS-CXR"))
        if path is None and self.split == "boxed":
            raise DatasetError(
                "the boxes of MS-CXR are absent",
                where=self.root,
                expected=" or ".join(BOXES),
                fix=f"name their table: boxes: FILE. {self.info.obtain}",
            )
        return read_boxes(path, vocabulary, ledger) if path else {}

    def _places(self, image: Image) -> tuple[str, ...]:
        """Return where an image's picture may lie, by MIMIC's own naming; nothing is searched among 377,110 files."""
        top = self.root / (self.image_dir or "files")
        allowed = [top.resolve(), *(Path(folder) for folder in self.allow_outside)] if self.image_dir else []
        name = f"{image.folder}/{image.dicom}"
        path = resolve_inside(top, name, [self.root, *allowed, *map(Path, self.allow_outside)])
        return tuple(f"{path}{suffix}" for suffix in SUFFIXES)

    def _index(self) -> NamedPictures:
        return NamedPictures()
