"""Splits by patient that depend on nothing but the ids and a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def patient_folds(patients: Sequence[str], folds: int = 2, seed: int = 0) -> NDArray[np.intp]:
    """Return the fold of every entry, ``(N,)``; entries of one patient share it.

    Patients are ordered by a hash of (seed, id) and dealt out in turn, so that the folds differ by at most one patient
    and neither the order of the entries nor their number per patient matters.

    Args:
        patients: one id an entry.
        folds: how many folds, at least 2.
        seed: another seed gives another split.

    >>> patient_folds(["a", "b", "a", "c"]).tolist()
    [0, 0, 0, 1]
    """
    unique = sorted(set(patients), key=lambda p: hashlib.sha256(f"{seed}:{p}".encode()).digest())
    fold = {patient: i % folds for i, patient in enumerate(unique)}
    return np.array([fold[p] for p in patients], dtype=np.intp)
