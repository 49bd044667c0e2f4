"""How firmly models are ranked: the ranks that they get when the patients are drawn again.

A rank has no influence function, so this is a bootstrap by patient. It shows how a ranking wavers and decides no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters, cluster_weights

Floats = NDArray[np.float64]
_BUDGET = 2_000_000_000  # patients times columns times replicates; beyond it fewer replicates
_FEWEST = 100


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Ranks of M models.

    Attributes:
        rank: (M,) as observed, 1 is the best; ties share their mean rank.
        low: (M,) lower limit of the ranks in the replicates, at the level asked for.
        high: (M,) upper limit.
        share: (M, M) share of replicates in which model m (row) gets rank r + 1 (column); ties go by halves and so on.
        first: (M,) share of replicates in which it is the best.
        replicates: drawn.
    """

    rank: Floats
    low: Floats
    high: Floats
    share: Floats
    first: Floats
    replicates: int


def rank_means(
    values: ArrayLike,
    by: Clusters,
    classes: Sequence[NDArray[np.bool_]] | None = None,
    *,
    higher_is_better: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Ranking:
    """Rank models by their mean, over items or over classes, on items that all of them have.

    Args:
        values: (N, M) one column a model, no NaN.
        by: patients of the N items.
        classes: masks (N,) of the classes whose means are averaged; None: the mean over items.
        higher_is_better: whether rank 1 has the largest mean.
        replicates: of the bootstrap, fewer over very many patients.
        seed: of the draws.
        level: of the limits.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise MetricError("Ranks need every model on every item.", expected="(items, models)", got=array.shape)
    masks = [mask for mask in (classes or [np.ones(len(array), dtype=bool)]) if mask.any()]
    sums = np.stack([_added(array, mask, by) for mask in masks], axis=1)  # (P, classes, models + 1)
    sign = 1.0 if higher_is_better else -1.0
    draws = min(replicates, max(_FEWEST, _BUDGET // max(1, sums.size)))
    observed = _mean_rank(*_places(sign * _means(np.ones((1, by.count)), sums)))[0]
    drawn = cluster_weights(by.count, draws, seed)
    places = [_places(sign * _means(weights.T.astype(np.float64), sums)) for weights in drawn]
    if not places:
        places = [_places(sign * _means(np.ones((1, by.count)), sums))]
    better, alike = (np.concatenate(part) for part in zip(*places, strict=True))
    ranks = _mean_rank(better, alike)
    place = np.arange(array.shape[1])
    # Models alike share the places that they take.
    taken = (place >= better[..., None]) & (place < (better + alike)[..., None])
    share = (taken / alike[..., None]).mean(axis=0)
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Ranking(observed, low, high, share, share[:, 0], draws)


def _added(values: Floats, mask: NDArray[np.bool_], by: Clusters) -> Floats:
    columns = np.hstack([np.where(mask[:, None], values, 0.0), mask[:, None].astype(np.float64)])
    added = [np.bincount(by.codes, weights=column, minlength=by.count) for column in columns.T]
    return np.stack(added, axis=1)


def _means(weights: Floats, sums: Floats) -> Floats:
    """Return the mean over the classes that a replicate has, (B, M)."""
    totals = np.tensordot(weights, sums, axes=(1, 0))
    above, below = totals[..., :-1], totals[..., -1:]
    means = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return np.asarray(np.nanmean(means, axis=1))


def _places(means: Floats) -> tuple[Floats, Floats]:
    """Return how many models are better, and how many alike (itself among them), both (B, M)."""
    settled = np.round(means, 12)
    better = (settled[:, None, :] > settled[:, :, None]).sum(axis=2)
    alike = (settled[:, None, :] == settled[:, :, None]).sum(axis=2)
    return better.astype(np.float64), alike.astype(np.float64)


def _mean_rank(better: Floats, alike: Floats) -> Floats:
    return better + (alike + 1) / 2
