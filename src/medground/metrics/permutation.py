"""Paired tests by patient: sign flips, swaps of ranks and of calls, and families of them.

Rankings are tested twice over the same swaps of mid-ranks, by their plain difference and by the studentised one, and
the larger p counts. The plain one is as good as exact where the models may change places (Bandos, Rockette and Gur
2005); the studentised one holds in large samples where they are equally good in other ways, too (Janssen 1997; Chung
and Romano 2013). Where scores are ranked anew in every swap neither is exact: each alone exceeds .05 by up to .02 for
few positive patients, and their larger p does not (``make simulate``).

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
_HELD = 2_000_000  # influences held at a time, exchanges times patients
_BUDGET = 50_000_000  # cases ranked in a swap test, draws times cases; beyond it fewer draws, never below _FEWEST
_FEWEST = 1_999
TOLERANCE, ROUNDING = 1e-9, 1e-12

Floats = NDArray[np.float64]
Ranking = Literal["auc", "average precision"]
Difference = Literal["larger p", "plain", "studentised"]
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
    difference: Difference = "larger p",
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
        difference: by which the swaps are held against what was observed; see the module.

    Returns:
        Two-sided p, and the patients whose ranks differ.
    """
    return swap_macro_ranks([(labels, first, second)], by, metric, seed, draws, difference)


Ranked = tuple[ArrayLike, ArrayLike, ArrayLike]


def swap_macro_ranks(
    classes: Sequence[Ranked],
    by: Clusters,
    metric: Ranking = AUC,
    seed: int = 0,
    draws: int = DRAWS,
    difference: Difference = "larger p",
) -> tuple[float, int]:
    """Test two models' mean over classes of a ranking metric: a patient's ranks change sides in all classes at once.

    Args:
        classes: (labels, scores of the first, scores of the second) of every class, each (N,), in which the metric is
            defined.
        by: patients of the N cases.
        metric: what is recomputed after each swap.
        seed: of the swaps, where they are drawn.
        draws: as in `swap_ranks`.
        difference: as in `swap_ranks`.

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
    share = 1 / len(ranked)

    def statistics(signs: Floats) -> Floats:
        step = max(1, _HELD // by.count)
        return np.concatenate([some(signs[k : k + step] < 0) for k in range(0, len(signs), step)], axis=1)

    def some(swapped: NDArray[np.bool_]) -> Floats:
        values, influence = np.zeros(len(swapped)), np.zeros((len(swapped), by.count))
        for truth, one, other, codes in ranked:
            measure(one, other, truth, codes, block[codes], swapped, share, values, influence)
        return np.stack([values, _studentised(values, influence)])

    observed = np.abs(statistics(np.ones((1, 1 + int(block.max()))))[:, 0])
    draws = affordable(sum(truth.size for truth, *_ in ranked), draws)
    shares = _shares_reaching(statistics, observed, differs.size, seed, draws)
    kept = {"plain": shares[:1], "studentised": shares[1:], "larger p": shares}[difference]
    return float(kept.max()), int(differs.size)


def _studentised(values: Floats, influence: Floats) -> Floats:
    """Divide differences (rows,) by the size of their patients' influences (rows, P)."""
    scale = np.sqrt(np.einsum("rp,rp->r", influence, influence))
    still = scale <= ROUNDING
    # Without any variation a difference is either none or beyond every other.
    limit = np.where(np.abs(values) <= ROUNDING, 0.0, np.sign(values) / ROUNDING)
    return np.where(still, limit, values / np.where(still, 1.0, scale))


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

    def statistics(signs: Floats) -> Floats:
        hit, called = (signs @ _blocked(changes, signs.shape[1])).T
        one = 2 * (middle[0] + hit) / (positives + middle[1] + called)
        other = 2 * (middle[0] - hit) / (positives + middle[1] - called)
        return np.asarray(one - other)[None]

    observed = np.abs(statistics(np.ones((1, min(differs.size, BLOCKS))))[:, 0])
    return float(_shares_reaching(statistics, observed, differs.size, seed, draws)[0]), int(differs.size)


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


def _shares_reaching(
    statistics: Callable[[Floats], Floats], observed: Floats, differing: int, seed: int, draws: int
) -> Floats:
    """Return p of each of K statistics, (K, rows) over the same exchanges."""
    needed, hits, total = _needed(observed)[:, None], np.zeros(observed.size), 0
    for signs in _exchanges(differing, seed, draws):
        hits += np.count_nonzero(np.abs(statistics(signs)) >= needed, axis=1)
        total += len(signs)
    one = 0 if differing <= ENUMERATED else 1
    return np.asarray((hits + one) / (total + one))


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
    codes: NDArray[np.int64],
    block: NDArray[np.int64],
    swapped: NDArray[np.bool_],
    share: float,
    values: Floats,
    influence: Floats,
) -> None:
    """Add ``share`` of the AUC of the first minus that of the second, (rows,), and of its influences, (rows, P)."""
    size = 2 * truth.size + 1
    positives = truth.sum()
    negatives = truth.size - positives
    for r in range(swapped.shape[0]):
        # Positives and negatives of either model below each rank, ties half.
        below = np.zeros((size, 4))
        for i in range(truth.size):
            change = block[i] >= 0 and swapped[r, block[i]]
            a, b = (second[i], first[i]) if change else (first[i], second[i])
            below[a, 0 if truth[i] else 1] += 1
            below[b, 2 if truth[i] else 3] += 1
        for k in range(4):
            so_far = 0.0
            for v in range(size):
                held = below[v, k]
                below[v, k] = so_far + 0.5 * held
                so_far += held
        total = np.zeros(2)
        for i in range(truth.size):
            if truth[i]:
                change = block[i] >= 0 and swapped[r, block[i]]
                a, b = (second[i], first[i]) if change else (first[i], second[i])
                total[0] += below[a, 1]
                total[1] += below[b, 3]
        difference = (total[0] - total[1]) / (positives * negatives)
        values[r] += share * difference
        for i in range(truth.size):
            change = block[i] >= 0 and swapped[r, block[i]]
            a, b = (second[i], first[i]) if change else (first[i], second[i])
            if truth[i]:
                own = ((below[a, 1] - below[b, 3]) / negatives - difference) / positives
            else:
                own = ((below[b, 2] - below[a, 0]) / positives - difference) / negatives
            influence[r, codes[i]] += share * own


@kernel
def _average_precisions(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    truth: NDArray[np.bool_],
    codes: NDArray[np.int64],
    block: NDArray[np.int64],
    swapped: NDArray[np.bool_],
    share: float,
    values: Floats,
    influence: Floats,
) -> None:
    """Add ``share`` of average precision of the first minus the second, (rows,), and of its influences, (rows, P)."""
    size = 2 * truth.size + 1
    positives = truth.sum()
    for r in range(swapped.shape[0]):
        for side in range(2):
            sign = share if side == 0 else -share
            ranks = np.empty(truth.size, np.int64)
            hits, called = np.zeros(size), np.zeros(size)
            for i in range(truth.size):
                change = block[i] >= 0 and swapped[r, block[i]]
                ranks[i] = second[i] if change == (side == 0) else first[i]
                hits[ranks[i]] += truth[i]
                called[ranks[i]] += 1
            value = _precise(hits, called) / positives
            values[r] += sign * value
            # Now hits holds the precision at a rank, called what a positive at or below it gains and loses.
            for i in range(truth.size):
                v = ranks[i]
                own = -called[v]
                if truth[i]:
                    own += hits[v] - value
                influence[r, codes[i]] += sign * own / positives


@kernel
def _precise(hits: Floats, called: Floats) -> float:
    """Return the sum of precisions over the positives; leave in both arrays what influences are made of.

    Args:
        hits: (ranks,) positives at each rank; after it: precision there, plus the sum over positives at or below of
            one over the number that is called with each.
        called: (ranks,) cases at each rank; after it: the sum over positives at or below of precision over that number.
    """
    held, above, right, total = hits.copy(), 0.0, 0.0, 0.0
    for v in range(hits.size - 1, -1, -1):
        above += called[v]
        right += held[v]
        called[v] = above
        hits[v] = right / above if above > 0 else 0.0
        total += held[v] * hits[v]
    gains, losses = 0.0, 0.0
    for v in range(hits.size):
        if held[v] > 0:
            gains += held[v] / called[v]
            losses += held[v] * hits[v] / called[v]
        hits[v] += gains
        called[v] = losses
    return total
