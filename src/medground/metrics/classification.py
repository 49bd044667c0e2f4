"""Recognition: AUC, average precision, F1 and their kin, from labels that may be missing.

Labels are 0, 1, or NaN (None) where a finding was not annotated; such pairs are left out everywhere. A case is called
positive where its probability is at or above the threshold. All figures of one class follow from the counts of true
and false positives at its distinct scores, so ties are handled once, in `operating_points`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics.values import (
    NO_ANNOTATION,
    NO_NEGATIVES,
    NO_POSITIVES,
    Value,
    as_numbers,
    mean_defined,
)

ALL_CALLED_ALIKE = "every case is called alike"
Metric = Callable[[ArrayLike, ArrayLike], Value]
"""A metric of one class: labels (N,) and scores (N,) to a value."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of one class, or of several pooled, at one threshold."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Annotated cases."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def accuracy(self) -> Value:
        """Share of cases called rightly."""
        return _share(self.tp + self.tn, self.n, self.n, NO_ANNOTATION)

    @property
    def f1(self) -> Value:
        """2 tp / (2 tp + fp + fn); undefined without positives."""
        reason = NO_POSITIVES if self.n else NO_ANNOTATION
        return _share(2 * self.tp, 2 * self.tp + self.fp + self.fn if self.tp + self.fn else 0, self.n, reason)

    @property
    def mcc(self) -> Value:
        """Matthews correlation; undefined without positives or negatives, or where all cases are called alike."""
        positives, negatives, called = self.tp + self.fn, self.fp + self.tn, self.tp + self.fp
        product = positives * negatives * called * (self.n - called)
        if product:
            return Value((self.tp * self.tn - self.fp * self.fn) / math.sqrt(product), n=self.n)
        return Value(None, _one_sided(positives, negatives) or ALL_CALLED_ALIKE, n=self.n)


@dataclass(frozen=True, slots=True)
class OperatingPoints:
    """One class at each distinct score, from the highest down: cases at or above it are called positive.

    Attributes:
        thresholds: (K,) distinct scores, descending.
        tp: (K,) true positives.
        fp: (K,) false positives.
        positives: annotated positives.
        negatives: annotated negatives.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    positives: int
    negatives: int

    @property
    def n(self) -> int:
        """Annotated cases."""
        return self.positives + self.negatives

    @property
    def precision(self) -> NDArray[np.float64]:
        """(K,) tp / (tp + fp)."""
        return self.tp / (self.tp + self.fp)


@dataclass(frozen=True, slots=True)
class Best:
    """The best value over all thresholds, and every observed score that reaches it, ascending.

    A threshold chosen on the cases that it is scored on is optimistic.
    """

    value: Value
    thresholds: tuple[float, ...] = ()

    @property
    def threshold(self) -> float | None:
        """The smallest best threshold; None where the value is undefined."""
        return self.thresholds[0] if self.thresholds else None


def operating_points(labels: ArrayLike, scores: ArrayLike) -> OperatingPoints:
    """Count true and false positives at each distinct score.

    Args:
        labels: (N,) or any shape; 0, 1 or NaN (not annotated).
        scores: of the same shape, on any scale; NaN only where not annotated.

    Raises:
        MetricError: shapes that differ, other labels, or an annotated case without a score.
    """
    truth, score = annotated(labels, scores)
    order = np.argsort(-score, kind="stable")
    truth, score = truth[order], score[order]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if score.size else np.empty(0, np.intp)
    tp = np.cumsum(truth, dtype=np.int64)[ends]
    positives = int(np.count_nonzero(truth))
    return OperatingPoints(score[ends], tp, ends + 1 - tp, positives, truth.size - positives)


def auc(labels: ArrayLike, scores: ArrayLike) -> Value:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half.

    Undefined without positives or without negatives.

    Example:
        >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]).value
        0.875
    """
    points = operating_points(labels, scores)
    if reason := _one_sided(points.positives, points.negatives):
        return Value(None, reason, n=points.n)
    # In integers, so that equal rankings give equal figures: twice the pairs in the right order, plus the ties.
    twice = np.dot(np.diff(points.fp, prepend=0), points.tp + np.append(0, points.tp[:-1]))
    return Value(int(twice) / (2 * points.positives * points.negatives), n=points.n)


def average_precision(labels: ArrayLike, scores: ArrayLike) -> Value:
    """Average precision: precision at each distinct score, weighted by the recall gained there.

    A constant score gives the prevalence. Undefined without positives or without negatives.

    Example:
        >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value, 4)
        0.8333
    """
    points = operating_points(labels, scores)
    if reason := _one_sided(points.positives, points.negatives):
        return Value(None, reason, n=points.n)
    gained = np.diff(points.tp, prepend=0)
    return Value(math.fsum(gained * points.precision) / points.positives, n=points.n)


def auprc_trapezoid(labels: ArrayLike, scores: ArrayLike) -> Value:
    """Area under the precision-recall points by straight lines, from (recall 0, precision 1): CARZero's figure.

    It flatters against `average_precision`, which draws no line between points: a constant score gives half the way
    from the prevalence to 1. Undefined without positives or without negatives.

    Example:
        >>> round(auprc_trapezoid([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value, 4)
        0.7917
    """
    points = operating_points(labels, scores)
    if reason := _one_sided(points.positives, points.negatives):
        return Value(None, reason, n=points.n)
    gained, precision = np.diff(points.tp, prepend=0), points.precision
    before = np.append(1.0, precision[:-1])
    return Value(math.fsum(gained * (precision + before) / 2) / points.positives, n=points.n)


def confusion(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Confusion:
    """Count right and wrong calls at one threshold, over all pairs given.

    Example:
        >>> confusion([1, 0, 1, None], [0.5, 0.6, 0.2, 0.9])
        Confusion(tp=1, fp=1, fn=1, tn=0)
    """
    truth, score = annotated(labels, probabilities)
    called = score >= threshold
    tp, positives, all_called = (int(np.count_nonzero(x)) for x in (truth & called, truth, called))
    return Confusion(tp, all_called - tp, positives - tp, truth.size - positives - all_called + tp)


def f1(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """F1 at one threshold; undefined without positives."""
    return confusion(labels, probabilities, threshold).f1


def accuracy(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """Share of annotated pairs called rightly at one threshold."""
    return confusion(labels, probabilities, threshold).accuracy


def best_f1(labels: ArrayLike, scores: ArrayLike) -> Best:
    """Search the observed scores for the best F1 (MedKLIP, MAVL); undefined without positives.

    Example:
        >>> best_f1([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8])
        Best(value=Value(value=0.8, reason=None, low=None, high=None, n=4, n_undefined=0, skipped=0), thresholds=(0.3,))
    """
    points = operating_points(labels, scores)
    if not points.positives:
        return Best(Value(None, NO_POSITIVES if points.n else NO_ANNOTATION, n=points.n))
    # Equal fractions divide to equal floats, so the ties found here are exact.
    return _best(2 * points.tp / (points.tp + points.fp + points.positives), points, tolerance=0.0)


def best_mcc(labels: ArrayLike, scores: ArrayLike) -> Best:
    """Search the observed scores for the best Matthews correlation (KAD).

    A threshold that calls all cases alike has none and is passed over.
    """
    points = operating_points(labels, scores)
    reason = _one_sided(points.positives, points.negatives)
    if reason is None and points.thresholds.size == 1:
        reason = ALL_CALLED_ALIKE
    if reason:
        return Best(Value(None, reason, n=points.n))
    tp, fp = points.tp[:-1].astype(np.float64), points.fp[:-1].astype(np.float64)
    positives, negatives, called = float(points.positives), float(points.negatives), tp + fp
    scale = np.sqrt(positives * negatives) * np.sqrt(called * (points.n - called))
    return _best((tp * (negatives - fp) - fp * (positives - tp)) / scale, points, tolerance=1e-12)


def per_class(metric: Metric, labels: ArrayLike, scores: ArrayLike) -> list[Value]:
    """Apply a metric to each class.

    Args:
        metric: `auc`, `average_precision`, `auprc_trapezoid`, `f1` ...
        labels: (N, C).
        scores: (N, C).
    """
    truth, score = table(labels, scores)
    return [metric(truth[:, c], score[:, c]) for c in range(truth.shape[1])]


def macro(values: Sequence[Value]) -> Value:
    """Average over the classes that have a value; ``n`` of ``n + n_undefined`` classes were used.

    Example:
        >>> macro([Value(0.6875, n=10), Value(None, "no positives", n=10)])
        Value(value=0.6875, reason=None, low=None, high=None, n=1, n_undefined=1, skipped=0)
    """
    return mean_defined([v.value for v in values], reason="no class is defined")


def hamming_accuracy(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """Share of annotated (case, class) pairs called rightly: 1 - Hamming loss.

    Args:
        labels: (N, C).
        probabilities: (N, C).
        threshold: one for all classes.
    """
    return confusion(*table(labels, probabilities), threshold).accuracy


def subset_accuracy(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """Share of cases whose annotated classes are all called rightly; cases without annotation are undefined.

    Args:
        labels: (N, C).
        probabilities: (N, C).
        threshold: one for all classes.
    """
    truth, score = table(labels, probabilities)
    known = ~np.isnan(truth)
    wrong = (known & ((score >= threshold) != (truth == 1))).any(axis=1)
    return mean_defined(np.where(known.any(axis=1), ~wrong, np.nan), reason=NO_ANNOTATION)


def micro_f1(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """F1 over the pooled (case, class) pairs; a class without positives still adds its false alarms."""
    return confusion(*table(labels, probabilities), threshold).f1


def macro_f1(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> Value:
    """Mean F1 over the classes with positives."""
    return macro(per_class(lambda y, p: f1(y, p, threshold), labels, probabilities))


def annotated(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return labels and scores of the annotated entries, flat.

    Raises:
        MetricError: shapes that differ, labels other than 0, 1 and NaN, or an annotated entry without a score.
    """
    truth, score = _checked(labels, scores)
    truth, score = truth.ravel(), score.ravel()
    known = ~np.isnan(truth)
    return truth[known] == 1, score[known]


def table(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return labels (NaN: not annotated) and scores, both (N, C), checked as in `annotated`."""
    truth, score = _checked(labels, scores)
    if truth.ndim != 2:
        raise MetricError("Labels must have two axes.", expected="(cases, classes)", got=f"shape {truth.shape}")
    return truth, score


def _checked(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    truth, score = as_numbers(labels), as_numbers(scores)
    if truth.shape != score.shape:
        raise MetricError(
            "Labels and scores do not fit together.", expected=f"scores of shape {truth.shape}", got=score.shape
        )
    known = ~np.isnan(truth)
    other = known & (truth != 0) & (truth != 1)
    if other.any():
        raise MetricError(
            "A label is neither 0 nor 1.",
            where=f"entry {np.argwhere(other)[0].tolist()}",
            expected="0, 1, or NaN where not annotated",
            got=truth[other][0],
        )
    missing = known & np.isnan(score)
    if missing.any():
        raise MetricError(
            "An annotated case has no score.",
            where=f"entry {np.argwhere(missing)[0].tolist()}",
            got=f"{np.count_nonzero(missing)} NaN",
            fix="leave failed cases out, and count them",
        )
    return truth, score


def _one_sided(positives: int, negatives: int) -> str | None:
    if positives and negatives:
        return None
    if not positives and not negatives:
        return NO_ANNOTATION
    return NO_NEGATIVES if positives else NO_POSITIVES


def _share(part: int, whole: int, n: int, reason: str) -> Value:
    return Value(part / whole, n=n) if whole else Value(None, reason, n=n)


def _best(values: NDArray[np.float64], points: OperatingPoints, tolerance: float) -> Best:
    """The largest of the values at the first thresholds, and all thresholds within a tolerance of it."""
    top = float(values.max())
    reached = points.thresholds[: values.size][values >= top - tolerance]
    return Best(Value(top, n=points.n), tuple(reached[::-1].tolist()))
