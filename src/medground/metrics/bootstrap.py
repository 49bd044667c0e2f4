"""Intervals by the bootstrap, clustered by patient.

Patients are drawn with replacement and all items of a patient move together. A replicate is a vector of counts (how
often each patient was drawn), so that a metric is computed from weights: nothing is copied, and ranks are sorted once.

Replicate ``r`` is seeded by (seed, r) and patients are numbered in the order of their ids, so results depend neither
on the order of the items, nor on blocks or threads. A replicate without a value (a class that lost its positives) is
NaN, left out of the interval, and counted.

Field and Welsh, Bootstrapping clustered data, JRSS B 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._weighted import FloatArray, Weights, cluster_sums, ranked, weighted_sums
from medground.metrics.classification import table
from medground.metrics.values import Value, as_numbers

BLOCK = 64  # replicates computed side by side: a few hundred bytes a patient, and full vector registers


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which items move together: ``codes`` (N,) in 0 ... ``count`` - 1."""

    codes: NDArray[np.int64]
    count: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval; limits are None where no replicate has a value.

    Attributes:
        low: lower limit.
        high: upper limit.
        used: replicates with a value.
        skipped: replicates without.
    """

    low: float | None
    high: float | None
    used: int
    skipped: int


@dataclass(frozen=True, slots=True)
class RankReplicates:
    """Ranking metrics of B replicates and C classes, each (B, C), NaN where undefined."""

    auc: FloatArray
    average_precision: FloatArray
    auprc_trapezoid: FloatArray


def clusters(patients: Sequence[object], items: Sequence[object] | None = None) -> Clusters:
    """Number the patients in the order of their ids (as text); an item of an unknown patient stands alone.

    Args:
        patients: (N,) one id an item; None (or NaN) where unknown.
        items: (N,) ids of the items, by which those of unknown patients are ordered. None: by position, so that the
            order of the items then matters for them.

    Example:
        >>> clusters(["b", None, "a", "b"]).codes
        array([1, 2, 0, 1])
    """
    names = range(len(patients)) if items is None else items
    if len(names) != len(patients):
        raise MetricError("Every item needs a patient.", expected=f"{len(names)} patients", got=len(patients))
    # A float that differs from itself is NaN, the way tables write a missing id.
    known = [None if p is None or p != p else str(p) for p in patients]  # noqa: PLR0124  (NaN test)
    number: dict[object, int] = {name: code for code, name in enumerate(sorted({p for p in known if p is not None}))}
    alone: list[Any] = [(i if items is None else str(i)) for p, i in zip(known, names, strict=True) if p is None]
    own = {item: len(number) + code for code, item in enumerate(sorted(set(alone)))}
    codes = [own[i if items is None else str(i)] if p is None else number[p] for p, i in zip(known, names, strict=True)]
    return Clusters(np.array(codes, dtype=np.int64), len(number) + len(own))


def cluster_weights(count: int, replicates: int = 1000, seed: int = 0, block: int = BLOCK) -> Iterator[Weights]:
    """Draw ``count`` of ``count`` patients with replacement, again and again.

    Yields:
        Counts (count, b), one column a replicate, b = ``block`` (fewer in the last), so that memory stays bounded.
        Not to be written to: small ones are remembered, since many figures of a summary have the same patients.
    """
    draw = _remembered if count * block <= _SMALL else _drawn
    for start in range(0, replicates, block):
        yield draw(count, start, min(start + block, replicates), seed)


def _drawn(count: int, start: int, stop: int, seed: int) -> Weights:
    weights = np.empty((count, stop - start), dtype=np.uint16)
    for column, replicate in enumerate(range(start, stop)):
        drawn = np.random.default_rng([seed, replicate]).integers(count, size=count)
        weights[:, column] = np.bincount(drawn, minlength=count)
    return weights


_SMALL = 1 << 15
_remembered = lru_cache(maxsize=512)(_drawn)
"""32 MB at most."""


def bootstrap_ranking(
    labels: ArrayLike, scores: ArrayLike, by: Clusters, replicates: int = 1000, seed: int = 0
) -> RankReplicates:
    """Replicate AUC, average precision and trapezoid AUPRC of every class; same draws for all classes.

    Args:
        labels: (N, C); 0, 1 or NaN (not annotated).
        scores: (N, C); ties count half, as in `classification.auc`.
        by: clusters of the N cases.
        replicates: B.
        seed: another seed, other draws.
    """
    truth, score = table(labels, scores)
    _check(by, truth.shape[0])
    rankings = [_ranking(truth[:, c], score[:, c], by) for c in range(truth.shape[1])]

    def measure(weights: Weights) -> FloatArray:
        return np.stack([ranked(weights, *ranking) for ranking in rankings], axis=-1)

    replicated = _replicate(measure, by, (3, replicates, truth.shape[1]), seed)
    return RankReplicates(*replicated)


def bootstrap_sums(values: ArrayLike, by: Clusters, replicates: int = 1000, seed: int = 0) -> FloatArray:
    """Replicate sums over items, from which any ratio of sums follows.

    Args:
        values: (N, K), finite.
        by: clusters of the N items.
        replicates: B.
        seed: another seed, other draws.

    Returns:
        (B, K); NaN where there are fewer than two clusters, since one says nothing about the next.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise MetricError("Only finite numbers add up.", expected="(items, quantities)", got=f"shape {array.shape}")
    _check(by, array.shape[0])
    sums = cluster_sums(array, by.codes, by.count)
    return _replicate(lambda weights: weighted_sums(weights, sums), by, (replicates, array.shape[1]), seed)


def bootstrap_mean(values: ArrayLike, by: Clusters, replicates: int = 1000, seed: int = 0) -> FloatArray:
    """Replicate means over the defined values: pointing, Dice, IoU, accuracy.

    Args:
        values: (N,) or (N, K), NaN (None) where undefined.
        by: clusters of the N items.
        replicates: B.
        seed: another seed, other draws.

    Returns:
        (B,) or (B, K); NaN where no value of the replicate is defined, and everywhere for a column whose defined
        values belong to fewer than two clusters.
    """
    array = as_numbers(values)
    defined = ~np.isnan(array)
    return bootstrap_ratio(np.where(defined, array, 0.0), defined, by, replicates, seed)


def bootstrap_ratio(
    numerators: ArrayLike, denominators: ArrayLike, by: Clusters, replicates: int = 1000, seed: int = 0
) -> FloatArray:
    """Replicate a ratio of sums (Hamming accuracy: pairs right over pairs annotated, a case).

    Args:
        numerators: (N,) or (N, K), finite.
        denominators: of the same shape; 0 or more.
        by: clusters of the N items.
        replicates: B.
        seed: another seed, other draws.

    Returns:
        (B,) or (B, K); NaN where the denominators of the replicate add to 0, and everywhere for a column whose
        denominators are 0 in all clusters but one.
    """
    top, bottom = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if top.shape != bottom.shape:
        raise MetricError("Numerators and denominators differ.", expected=f"shape {top.shape}", got=bottom.shape)
    flat = (len(top), math.prod(top.shape[1:]))
    columns = top.reshape(flat), bottom.reshape(flat)
    sums = bootstrap_sums(np.hstack(columns), by, replicates, seed)
    above, below = np.hsplit(sums, 2)
    spread = np.count_nonzero(cluster_sums(columns[1], by.codes, by.count), axis=0) > 1
    ratios = np.full(above.shape, np.nan)
    np.divide(above, below, out=ratios, where=(below > 0) & spread)
    return ratios.reshape(replicates, *top.shape[1:])


def bootstrap_f1(
    labels: ArrayLike,
    probabilities: ArrayLike,
    by: Clusters,
    threshold: float = 0.5,
    replicates: int = 1000,
    seed: int = 0,
) -> FloatArray:
    """Replicate the F1 of every class at one threshold: (B, C), NaN where the replicate has no positives."""
    truth, p = table(labels, probabilities)
    positive, called = truth == 1, (p >= threshold) & ~np.isnan(truth)
    counts = np.hstack([positive & called, positive, called])
    tp, positives, calls = np.hsplit(bootstrap_sums(counts, by, replicates, seed), 3)
    f1 = np.full(tp.shape, np.nan)
    np.divide(2 * tp, positives + calls, out=f1, where=positives > 0)
    return f1


def macro_replicates(replicates: FloatArray) -> FloatArray:
    """Average (B, C) replicates over the classes defined in each: (B,)."""
    defined = ~np.isnan(replicates)
    n = defined.sum(axis=1)
    mean = np.full(n.shape, np.nan)
    np.divide(np.where(defined, replicates, 0.0).sum(axis=1), n, out=mean, where=n > 0)
    return mean


def percentile_interval(replicates: ArrayLike, level: float = 0.95) -> Interval:
    """Cut (1 - level) / 2 of the defined replicates off at either end, with linear interpolation.

    Args:
        replicates: (B,), NaN where undefined.
        level: share of replicates inside.

    Example:
        >>> percentile_interval([0.0, 1.0, 2.0, 3.0, 4.0, float("nan")], level=0.5)
        Interval(low=1.0, high=3.0, used=5, skipped=1)
    """
    if not 0 < level < 1:
        raise MetricError("The level of an interval is a share.", expected="between 0 and 1", got=level)
    array = np.asarray(replicates, dtype=np.float64).ravel()
    defined = array[~np.isnan(array)]
    skipped = array.size - defined.size
    if not defined.size:
        return Interval(None, None, 0, skipped)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), defined.size, skipped)


def with_interval(value: Value, replicates: ArrayLike, level: float = 0.95) -> Value:
    """Return the value with its percentile interval and the number of replicates skipped; undefined stays so."""
    if value.value is None:
        return value
    interval = percentile_interval(replicates, level)
    return replace(value, low=interval.low, high=interval.high, skipped=interval.skipped)


def _check(by: Clusters, n: int) -> None:
    if by.codes.shape != (n,):
        raise MetricError("Clusters and items differ.", expected=f"{n} items", got=f"{by.codes.size} in the clusters")


def _replicate(measure: Callable[[Weights], FloatArray], by: Clusters, shape: tuple[int, ...], seed: int) -> FloatArray:
    """Fill (..., B, K) block by block; all NaN for fewer than two clusters."""
    values = np.full(shape, np.nan)
    if by.count < 2:
        return values
    start = 0
    for weights in cluster_weights(by.count, shape[-2], seed):
        values[..., start : start + weights.shape[1], :] = measure(weights)
        start += weights.shape[1]
    return values


def _ranking(
    truth: FloatArray, score: FloatArray, by: Clusters
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Cluster, label and "last of its ties" of the annotated cases, highest score first."""
    known = np.flatnonzero(~np.isnan(truth))
    order = known[np.argsort(-score[known], kind="stable")]
    ranked = score[order]
    last = np.append(ranked[1:] != ranked[:-1], True)[: order.size]
    return by.codes[order], truth[order] == 1, last
