"""The answer that most other cases have: what a model must beat that knows the questions and no picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.metrics.folds import patient_folds


def majority_by_key(
    answers: Sequence[bool],
    keys: Sequence[Hashable],
    clusters: Sequence[str],
    folds: int = 5,
    seed: int = 0,
    *,
    balanced: bool = False,
) -> NDArray[np.float64]:
    """Return each question's majority answer for its key (a finding, say), from the other folds of patients.

    Args:
        answers: (N,) right answers.
        keys: (N,) what a question is about.
        clusters: (N,) patient of each question: none answers for itself.
        folds: of patients.
        seed: of the folds.
        balanced: weigh each answer by how rare it is in the other folds, as balanced accuracy does.

    Returns:
        (N,) 1 for yes, 0 for no, 0.5 where the other folds are even or do not hold the key.
    """
    right = np.asarray(answers, dtype=bool)
    fold = np.asarray(patient_folds(list(clusters), folds, seed))
    result = np.full(len(right), 0.5)
    for held in range(folds):
        others = np.flatnonzero(fold != held).tolist()
        learnt = majorities(right[others], [keys[i] for i in others], balanced=balanced)
        for index in np.flatnonzero(fold == held).tolist():
            result[index] = learnt.get(keys[index], 0.5)
    return result


def majorities(answers: ArrayLike, keys: Sequence[Hashable], *, balanced: bool = False) -> dict[Hashable, float]:
    """Return key -> the commoner answer: 1 for yes, 0 for no, 0.5 where they are even.

    Args:
        answers: (N,) right answers.
        keys: (N,) what a question is about.
        balanced: compare the shares of all yes and of all no that a key holds, instead of counts.
    """
    right = np.asarray(answers, dtype=bool)
    yes = Counter(key for key, answer in zip(keys, right, strict=True) if answer)
    no = Counter(key for key, answer in zip(keys, right, strict=True) if not answer)
    all_yes, all_no = (max(yes.total(), 1), max(no.total(), 1)) if balanced else (1, 1)
    # In whole numbers, so that even shares are even.
    return {
        key: 0.5 if yes[key] * all_no == no[key] * all_yes else float(yes[key] * all_no > no[key] * all_yes)
        for key in yes.keys() | no.keys()
    }
