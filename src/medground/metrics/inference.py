"""Intervals and tests that hold for few cases and for patients with several items each.

Every statistic comes as an `influence.Influence`. A value in [0, 1] gets the interval of Korn and Graubard (1998) with
a variance that is drawn towards the largest possible one by a few pseudo-patients::

    v* = (G v + c t (1 - t) / K) / (G + c)     n* = t (1 - t) / v*, or K where t is 0 or 1
    low = Beta^-1(.025; t n*, (1 - t) n* + 1)  high = Beta^-1(.975; t n* + 1, (1 - t) n*)

G patients with weight, K effective patients, v the sum of squared influences. With one 0/1 item a patient this *is*
Clopper and Pearson's interval. It cannot collapse, needs no drawing, and never changes what is estimated. The constants
c were found by simulation (``make simulate`` repeats it). Comparisons of two models are in `differences`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters
from medground.metrics.influence import (
    Influence,
    of_auc,
    of_average_precision,
    of_f1,
    of_mean,
    of_ratio,
    over_classes,
)

# Pseudo-patients of the largest possible variance, by statistic; see the module.
SHARE, AUC, MACRO, MACRO_RANKING = 2.0, 4.0, 4.0, 2.0

ONE_PATIENT = "one patient: no interval"
NO_VARIATION = "no variation between patients: no interval"
EDGE = 1e-12  # a mean of ones may miss 1 by a last bit

Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its intervals and what it rests on.

    Attributes:
        value: the figure; None where undefined.
        low: lower limit at ``level``; None where there is no interval.
        high: upper limit.
        inner_low: lower limit of the narrower interval (90 % beside 95 %) by which equivalence is judged.
        inner_high: its upper limit.
        n: items behind the value.
        n_undefined: items left out.
        evidence: patients behind the value, one entry a class: for a macro mean several, else one. For an AUC the fewer
            of those with and those without the finding; for average precision those with it.
        level: of the interval.
        reason: why the value is undefined, or why it has no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    inner_low: float | None = None
    inner_high: float | None = None
    n: int = 0
    n_undefined: int = 0
    evidence: tuple[int, ...] = ()
    level: float = 0.95
    reason: str | None = None


def bounded(t: float, patients: int, effective: float, variance: float, c: float, level: float = 0.95) -> Limits:
    """Return the interval of a value in [0, 1]; see the module.

    Args:
        t: the value.
        patients: G, patients with weight.
        effective: K, effective patients.
        variance: v, sum of squared influences.
        c: pseudo-patients.
        level: of the interval.

    Example:
        >>> [round(limit, 4) for limit in bounded(0.0, 9, 9.0, 0.0, 2.0)]
        [0.0, 0.3363]
    """
    if t <= EDGE or t >= 1 - EDGE:
        return beta_limits(t, effective, level)
    shrunk = (patients * variance + c * t * (1 - t) / effective) / (patients + c)
    return beta_limits(t, t * (1 - t) / shrunk, level)


def beta_limits(t: float, n: float, level: float = 0.95) -> Limits:
    """Return the limits of a share t of n independent items, n not necessarily whole."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    if t <= EDGE:
        return 0.0, 1 - tail ** (1 / n)
    if t >= 1 - EDGE:
        return tail ** (1 / n), 1.0
    low, high = betaincinv(t * n, (1 - t) * n + 1, tail), betaincinv(t * n + 1, (1 - t) * n, 1 - tail)
    return float(low), float(high)


def estimate(part: Influence, c: float = SHARE, level: float = 0.95, bounds: Limits | None = (0.0, 1.0)) -> Estimate:
    """Return a statistic with its interval.

    Args:
        part: the statistic.
        c: pseudo-patients; `SHARE` for means, rates, F1 and average precision, `AUC` for an AUC.
        level: of the interval.
        bounds: smallest and largest possible value. None: the value has no bounds, and gets an interval of Student's t
            over patients (no interval where patients do not vary).

    Example:
        >>> by = Clusters(np.arange(9), 9)
        >>> rate = estimate(of_mean([0.0] * 9, by))
        >>> rate.value, rate.low, round(rate.high, 6)
        (0.0, 0.0, 0.336267)
    """
    check_level(level)
    if part.value is None:
        return Estimate(None, n=part.n, n_undefined=part.n_undefined, evidence=(0,), level=level, reason=part.reason)
    if part.patients < 2:
        return _with_limits(part, None, None, level, ONE_PATIENT)
    if bounds is None:
        return _student(part, level)
    floor, width = bounds[0], bounds[1] - bounds[0]
    t, v = (part.value - floor) / width, part.variance / width**2

    def limits(at: float) -> Limits:
        low, high = bounded(t, part.patients, part.effective, v, c, at)
        return floor + width * low, floor + width * high

    return _with_limits(part, limits(level), limits(inner_level(level)), level, None)


def estimate_mean(values: ArrayLike, by: Clusters, level: float = 0.95) -> Estimate:
    """Return the mean of values in [0, 1] (pointing, Dice, accuracy), NaN where undefined."""
    return estimate(of_mean(values, by), SHARE, level)


def estimate_auc(labels: ArrayLike, scores: ArrayLike, by: Clusters, level: float = 0.95) -> Estimate:
    """Return the AUC; undefined without positives or negatives."""
    return estimate(of_auc(labels, scores, by), AUC, level)


def estimate_average_precision(labels: ArrayLike, scores: ArrayLike, by: Clusters, level: float = 0.95) -> Estimate:
    """Return average precision; undefined without positives or negatives."""
    return estimate(of_average_precision(labels, scores, by), SHARE, level)


def estimate_f1(labels: ArrayLike, calls: ArrayLike, by: Clusters, level: float = 0.95) -> Estimate:
    """Return F1 at calls already made; undefined without positives."""
    return estimate(of_f1(labels, calls, by), SHARE, level)


def estimate_ratio(numerators: ArrayLike, denominators: ArrayLike, by: Clusters, level: float = 0.95) -> Estimate:
    """Return a ratio of sums in [0, 1] (micro accuracy)."""
    return estimate(of_ratio(numerators, denominators, by), SHARE, level)


def estimate_macro(parts: Sequence[Influence], c: float = MACRO, level: float = 0.95) -> Estimate:
    """Return the mean over the defined classes; the set of classes is settled before any interval is made.

    v* = max(v + sum (v*_c - v_c) / C^2, sum v*_c / C^2): covariance between classes counts only where it adds. Where a
    few patients stand in many classes, v* is not below v G / (G - 1), widened as Student's t.

    Args:
        parts: one statistic a class, over the same P patients.
        c: pseudo-patients a class; `MACRO` for means, `MACRO_RANKING` for AUC and average precision.
        level: of the interval.
    """
    check_level(level)
    known = [part for part in parts if part.value is not None]
    missing = len(parts) - len(known)
    if not known:
        return Estimate(None, n_undefined=missing, level=level, reason="no class is defined")
    part = over_classes(known)
    if np.count_nonzero(sum(p.weight for p in known)) < 2:
        estimate = _with_limits(part, None, None, level, ONE_PATIENT)
    else:
        effective = macro_effective(known, c, part)
        outer, inner = (beta_limits(part.value or 0.0, effective, at) for at in (level, inner_level(level)))
        estimate = _with_limits(part, outer, inner, level, None)
    return replace(estimate, n=len(known), n_undefined=missing, evidence=tuple(p.patients for p in known))


def macro_effective(parts: Sequence[Influence], c: float, whole: Influence) -> float:
    """Return n* of a mean over classes in [0, 1]."""
    t = whole.value or 0.0
    if t <= EDGE or t >= 1 - EDGE:
        return whole.effective
    own = np.array([p.variance for p in parts])
    shrunk = np.array([_class_variance(p, c) for p in parts])
    squared = len(parts) ** 2
    spread = max(whole.variance + (shrunk - own).sum() / squared, shrunk.sum() / squared)
    return t * (1 - t) / max(float(spread), _of_few(whole))


def _of_few(whole: Influence) -> float:
    """Widen the variance of a few patients who stand in many classes, as Student's t does for their number."""
    from scipy.special import ndtri, stdtrit

    if whole.patients < 2:
        return 0.0
    ratio = float(stdtrit(whole.patients - 1, 0.975) / ndtri(0.975))
    return whole.variance * whole.patients / (whole.patients - 1) * ratio**2


def _class_variance(part: Influence, c: float) -> float:
    t, k = part.value or 0.0, part.effective
    if t <= EDGE or t >= 1 - EDGE:
        t = (k * t + 1) / (k + 2)
    return (part.patients * part.variance + c * t * (1 - t) / k) / (part.patients + c)


def _student(part: Influence, level: float) -> Estimate:
    """Student's t over patients, for values without bounds."""
    from scipy.special import stdtrit

    variance, value, g = part.variance, part.value or 0.0, part.patients
    if variance <= EDGE**2 * max(1.0, value * value):
        return _with_limits(part, None, None, level, NO_VARIATION)
    spread = math.sqrt(variance * g / (g - 1))
    halves = [spread * float(stdtrit(g - 1, (1 + at) / 2)) for at in (level, inner_level(level))]
    outer, inner = ((value - half, value + half) for half in halves)
    return _with_limits(part, outer, inner, level, None)


def _with_limits(
    part: Influence, outer: Limits | None, inner: Limits | None, level: float, reason: str | None
) -> Estimate:
    low, high = outer or (None, None)
    inner_low, inner_high = inner or (None, None)
    evidence = (part.patients,)
    return Estimate(part.value, low, high, inner_low, inner_high, part.n, part.n_undefined, evidence, level, reason)


def inner_level(level: float) -> float:
    """Return the level of the interval by which two one-sided tests judge equivalence (Schuirmann 1987)."""
    return 2 * level - 1


def check_level(level: float) -> None:
    """Raise a `MetricError` unless the level is one at which both intervals of an estimate exist."""
    if not 0.5 < level < 1:
        raise MetricError("The level of an interval is a share.", expected="between 0.5 and 1", got=level)
