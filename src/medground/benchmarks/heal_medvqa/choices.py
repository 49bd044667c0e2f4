"""What a run file may choose, and the gallery that it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from medground.benchmarks.heal_medvqa.cases import CaseGallery
from medground.benchmarks.heal_medvqa.donors import DonorRule
from medground.benchmarks.heal_medvqa.draw import Draw
from medground.benchmarks.heal_medvqa.gallery import Gallery
from medground.benchmarks.heal_medvqa.mask_folders import MaskFolder
from medground.benchmarks.heal_medvqa.masks import CXAS, MaskSource, Stripes
from medground.benchmarks.heal_medvqa.pastes import PasteRule
from medground.benchmarks.heal_medvqa.phantoms import PhantomGallery
from medground.benchmarks.heal_medvqa.relation import RelationRule
from medground.benchmarks.heal_medvqa.released_gallery import ReleasedDataset, ReleasedGallery
from medground.datasets.base import Dataset
from medground.datasets.phantom import Phantom
from medground.errors import ConfigError


@dataclass(frozen=True)
class MaskChoice:
    """Where anatomy masks of a dataset come from.

    Attributes:
        source: ``folder``: the user's masks; ``thirds`` or ``halves`` of the picture: a crude stand-in.
        root: the folder.
        labels: number -> label, for maps of label numbers.
        names: anatomy -> labels that make it up; ``cxas``: those of CXAS; None: labels are our names.
        order: pixel order of run lengths; None: told from the masks.
        said: what the masks are, in one sentence, for reports.
    """

    source: Literal["folder", "thirds", "halves"] = "thirds"
    root: Path | None = None
    labels: Mapping[int, str] | None = None
    names: Mapping[str, Sequence[str]] | Literal["cxas"] | None = None
    order: Literal["row", "column"] | None = None
    said: str = "anatomy masks of the user's"

    def open(self) -> MaskSource:
        """Return the source.

        Raises:
            ConfigError: a folder is asked for and none is named.
        """
        if self.source != "folder":
            return Stripes(self.source == "thirds")
        if self.root is None or not self.root.is_dir():
            raise ConfigError(
                "the folder of anatomy masks is not there",
                where="benchmark.masks.root",
                expected="a folder",
                got=self.root,
                fix="masks: {source: folder, root: FOLDER}",
            )
        names = CXAS if self.names == "cxas" else self.names
        return MaskFolder(self.root, self.labels, names, self.order, self.said)


@dataclass(frozen=True)
class Choices:
    """Every choice of a build and of its pastes.

    Attributes:
        draw: of questions.
        relation: which findings lie where.
        paste: of visual perturbations.
        donor: whose pixels are pasted.
        masks: where anatomies come from; phantoms have their own.
        quartets: swapped quartets of phantoms.
        longest: side that pictures are shrunk to; 0: as they are.
        train_share: patients that counts are made over and that are never asked about.
    """

    draw: Draw = field(default_factory=Draw)
    relation: RelationRule = field(default_factory=RelationRule)
    paste: PasteRule = field(default_factory=PasteRule)
    donor: DonorRule = "prefers_normal"
    masks: MaskChoice | None = None
    quartets: int = 40
    longest: int = 512
    train_share: float = 0.3

    def gallery(self, dataset: Dataset) -> Gallery:
        """Return the gallery of a dataset.

        Raises:
            ConfigError: the dataset has no anatomy masks of its own and no source is named.
        """
        if isinstance(dataset, Phantom):
            return PhantomGallery(dataset.count, dataset.size, dataset.seed, self.quartets, self.relation)
        if isinstance(dataset, ReleasedDataset):
            return ReleasedGallery(dataset, self.longest)
        if self.masks is None:
            raise ConfigError(
                "where anatomies are is not known for this dataset",
                where=f"benchmark.masks, for {dataset.name}",
                expected="a source of anatomy masks",
                fix="masks: {source: folder, root: FOLDER}, or, as a crude stand-in, masks: {source: thirds}",
            )
        return CaseGallery(dataset, self.masks.open(), self.relation, self.longest, self.train_share, self.draw.seed)

    def in_words(self) -> dict[str, Any]:
        """Return the choices as a report prints them."""
        return {
            "negatives": ", ".join(self.draw.samplers),
            "questions an image": f"{self.draw.least} to {self.draw.most}",
            "relation": f"share of a lesion on the anatomy above {self.relation.threshold:g}, {self.relation.lesions}",
            "paste": self.paste.in_words(),
            "donor": self.donor,
        }
