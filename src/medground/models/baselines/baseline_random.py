"""Guesses: uniform random maps and scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction


class UniformRandom:
    """Returns noise, seeded by (seed, case, finding), so that batches and workers change nothing.

    Args:
        seed: another seed gives other noise.
        grid: cells of the map a side.
    """

    name: ClassVar[str] = "baseline_random"
    info: ClassVar[ModelInfo] = ModelInfo("Uniform random", kind="baseline", licence="Apache-2.0")

    def __init__(self, seed: int = 0, grid: int = 14) -> None:
        self.seed = seed
        self.grid = grid

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`."""
        drawn = [[self._draw(image.case_id, finding) for finding in findings] for image in images]
        shape = (len(images), len(findings), self.grid, self.grid)
        values = np.array(drawn).reshape(*shape[:2], -1)
        return Prediction(
            scores=values[..., 0],
            probabilities=values[..., 0],
            saliency=values[..., 1:].astype(np.float32).reshape(shape),
            geometry=[Geometry.squash(image.size, (self.grid, self.grid)) for image in images],
        )

    def fingerprint(self) -> str:
        """Depends on seed and grid."""
        return f"random-1-{self.seed}-{self.grid}"

    def _draw(self, case_id: str, finding: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """One score and one map, flat."""
        digest = hashlib.sha256(f"{self.seed}\0{case_id}\0{finding}".encode()).digest()
        return np.random.default_rng(list(digest)).random(1 + self.grid**2)
