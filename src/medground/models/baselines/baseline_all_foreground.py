"""Marks everything: the floor of every searched Dice and IoU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction

GRID = 14


class AllForeground:
    """Returns a flat map of ones, and the same score for everything."""

    name: ClassVar[str] = "baseline_all_foreground"
    info: ClassVar[ModelInfo] = ModelInfo("All foreground", kind="baseline", licence="Apache-2.0")

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`."""
        shape = (len(images), len(findings))
        return Prediction(
            scores=np.zeros(shape),
            probabilities=np.full(shape, 0.5),
            saliency=np.ones((*shape, GRID, GRID), dtype=np.float32),
            geometry=[Geometry.squash(image.size, (GRID, GRID)) for image in images],
        )

    def fingerprint(self) -> str:
        """Nothing can vary."""
        return "all-foreground-1"
