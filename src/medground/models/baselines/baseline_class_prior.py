"""Looks where the finding usually is, without looking at the picture: what grounding must beat.

The map of a finding is the mean of its regions over the *other* half of the patients, so no case meets its own truth.
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
from medground.models.base import ModelInfo, Prediction

GRID = 112
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

    def fit(self, cases: Sequence[Any], findings: Sequence[str]) -> None:
        """Average the regions of each fold's complement; findings without any have no map.

        A region that cannot be read is left out: its own case says so when it is measured, and it alone.
        """
        patients = [case.patient_id or f"case {case.case_id}" for case in cases]
        fold = patient_folds(patients, FOLDS, self.seed)
        self._fold_of = {case.case_id: int(f) for case, f in zip(cases, fold, strict=True)}
        sums = {(f, finding): np.zeros((GRID, GRID)) for f in range(FOLDS) for finding in findings}
        counts = dict.fromkeys(sums, 0)
        for case, own in zip(cases, fold, strict=True):
            for finding, mask in _masks(case, findings):
                for other in set(range(FOLDS)) - {int(own)}:
                    sums[other, finding] += mask
                    counts[other, finding] += 1
        self._maps = {key: (sums[key] / counts[key]).astype(np.float32) for key in sums if counts[key]}

    def map_for(self, case_id: str, finding: str) -> NDArray[np.float32] | None:
        """Return the prior of a finding for one case, ``(112, 112)``, or None where the other fold has no region."""
        if case_id not in self._fold_of:
            raise ModelError("the class prior has not seen this case's dataset", where=case_id, fix="call fit() first")
        return self._maps.get((self._fold_of[case_id], finding))

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
