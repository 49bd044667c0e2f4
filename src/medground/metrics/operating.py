"""One operating point: where a score is cut, and what an auditor asks about it.

A threshold is either stated by the maker, or taken from other patients than those that it is scored on (cross-fitted):
one that is searched on the scored cases flatters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.metrics.bootstrap import Clusters
from medground.metrics.classification import operating_points
from medground.metrics.folds import patient_folds
from medground.metrics.influence import Influence, of_mean, of_ratio
from medground.metrics.values import as_numbers

Floats = NDArray[np.float64]
MOST_POINTS = 60
"""Of a drawn curve."""


@dataclass(frozen=True)
class Calls:
    """What is called at an operating point.

    Attributes:
        truth: ``(N,)`` 1, 0, or NaN where not annotated or where the other half gives no threshold.
        called: ``(N,)`` 1 or 0.
        thresholds: that were used: one that was stated, or one a half of the patients.
    """

    truth: Floats
    called: Floats
    thresholds: tuple[float, ...]

    @property
    def counts(self) -> dict[str, int]:
        """True and false positives, false and true negatives, by their usual letters."""
        kinds = {"tp": (1, 1), "fp": (0, 1), "fn": (1, 0), "tn": (0, 0)}
        return {k: int(((self.truth == truth) & (self.called == call)).sum()) for k, (truth, call) in kinds.items()}


def youden_threshold(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Return the score from which sensitivity plus specificity is largest (Youden 1950); of several the highest.

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        scores: (N,) on any scale.

    Returns:
        The threshold (a case at it is called), or None without positives or without negatives.

    Example:
        >>> youden_threshold([0, 0, 1, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.8])
        0.4
    """
    points = operating_points(labels, scores)
    if not points.positives or not points.negatives:
        return None
    # In integers, so that equal points tie exactly.
    gained = points.tp * points.negatives - points.fp * points.positives
    return float(points.thresholds[int(np.argmax(gained))])


def calls_at(labels: ArrayLike, scores: ArrayLike, threshold: float) -> Calls:
    """Call every case at a stated threshold."""
    truth, score = as_numbers(labels), as_numbers(scores)
    return Calls(truth, (score >= threshold).astype(np.float64), (float(threshold),))


def crossfit_calls(labels: ArrayLike, scores: ArrayLike, patients: Sequence[str], seed: int = 0) -> Calls:
    """Call each half of the patients at the threshold by Youden's rule of the other half.

    Args:
        labels: (N,) 0, 1 or NaN.
        scores: (N,) on any scale.
        patients: one id an entry; no patient stands in both halves.
        seed: of the halves.
    """
    truth, score = as_numbers(labels).copy(), as_numbers(scores)
    fold, called, used = patient_folds(patients, 2, seed), np.zeros(len(score)), []
    for half in (0, 1):
        here, other = fold == half, fold != half
        threshold = youden_threshold(truth_of(labels, other), score[other])
        if threshold is None:
            truth[here] = np.nan
        else:
            called[here] = score[here] >= threshold
            used.append(threshold)
    return Calls(truth, called, tuple(used))


def truth_of(labels: ArrayLike, mask: NDArray[np.bool_]) -> Floats:
    """Return the labels under a mask, as numbers."""
    kept: Floats = as_numbers(labels)[mask]
    return kept


def rates(calls: Calls, by: Clusters) -> dict[str, Influence]:
    """Return sensitivity, specificity and the predictive values, each with what each patient adds to it.

    Args:
        calls: at the operating point.
        by: patients of the N cases.
    """
    truth, called = calls.truth, calls.called
    known = ~np.isnan(truth)
    right = np.where(called == 1, truth == 1, truth == 0).astype(np.float64)

    def share(of: NDArray[np.bool_]) -> Floats:
        return np.where(known & of, right, np.nan)

    positive, negative = known & (called == 1), known & (called == 0)
    return {
        "sensitivity": of_mean(share(truth == 1), by),
        "specificity": of_mean(share(truth == 0), by),
        "ppv": of_ratio((positive & (truth == 1)).astype(float), positive.astype(float), by, "nothing is called"),
        "npv": of_ratio((negative & (truth == 0)).astype(float), negative.astype(float), by, "everything is called"),
    }


def roc_points(labels: ArrayLike, scores: ArrayLike, most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """Return the ROC curve as (false positive rate, true positive rate) from (0, 0) to (1, 1), thinned for drawing.

    Args:
        labels: (N,) 0, 1 or NaN.
        scores: (N,).
        most: points that are kept; the ends always are.

    Returns:
        Empty without positives or without negatives.

    Example:
        >>> roc_points([0, 1], [0.2, 0.7])
        [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    """
    points = operating_points(labels, scores)
    if not points.positives or not points.negatives:
        return []
    x = np.append(0, points.fp) / points.negatives
    y = np.append(0, points.tp) / points.positives
    kept = np.unique(np.linspace(0, x.size - 1, min(most, x.size)).round().astype(int))
    return [(round(float(x[i]), 4), round(float(y[i]), 4)) for i in kept]
