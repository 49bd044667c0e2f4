"""Looks at the middle of every picture: what a model must beat to have looked at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction

GRID = 56


class CentrePrior:
    """Returns a Gaussian around the centre of the picture, and the same score for everything.

    Args:
        sigma: standard deviation in picture widths (and heights).
    """

    name: ClassVar[str] = "baseline_centre"
    info: ClassVar[ModelInfo] = ModelInfo("Centre prior", kind="baseline", licence="Apache-2.0")

    def __init__(self, sigma: float = 0.25) -> None:
        self.sigma = sigma
        offsets = (np.arange(GRID) + 0.5) / GRID - 0.5
        profile = np.exp(-0.5 * (offsets / sigma) ** 2)
        self._map = np.outer(profile, profile).astype(np.float32)

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`."""
        shape = (len(images), len(findings))
        return Prediction(
            scores=np.zeros(shape),
            probabilities=np.full(shape, 0.5),
            saliency=np.broadcast_to(self._map, (*shape, GRID, GRID)),
            geometry=[Geometry.squash(image.size, (GRID, GRID)) for image in images],
        )

    def fingerprint(self) -> str:
        """Depends on the width alone."""
        return f"centre-1-{self.sigma}"
