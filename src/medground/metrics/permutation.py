"""Paired tests by patient: sign flips, swaps of ranks and of calls, and families of them.

Under "no difference" it does not matter which model is called the first, patient by patient. All ways of exchanging
them are tried while at most 14 patients differ; else 9,999 are drawn, and p = (hits + 1) / (draws + 1) (Phipson and
Smyth 2010), so that p is never 0. A statistic reaches the observed one if it is as large up to rounding, since sums of
equal numbers differ in the last bit: up to a relative 1e-9, and 1e-12 where the observed one is 0.

More than 1,024 patients that differ are exchanged in 1,024 blocks of several patients: still exactly valid, since these
are exchanges too (Canay, Romano and Shaikh 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._arrays import kernel
from medground.metrics.bootstrap import Clusters
from medground.metrics.classification import annotated
from medground.metrics.values import as_numbers

ENUMERATED = 14  # patients that differ, up to which all exchanges are tried
DRAWS = 9_999
BLOCKS = 1_024
_ROWS = 512  # exchanges held at a time
_BUDGET = 50_000_000  # cases ranked in a swap test, draws times cases; beyond it fewer draws, never below _FEWEST
_FEWEST = 1_999
TOLERANCE, ROUNDING = 1e-9, 1e-12

Floats = NDArray[np.float64]
Ranking = Literal["auc", "average precision"]
AUC: Ranking = "auc"
AVERAGE_PRECISION: Ranking = "average precision"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Tests of C members of one family.

    Attributes:
        statistic: (C,) |sum| / sqrt(sum of squares) of a member; 0 without variation.
        p: (C,) of each alone.
        p_family: (C,) step-down max-T (Westfall and Young 1993).
    """

    statistic: Floats
    p: Floats
    p_family: Floats


def sign_flip(contributions: ArrayLike, seed: int = 0, draws: int = DRAWS) -> tuple[float, int]:
    """Test a sum of patients' contributions by turning the sign of whole patients.

    Args:
        contributions: (P,) that add to the difference.
        seed: of the flips, where they are drawn.
        draws: how many, where more than 14 patients differ.

    Returns:
        Two-sided p, and the patients that differ. p is 1 where none does.

    Example:
        >>> sign_flip([0.25, 0.25, 0.25])
        (0.25, 3)
    """
    h = as_numbers(contributions).ravel()
    family = max_t(h[:, None], seed, draws)
    return float(family.p[0]), int(np.count_nonzero(_settled(h)))


def max_t(contributions: ArrayLike, seed: int = 0, draws: int = DRAWS) -> Family:
    """Test a family of sums with flips that all its members share.

    Args:
        contributions: (P, C) what each patient adds to each member's difference.
        seed: of the flips, where they are drawn.
        draws: how many, where more than 14 patients differ.

    Example:
        >>> max_t([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]).p.tolist()
        [0.25, 1.0]
    """
    h = np.apply_along_axis(_settled, 0, as_numbers(contributions))
    if h.ndim != 2:
        raise MetricError("A family has two axes.", expected="(patients, members)", got=f"shape {h.shape}")
    scale = np.sqrt((h * h).sum(axis=0))
    scaled = np.divide(h, scale, out=np.zeros_like(h), where=scale > 0)
    observed = np.abs(scaled.sum(axis=0))
    order = np.argsort(-observed, kind="stable")
    needed = _needed(observed)
    alone, together, total = np.zeros(h.shape[1]), np.zeros(h.shape[1]), 0
    differs = np.flatnonzero((h != 0).any(axis=1))
    for signs in _exchanges(differs.size, seed, draws):
        flipped = np.abs(signs @ _blocked(scaled[differs], signs.shape[1]))
        alone += (flipped >= needed).sum(axis=0)
        largest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
        together[order] += (largest >= needed[order]).sum(axis=0)
        total += len(signs)
    one = 0 if differs.size <= ENUMERATED else 1
    p, stepped = (alone + one) / (total + one), (together + one) / (total + one)
    stepped[order] = np.maximum.accumulate(stepped[order])
    still = scale == 0
    return Family(observed, np.where(still, 1.0, p), np.where(still, 1.0, stepped))


def swap_ranks(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    metric: Ranking = AUC,
    seed: int = 0,
    draws: int = DRAWS,
) -> tuple[float, int]:
    """Test two rankings of the same cases by swapping the models' mid-ranks within patients.

    Each model is ranked over all cases; under exchangeability the ranks may change sides, patient by patient (Bandos,
    Rockette and Gur 2005).

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        first: (N,) scores of the first model.
        second: (N,) of the second.
        by: patients of the N cases.
        metric: what is recomputed after each swap.
        seed: of the swaps, where they are drawn.
        draws: how many, where more than 14 patients differ; fewer over very many cases.

    Returns:
        Two-sided p, and the patients whose ranks differ.
    """
    return swap_macro_ranks([(labels, first, second)], by, metric, seed, draws)


Ranked = tuple[ArrayLike, ArrayLike, ArrayLike]


def swap_macro_ranks(
    classes: Sequence[Ranked], by: Clusters, metric: Ranking = AUC, seed: int = 0, draws: int = DRAWS
) -> tuple[float, int]:
    """Test two models' mean over classes of a ranking metric: a patient's ranks change sides in all classes at once.

    Args:
        classes: (labels, scores of the first, scores of the second) of every class, each (N,), in which the metric is
            defined.
        by: patients of the N cases.
        metric: what is recomputed after each swap.
        seed: of the swaps, where they are drawn.
        draws: as in `swap_ranks`.

    Returns:
        Two-sided p, and the patients whose ranks differ.
    """
    ranked = []
    for labels, first, second in classes:
        truth, a = annotated(labels, first)
        _, b = annotated(labels, second)
        ranked.append((truth, _mid_ranks(a), _mid_ranks(b), by.codes[~np.isnan(as_numbers(labels))]))
    differing = [codes[one != other] for _, one, other, codes in ranked]
    differs = np.unique(np.concatenate(differing)) if ranked else np.zeros(0, dtype=np.int64)
    if not differs.size:
        return 1.0, 0
    measure = _aucs if metric == AUC else _average_precisions
    block = np.full(by.count, -1, dtype=np.int64)
    block[differs] = np.arange(differs.size) % min(differs.size, BLOCKS)

    def statistic(signs: Floats) -> Floats:
        differences = [measure(one, other, truth, block[codes], signs < 0) for truth, one, other, codes in ranked]
        return np.asarray(np.mean(differences, axis=0))

    observed = abs(float(statistic(np.ones((1, 1 + int(block.max()))))[0]))
    draws = affordable(sum(truth.size for truth, *_ in ranked), draws)
    return _share_reaching(statistic, observed, differs.size, seed, draws), int(differs.size)


def affordable(cases: int, draws: int = DRAWS) -> int:
    """Return how many swaps of ranks are drawn over so many cases."""
    return min(draws, max(_FEWEST, _BUDGET // max(1, cases)))


def finest(differing: int, draws: int = DRAWS) -> float:
    """Return the smallest p that can be reached.

    Example:
        >>> finest(3), finest(40)
        (0.25, 0.0001)
    """
    return 2.0 ** (1 - differing) if 0 < differing <= ENUMERATED else 1.0 if not differing else 1 / (draws + 1)


def swap_calls(
    labels: ArrayLike, first: ArrayLike, second: ArrayLike, by: Clusters, seed: int = 0, draws: int = DRAWS
) -> tuple[float, int]:
    """Test two models' F1 by swapping their calls within patients.

    Args:
        labels: (N,) 0, 1 or NaN (not annotated).
        first: (N,) calls of the first model, 0 or 1.
        second: (N,) of the second.
        by: patients of the N cases.
        seed: of the swaps, where they are drawn.
        draws: how many, where more than 14 patients differ; fewer over very many cases.

    Returns:
        Two-sided p, and the patients whose calls differ.
    """
    known = ~np.isnan(as_numbers(labels))
    truth, a = annotated(labels, first)
    _, b = annotated(labels, second)
    codes = by.codes[known]
    hits, calls = (
        [np.bincount(codes, weights=x, minlength=by.count) for x in pair]
        for pair in ((truth & (a > 0), truth & (b > 0)), (a > 0, b > 0))
    )
    differs = np.flatnonzero(np.bincount(codes, weights=(a > 0) != (b > 0), minlength=by.count))
    if not differs.size:
        return 1.0, 0
    changes = np.stack([(hits[0] - hits[1])[differs], (calls[0] - calls[1])[differs]], axis=1) / 2
    middle, positives = [(x[0].sum() + x[1].sum()) / 2 for x in (hits, calls)], float(truth.sum())

    def statistic(signs: Floats) -> Floats:
        hit, called = (signs @ _blocked(changes, signs.shape[1])).T
        one = 2 * (middle[0] + hit) / (positives + middle[1] + called)
        other = 2 * (middle[0] - hit) / (positives + middle[1] - called)
        return np.asarray(one - other)

    observed = abs(float(statistic(np.ones((1, min(differs.size, BLOCKS))))[0]))
    return _share_reaching(statistic, observed, differs.size, seed, draws), int(differs.size)


def holm_all(p_values: ArrayLike) -> list[float]:
    """Adjust p values of one family (Holm 1979); see `comparison.holm` for families with gaps.

    Example:
        >>> holm_all([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = as_numbers(p_values)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(p.size, 0, -1)))
    adjusted = np.empty(p.size)
    adjusted[order] = steps
    return [float(x) for x in adjusted]


def _settled(h: Floats) -> Floats:
    """Take rounding noise for no difference."""
    largest = np.abs(h).max(initial=0.0)
    return np.where(np.abs(h) <= largest * 1e-12, 0.0, h)


def _needed(observed: Floats) -> Floats:
    """Return what a statistic must reach to be as large as the observed one, up to rounding."""
    return observed * (1 - TOLERANCE) - ROUNDING


def _share_reaching(
    statistic: Callable[[Floats], Floats], observed: float, differing: int, seed: int, draws: int
) -> float:
    needed, hits, total = float(_needed(np.array(observed))), 0, 0
    for signs in _exchanges(differing, seed, draws):
        hits += int(np.count_nonzero(np.abs(statistic(signs)) >= needed))
        total += len(signs)
    one = 0 if differing <= ENUMERATED else 1
    return (hits + one) / (total + one)


def _exchanges(differing: int, seed: int, draws: int) -> Iterator[Floats]:
    """Yield signs (rows, blocks): all of them for few patients, else drawn."""
    if differing <= ENUMERATED:
        # The first sign stays: the other half mirrors this one.
        numbers = np.arange(2 ** max(differing - 1, 0))
        bits = (numbers[:, None] >> np.arange(max(differing, 1))) & 1
        yield np.where(bits == 1, -1.0, 1.0)
        return
    blocks, bits = min(differing, BLOCKS), _coins(seed, draws)
    for start in range(0, draws, _ROWS):
        yield np.asarray(1.0 - 2.0 * bits[start : start + _ROWS, :blocks], dtype=np.float64)


@lru_cache(maxsize=2)
def _coins(seed: int, draws: int) -> NDArray[np.int8]:
    """Throw every coin that a seed needs, (draws, BLOCKS), once: tests of one family and of many share them."""
    return np.random.default_rng(seed).integers(0, 2, (draws, BLOCKS), dtype=np.int8)


def _blocked(values: Floats, blocks: int) -> Floats:
    """Add patients (P, C) that are exchanged together: (blocks, C)."""
    if len(values) <= blocks:
        return values if len(values) else np.zeros((blocks, values.shape[1]))
    summed = np.zeros((blocks, values.shape[1]))
    np.add.at(summed, np.arange(len(values)) % blocks, values)
    return summed


def _mid_ranks(scores: Floats) -> NDArray[np.int64]:
    """Return twice the mid-rank of every score, a whole number."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    end = np.cumsum(count)
    return (2 * end - count + 1)[place].astype(np.int64)


@kernel
def _aucs(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    truth: NDArray[np.bool_],
    block: NDArray[np.int64],
    swapped: NDArray[np.bool_],
) -> Floats:
    """AUC of the first minus that of the second, (rows,), after each row's swaps."""
    size = 2 * truth.size + 1
    values = np.empty(swapped.shape[0])
    positives = truth.sum()
    pairs = 2.0 * positives * (truth.size - positives)
    for r in range(swapped.shape[0]):
        above = np.zeros((size, 4), dtype=np.int32)
        for i in range(truth.size):
            change = block[i] >= 0 and swapped[r, block[i]]
            a, b = (second[i], first[i]) if change else (first[i], second[i])
            above[a, 0 if truth[i] else 1] += 1
            above[b, 2 if truth[i] else 3] += 1
        one, other, below_one, below_other = 0, 0, 0, 0
        for v in range(size):
            one += above[v, 0] * (2 * below_one + above[v, 1])
            other += above[v, 2] * (2 * below_other + above[v, 3])
            below_one += above[v, 1]
            below_other += above[v, 3]
        values[r] = (one - other) / pairs
    return values


@kernel
def _average_precisions(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    truth: NDArray[np.bool_],
    block: NDArray[np.int64],
    swapped: NDArray[np.bool_],
) -> Floats:
    """Average precision of the first minus that of the second, (rows,), after each row's swaps."""
    size = 2 * truth.size + 1
    values = np.empty(swapped.shape[0])
    positives = truth.sum()
    for r in range(swapped.shape[0]):
        above = np.zeros((size, 4), dtype=np.int32)
        for i in range(truth.size):
            change = block[i] >= 0 and swapped[r, block[i]]
            a, b = (second[i], first[i]) if change else (first[i], second[i])
            above[a, 0] += truth[i]
            above[a, 1] += 1
            above[b, 2] += truth[i]
            above[b, 3] += 1
        one, other = 0.0, 0.0
        hits_one, called_one, hits_other, called_other = 0, 0, 0, 0
        for v in range(size - 1, -1, -1):
            hits_one += above[v, 0]
            called_one += above[v, 1]
            hits_other += above[v, 2]
            called_other += above[v, 3]
            if above[v, 0]:
                one += above[v, 0] * hits_one / called_one
            if above[v, 2]:
                other += above[v, 2] * hits_other / called_other
        values[r] = (one - other) / positives
    return values
