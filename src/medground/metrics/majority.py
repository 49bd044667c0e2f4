"""The answer that most other cases have: what a model must beat that knows the questions and no picture."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from medground.metrics.folds import patient_folds


def majority_by_key(
    answers: Sequence[bool], keys: Sequence[Hashable], clusters: Sequence[str], folds: int = 5, seed: int = 0
) -> NDArray[np.float64]:
    """Return each question's majority answer for its key (a finding, say), from the other folds of patients.

    Args:
        answers: (N,) right answers.
        keys: (N,) what a question is about.
        clusters: (N,) patient of each question: none answers for itself.
        folds: of patients.
        seed: of the folds.

    Returns:
        (N,) 1 for yes, 0 for no, 0.5 where the other folds are even or do not hold the key.
    """
    right = np.asarray(answers, dtype=bool)
    fold = np.asarray(patient_folds(list(clusters), folds, seed))
    result = np.full(len(right), 0.5)
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    for members in groups.values():
        own = np.array(members)
        for index in own:
            others = right[own[fold[own] != fold[index]]]
            balance = 2 * int(others.sum()) - len(others)
            result[index] = 0.5 if balance == 0 else float(balance > 0)
    return result
