"""Metrics from weights: how often each cluster was drawn, for many replicates side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medground.metrics._arrays import kernel

FloatArray = NDArray[np.float64]
Weights = NDArray[np.uint16]  # (clusters, b); a cluster drawn 65,536 times does not happen


def cluster_sums(values: NDArray[np.generic], codes: NDArray[np.int64], count: int) -> FloatArray:
    """Add the items of each cluster.

    Args:
        values: (N, K), finite.
        codes: (N,) cluster of each item.
        count: number of clusters.

    Returns:
        (count, K), to the last bit the same in whatever order the items come.
    """
    array = values.astype(np.float64)
    order = np.lexsort((*array.T, codes))  # equal rows may swap, so the order of every sum is settled
    sums = np.empty((count, array.shape[1]))
    for k in range(array.shape[1]):
        sums[:, k] = np.bincount(codes[order], weights=array[order, k], minlength=count)
    return sums


@kernel
def ranked(
    weights: Weights, cluster: NDArray[np.int64], positive: NDArray[np.bool_], last: NDArray[np.bool_]
) -> FloatArray:
    """Compute AUC, average precision and trapezoid AUPRC of weighted cases; the loops over b are vectorised.

    Args:
        weights: (clusters, b).
        cluster: (N,) of each case, highest score first.
        positive: (N,) its label.
        last: (N,) whether the next case has another score.

    Returns:
        (3, b), NaN where undefined. Counts are whole numbers in float64, exact up to 2**53.
    """
    b = weights.shape[1]
    tp, fp, new_tp, new_fp = np.zeros(b), np.zeros(b), np.zeros(b), np.zeros(b)
    twice, ap, trapezoid, precision = np.zeros(b), np.zeros(b), np.zeros(b), np.ones(b)
    for i in range(cluster.size):
        drawn = weights[cluster[i]]
        gained = new_tp if positive[i] else new_fp
        for r in range(b):
            gained[r] += drawn[r]
        if last[i]:
            for r in range(b):
                twice[r] += new_fp[r] * (2.0 * tp[r] + new_tp[r])
                tp[r] += new_tp[r]
                fp[r] += new_fp[r]
                before = precision[r]
                called = tp[r] + fp[r]
                precision[r] = tp[r] / called if called > 0.0 else 1.0
                ap[r] += new_tp[r] * precision[r]
                trapezoid[r] += new_tp[r] * (precision[r] + before) * 0.5
                new_tp[r] = 0.0
                new_fp[r] = 0.0
    values = np.full((3, b), np.nan)
    for r in range(b):
        if tp[r] > 0.0 and fp[r] > 0.0:
            values[0, r] = twice[r] / (2.0 * tp[r] * fp[r])
            values[1, r] = ap[r] / tp[r]
            values[2, r] = trapezoid[r] / tp[r]
    return values


@kernel
def weighted_sums(weights: Weights, sums: FloatArray) -> FloatArray:
    """Multiply weights (clusters, b), transposed, and sums (clusters, K), in the order of the clusters: (b, K)."""
    b = weights.shape[1]
    total = np.zeros((sums.shape[1], b))
    for p in range(sums.shape[0]):
        for k in range(sums.shape[1]):
            value = sums[p, k]
            if value != 0.0:
                for r in range(b):
                    total[k, r] += value * weights[p, r]
    return total.T.copy()
