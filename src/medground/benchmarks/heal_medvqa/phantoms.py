"""Phantoms as a gallery: pictures, masks and truth from their scenes, and the same picture without a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from medground.benchmarks.heal_medvqa.gallery import GalleryPicture, Survey, survey_of
from medground.benchmarks.heal_medvqa.lesions import pieces
from medground.benchmarks.heal_medvqa.masks import ANATOMIES, LUNGS, Mask, with_lungs
from medground.benchmarks.heal_medvqa.quartets import Quartet, quartets
from medground.benchmarks.heal_medvqa.relation import Lesion, RelationRule, place
from medground.benchmarks.heal_medvqa.table import facts_of
from medground.imaging.reading import Radiograph
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.scene import Scene, make_scene
from medground.worlds.phantom.streams import FINDINGS

_PLAN = 128  # pixels at which regions are surveyed
_TRAIN = 1_000_003  # added to the seed for the patients that counts are made over


@dataclass(frozen=True)
class SceneKey:
    """What makes one scene again."""

    seed: int
    case: int
    findings: tuple[str, ...] | None = None
    attempts: tuple[tuple[str, int], ...] = ()

    def scene(self) -> Scene:
        """Return the scene."""
        return make_scene(self.seed, self.case, self.findings, dict(self.attempts))


@dataclass(frozen=True)
class PhantomGallery:
    """Phantoms of one seed.

    Attributes:
        cases: that are asked about; as many of another seed are counted over and never asked.
        size: pixels a side.
        seed: of the cases.
        quartets: pairs of scenes in which two findings exchange their regions; never among the cases.
        rule: of the relation.
    """

    cases: int = 200
    size: int = 224
    seed: int = 0
    quartets: int = 0
    rule: RelationRule = field(default_factory=RelationRule)

    statement = "anatomies are the masks that the phantoms were drawn with"
    findings: Sequence[str] = FINDINGS
    words: Mapping[str, str] = field(default_factory=dict)
    redraws = True

    @property
    def anatomies(self) -> Sequence[str]:
        """Six thirds, the heart and two lungs; no finding lies on the aorta, which would be asked about in vain."""
        return (*(a for a in ANATOMIES if a != "aorta"), *LUNGS)

    @cached_property
    def pairs(self) -> list[Quartet]:
        """The quartets that could be made."""
        return quartets(self.seed, self.quartets)

    @cached_property
    def _keys(self) -> Mapping[str, SceneKey]:
        keys = {f"phantom-{case:06d}": SceneKey(self.seed, case) for case in range(self.cases)}
        keys |= {f"counted-{case:06d}": SceneKey(self.seed + _TRAIN, case) for case in range(self.cases)}
        for quartet in self.pairs:
            for image_id, attempts in quartet.members:
                findings = (quartet.first, quartet.second)
                keys[image_id] = SceneKey(quartet.seed, quartet.case, findings, attempts)
        return keys

    def surveys(self) -> Sequence[Survey]:
        """Every case of both seeds and every member of a quartet."""
        return self._surveys

    @cached_property
    def _surveys(self) -> Sequence[Survey]:
        return [self._survey(image_id, key) for image_id, key in self._keys.items()]

    def _survey(self, image_id: str, key: SceneKey) -> Survey:
        drawing = draw(key.scene(), _PLAN)
        masks = self._masks(drawing)
        lesions = [
            Lesion(f, mask=piece) for f, mask in drawing.findings.items() if mask.any() for piece in pieces(mask)
        ]
        placed = place(lesions, masks, self.rule)
        labels = {finding: finding in drawing.scene.findings for finding in FINDINGS}
        kind = image_id.partition("-")[0]
        facts = facts_of(
            image_id,
            placed,
            labels,
            FINDINGS,
            source="phantom",
            split={"phantom": "test", "counted": "train"}.get(kind, "quartet"),
            patient_id=f"{key.seed}-{key.case}",
            view=drawing.scene.anatomy.view,
        )
        return survey_of(facts, placed, masks)

    def picture(self, image_id: str) -> GalleryPicture:
        """Return a phantom with its masks."""
        key = self._keys[image_id]
        drawing = draw(key.scene(), self.size)
        return GalleryPicture(_radiograph(drawing, image_id, key), self._masks(drawing), dict(drawing.findings))

    def without(self, image_id: str, finding: str) -> Radiograph:
        """Return the same scene drawn without a finding: no seam, nothing left of it."""
        key = self._keys[image_id]
        return _radiograph(draw(key.scene().without(finding), self.size), image_id, key)

    def files(self, image_id: str) -> tuple[Path, ...]:
        """Return nothing: phantoms are drawn, not read."""
        del image_id
        return ()

    def fingerprint(self) -> str:
        """Return what the phantoms are made from."""
        from medground.worlds.phantom.build import recipe

        version = recipe(self.cases, self.size, self.seed)["version"]
        return f"phantom-{version}-{self.cases}-{self.size}-{self.seed}-{self.quartets}-{self.rule}"

    def _masks(self, drawing: Drawing) -> Mapping[str, Mask]:
        masks = with_lungs(drawing.anatomies)
        return {anatomy: masks[anatomy] for anatomy in self.anatomies}


def _radiograph(drawing: Drawing, image_id: str, key: SceneKey) -> Radiograph:
    pixels = drawing.pixels.astype(np.float32) / np.float32(255)
    return Radiograph(pixels, image_id, f"{key.seed}-{key.case}", "phantom", (0.0, 255.0), ("drawn",))
