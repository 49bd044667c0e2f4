"""Looks where the finding usually is, without looking at the picture: what grounding must beat.

The map of a finding is the mean of its regions over the *other* half of the patients, so no case meets its own truth.
Cut where it covers those regions best, the map is the best fixed region that can be had without looking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import DataError, ModelError
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.metrics.folds import patient_folds
from medground.metrics.sweep import best_threshold, threshold_grid
from medground.models.base import ModelInfo, Prediction

GRID = 112
_CHUNK = 256  # masks held as numbers at a time
FOLDS = 2


class ClassPrior:
    """Returns each finding's mean region, cross-fitted in two folds of patients.

    Scores say nothing: they are equal for all, since a prevalence taken from the other fold would only reflect which
    fold a patient fell into.

    Args:
        seed: another seed splits the patients differently.
    """

    name: ClassVar[str] = "baseline_class_prior"
    info: ClassVar[ModelInfo] = ModelInfo("Class prior (cross-fitted)", kind="baseline", licence="Apache-2.0")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._fold_of: dict[str, int] = {}
        self._maps: dict[tuple[int, str], NDArray[np.float32]] = {}
        self._regions: dict[tuple[int, str], NDArray[np.bool_]] = {}

    def fit(self, cases: Sequence[Any], findings: Sequence[str]) -> None:
        """Average the regions of each fold's complement; findings without any have no map.

        A region that cannot be read is left out: its own case says so when it is measured, and it alone.
        """
        patients = [case.patient_id or f"case {case.case_id}" for case in cases]
        fold = patient_folds(patients, FOLDS, self.seed)
        self._fold_of = {case.case_id: int(f) for case, f in zip(cases, fold, strict=True)}
        packed: dict[tuple[int, str], list[NDArray[np.uint8]]] = {}
        for case, own in zip(cases, fold, strict=True):
            for finding, mask in _masks(case, findings):
                for other in set(range(FOLDS)) - {int(own)}:
                    packed.setdefault((other, finding), []).append(np.packbits(mask))
        for key, masks in packed.items():
            self._maps[key] = _mean(masks)
            self._regions[key] = _best_cut(self._maps[key], masks)

    def map_for(self, case_id: str, finding: str) -> NDArray[np.float32] | None:
        """Return the prior of a finding for one case, ``(112, 112)``, or None where the other fold has no region."""
        if case_id not in self._fold_of:
            raise ModelError("the class prior has not seen this case's dataset", where=case_id, fix="call fit() first")
        return self._maps.get((self._fold_of[case_id], finding))

    def region_for(self, case_id: str, finding: str) -> NDArray[np.bool_] | None:
        """Return the prior cut where it covers the other fold's regions best by mean Dice, ``(112, 112)`` bool.

        None where the other fold has no region.
        """
        return None if self.map_for(case_id, finding) is None else self._regions[self._fold_of[case_id], finding]

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`."""
        shape = (len(images), len(findings))
        saliency = np.full((*shape, GRID, GRID), np.nan, dtype=np.float32)
        absent = {}
        for i, image in enumerate(images):
            for j, finding in enumerate(findings):
                prior = self.map_for(image.case_id, finding)
                if prior is None:
                    absent[i, j] = "no region of this finding among the other patients"
                else:
                    saliency[i, j] = prior
        return Prediction(
            scores=np.zeros(shape),
            probabilities=np.full(shape, 0.5),
            saliency=saliency,
            geometry=[Geometry.squash(image.size, (GRID, GRID)) for image in images],
            absent=absent,
        )

    def fingerprint(self) -> str:
        """Depends on the split; the dataset's own fingerprint stands beside it in a chunk's name."""
        return f"class-prior-1-{GRID}-{self.seed}"


def _masks(case: Any, findings: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for finding in findings:
        if finding in case.regions:
            try:
                mask = case.regions[finding].mask_at((GRID, GRID))
            except DataError:
                continue
            yield finding, mask


def _unpacked(mask: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.unpackbits(mask, count=GRID * GRID).astype(bool)


def _mean(masks: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    total = np.zeros(GRID * GRID)
    for mask in masks:
        total += _unpacked(mask)
    return (total / len(masks)).astype(np.float32).reshape(GRID, GRID)


def _best_cut(prior: NDArray[np.float32], masks: Sequence[NDArray[np.uint8]]) -> NDArray[np.bool_]:
    """Cut a map at the share of its maximum with the largest mean Dice over masks; the smallest among equals."""
    cuts = prior.ravel() >= threshold_grid()[:, None] * prior.max()  # (thresholds, pixels)
    weights, areas = cuts.T.astype(np.float32), cuts.sum(axis=1)
    total = np.zeros(len(cuts))
    for start in range(0, len(masks), _CHUNK):
        inside = np.stack([_unpacked(mask) for mask in masks[start : start + _CHUNK]])
        shared = (inside.astype(np.float32) @ weights).astype(np.float64)  # whole numbers below 2 ** 24: exact
        total += (2 * shared / (areas + inside.sum(axis=1, keepdims=True))).sum(axis=0)
    best: NDArray[np.bool_] = cuts[best_threshold(total / len(masks)) or 0]
    return best.reshape(GRID, GRID)
