"""What every statistic hands over to its interval and its test: an influence and a weight a patient.

The influence of a patient is how far the statistic moves, to first order, when that patient counts for more; over all
patients influences add to 0. The weight is the share of the evidence that the patient holds; weights add to 1. A
patient is one unit however many items he has. The formulas of each statistic stand beside it; the intervals that are
made of them are in `inference`.

Owen, arXiv 2508.10083 (infinitesimal jackknife); Obuchowski, Biometrics 1997 (clustered AUC).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters
from medground.metrics.classification import annotated, auc, average_precision
from medground.metrics.values import NO_POSITIVES, NOTHING_DEFINED, as_numbers, mean_defined

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """One statistic over P patients.

    Attributes:
        value: the statistic; None where it is undefined.
        influence: (P,) adds to 0.
        weight: (P,) adds to 1; 0 for a patient without evidence. For an AUC that of the scarcer kind.
        patients: patients with weight; for an AUC the fewer of those with and those without the finding.
        effective: Kish's effective patients, 1 / sum of squared weights; for an AUC the smaller of both kinds.
        n: items behind the value.
        n_undefined: items left out.
        reason: why the value is undefined.
    """

    value: float | None
    influence: Floats
    weight: Floats
    patients: int
    effective: float
    n: int = 0
    n_undefined: int = 0
    reason: str | None = None

    @property
    def variance(self) -> float:
        """Sum of squared influences: the variance of the statistic with patients drawn independently."""
        return float(self.influence @ self.influence)

    @property
    def contribution(self) -> Floats:
        """(P,) ``influence + weight * value``: adds to the value; what a sign flip turns round."""
        return self.influence + self.weight * (self.value or 0.0)


def of_mean(values: ArrayLike, by: Clusters) -> Influence:
    """Mean of the defined values (pointing, Dice, accuracy): (x - t) / n an item.

    Args:
        values: (N,), NaN or None where undefined.
        by: patients of the N items.

    Example:
        >>> part = of_mean([1.0, 0.0, None], Clusters(np.array([0, 1, 1]), 2))
        >>> part.value, part.influence.tolist(), part.patients
        (0.5, [0.25, -0.25], 2)
    """
    array = as_numbers(values)
    _fits(array, by)
    mean = mean_defined(array)
    if mean.value is None:
        return _undefined(by, mean.reason, mean.n_undefined)
    defined = ~np.isnan(array)
    codes, kept = by.codes[defined], array[defined]
    influence = _added(codes, (kept - mean.value) / mean.n, by)
    return _made(mean.value, influence, np.bincount(codes, minlength=by.count) / mean.n, mean.n, mean.n_undefined)


def of_ratio(numerators: ArrayLike, denominators: ArrayLike, by: Clusters, reason: str = NOTHING_DEFINED) -> Influence:
    """Ratio of two sums (micro accuracy, F1): (numerator - t denominator) / total denominator an item.

    Args:
        numerators: (N,) finite.
        denominators: (N,) 0 or more.
        by: patients of the N items.
        reason: what to say where the denominators add to 0.
    """
    top, bottom = as_numbers(numerators), as_numbers(denominators)
    if top.shape != bottom.shape:
        raise MetricError("Numerators and denominators differ.", expected=f"shape {top.shape}", got=bottom.shape)
    _fits(top, by)
    total = math.fsum(bottom)
    used = int(np.count_nonzero(bottom))
    if not total:
        return _undefined(by, reason, top.size)
    value = math.fsum(top) / total
    influence = _added(by.codes, (top - value * bottom) / total, by)
    return _made(value, influence, _added(by.codes, bottom / total, by), used, top.size - used)


def of_f1(labels: ArrayLike, calls: ArrayLike, by: Clusters) -> Influence:
    """F1 = 2 TP / (positives + calls) at calls already made; undefined without positives.

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        calls: (N,) 1 where the finding is called.
        by: patients of the N items.
    """
    truth, called, known = _known(labels, calls, by)
    inner = Clusters(by.codes[known], by.count)
    if not truth.any():
        return _undefined(by, NO_POSITIVES, by.codes.size)
    call = called > 0
    part = of_ratio(2.0 * (truth & call), truth.astype(float) + call, inner)
    return _made(part.value, part.influence, part.weight, truth.size, by.codes.size - truth.size)


def of_auc(labels: ArrayLike, scores: ArrayLike, by: Clusters) -> Influence:
    """Area under the ROC curve: how each positive stands among the negatives, and the reverse, ties half.

    (a - t) / m for a positive that beats the share a of n negatives; (b - t) / n for a negative that the share b of m
    positives beats (DeLong 1988; Obuchowski 1997).

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        scores: (N,) on any scale.
        by: patients of the N items.
    """
    truth, score, known = _known(labels, scores, by)
    value = auc(truth, score)
    if value.value is None:
        return _undefined(by, value.reason, by.codes.size)
    codes = by.codes[known]
    positive, negative = np.sort(score[truth]), np.sort(score[~truth])
    m, n = positive.size, negative.size
    beaten = _below(negative, score[truth]) / n
    beating = 1 - _below(positive, score[~truth]) / m
    influence = _added(codes[truth], (beaten - value.value) / m, by)
    influence += _added(codes[~truth], (beating - value.value) / n, by)
    sides = [np.bincount(codes[side], minlength=by.count) / side.sum() for side in (truth, ~truth)]
    return _scarcer(value.value, influence, sides, truth.size, by)


def of_average_precision(labels: ArrayLike, scores: ArrayLike, by: Clusters) -> Influence:
    """Average precision; ties are called together. Undefined without positives or without negatives.

    Item k: [y (P_k - t) + sum over positives i with s_i <= s_k of (y - P_i) / R_i] / m, where R_i scores are >= s_i and
    P_i of these are positive.

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        scores: (N,) on any scale.
        by: patients of the N items.
    """
    truth, score, known = _known(labels, scores, by)
    value = average_precision(truth, score)
    if value.value is None:
        return _undefined(by, value.reason, by.codes.size)
    codes, m = by.codes[known], int(truth.sum())
    distinct, group = np.unique(-score, return_inverse=True)
    new = np.bincount(group, weights=truth, minlength=distinct.size)
    called = np.cumsum(np.bincount(group, minlength=distinct.size))
    precision = np.cumsum(new) / called
    later = np.cumsum((new / called)[::-1])[::-1]
    later_precision = np.cumsum((new * precision / called)[::-1])[::-1]
    item = truth * (precision[group] - value.value + later[group]) - later_precision[group]
    weight = np.bincount(codes[truth], minlength=by.count) / m
    return _made(value.value, _added(codes, item / m, by), weight, truth.size, by.codes.size - truth.size)


def of_statistic(measure: Callable[[Floats], float], weight: ArrayLike, n: int, step: float = 1e-5) -> Influence:
    """Any smooth statistic of weighted patients, by its numerical derivative (kappa, a slope, a correlation).

    Args:
        measure: takes (P,) weights of the patients, 1 as observed, and returns the statistic.
        weight: (P,) share of the evidence a patient, such as his share of the items; adds to 1.
        n: items behind it.
        step: of the derivative, central.
    """
    share = as_numbers(weight)
    observed = np.ones(share.size)
    value = float(measure(observed))
    nobody = Clusters(np.zeros(0, dtype=np.int64), share.size)
    if math.isnan(value):
        return _undefined(nobody, "undefined", n)
    influence = np.zeros(share.size)
    for g in range(share.size):
        up, down = observed.copy(), observed.copy()
        up[g], down[g] = 1 + step, 1 - step
        influence[g] = (measure(up) - measure(down)) / (2 * step)
    return _made(value, influence, share, n, 0)


def minus(first: Influence, second: Influence) -> Influence:
    """Difference of one statistic of two models over the same patients and items.

    Patients and effective patients are those of the model with fewer.
    """
    few = min(first, second, key=lambda part: part.effective)
    if first.value is None or second.value is None:
        bad = first if first.value is None else second
        return Influence(None, bad.influence, bad.weight, 0, 0.0, 0, bad.n_undefined, bad.reason)
    return Influence(
        first.value - second.value,
        first.influence - second.influence,
        few.weight,
        min(first.patients, second.patients),
        few.effective,
        min(first.n, second.n),
        max(first.n_undefined, second.n_undefined),
    )


def over_classes(parts: Sequence[Influence]) -> Influence:
    """Average defined classes: influences add over the patients that they share.

    Args:
        parts: one statistic a class, all over the same P patients.
    """
    count = len(parts)
    return Influence(
        math.fsum(p.value or 0.0 for p in parts) / count,
        np.sum([p.influence for p in parts], axis=0) / count,
        weight := np.sum([p.weight for p in parts], axis=0) / count,
        int(np.count_nonzero(weight)),
        1 / float(weight @ weight),
    )


def _below(ordered: Floats, values: Floats) -> Floats:
    """Count the entries of a sorted array below each value, ties half."""
    twice = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(twice / 2, dtype=np.float64)


def _added(codes: NDArray[np.int64], values: Floats, by: Clusters) -> Floats:
    return np.asarray(np.bincount(codes, weights=values, minlength=by.count), dtype=np.float64)


def _known(labels: ArrayLike, scores: ArrayLike, by: Clusters) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]:
    given = as_numbers(labels)
    _fits(given, by)
    truth, score = annotated(given, scores)
    return truth, score, ~np.isnan(given)


def _fits(array: Floats, by: Clusters) -> None:
    if array.shape != by.codes.shape:
        raise MetricError("Clusters and items differ.", expected=f"{by.codes.size} items", got=f"shape {array.shape}")


def _made(value: float | None, influence: Floats, weight: Floats, n: int, n_undefined: int) -> Influence:
    patients = int(np.count_nonzero(weight))
    return Influence(value, influence, weight, patients, 1 / float(weight @ weight), n, n_undefined)


def _scarcer(value: float, influence: Floats, sides: list[Floats], n: int, by: Clusters) -> Influence:
    """Let the kind with fewer effective patients stand for both."""
    effective = [1 / float(side @ side) for side in sides]
    few = int(np.argmin(effective))
    patients = min(int(np.count_nonzero(side)) for side in sides)
    return Influence(value, influence, sides[few], patients, effective[few], n, by.codes.size - n)


def _undefined(by: Clusters, reason: str | None, n_undefined: int) -> Influence:
    nothing = np.zeros(by.count)
    return Influence(None, nothing, nothing, 0, 0.0, 0, n_undefined, reason or NOTHING_DEFINED)
