"""Speed of the metrics beside the usual ways, measured in one run on one thread.

``make bench`` prints for the sweep at 1024 x 1024 and 101 thresholds how many times faster it is than a tight numpy
loop and than the pattern of the published CheXlocalize code, and how long 1,000 patient-clustered replicates of 14 AUCs
over 25,596 cases take. All compute the same numbers, which is checked first.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from medground.metrics.bootstrap import bootstrap_ranking, clusters
from medground.metrics.classification import auc
from medground.metrics.saliency import minmax
from medground.metrics.sweep import overlap, sweep, threshold_grid

SIDE = 1024
GRID = threshold_grid()


def smooth_map() -> np.ndarray:
    """A 14 x 14 grid enlarged by straight lines, as saliency maps are."""
    grid = np.random.default_rng(0).random((14, 14))
    at = np.clip((np.arange(SIDE) + 0.5) * 14 / SIDE - 0.5, 0, 13)
    rows = np.array([np.interp(at, np.arange(14), row) for row in grid])
    return minmax(np.array([np.interp(at, np.arange(14), column) for column in rows.T]).T)


def random_map() -> np.ndarray:
    return np.random.default_rng(1).random((SIDE, SIDE))


def box() -> np.ndarray:
    mask = np.zeros((SIDE, SIDE), bool)
    mask[300:620, 180:520] = True
    return mask


def tight_loop(saliency: np.ndarray, mask: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One comparison and two counts a threshold, into memory made once."""
    above, both = np.empty_like(mask), np.empty_like(mask)
    selected, inside = np.empty(thresholds.size, np.int64), np.empty(thresholds.size, np.int64)
    for k, tau in enumerate(thresholds):
        np.greater_equal(saliency, tau, out=above)
        np.logical_and(above, mask, out=both)
        selected[k], inside[k] = np.count_nonzero(above), np.count_nonzero(both)
    return selected, inside


def published_pattern(saliency: np.ndarray, mask: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """An integer mask a threshold, its intersection and union with the truth, and two sums."""
    truth = mask.astype(int)
    scores = np.empty(thresholds.size)
    for k, tau in enumerate(thresholds):
        predicted = (saliency > tau).astype(int)
        shared = np.logical_and(predicted, truth)
        union = np.logical_or(predicted, truth)
        scores[k] = np.sum(shared) / np.sum(union)
    return scores


def best_of(function: Callable[[], object], rounds: int) -> float:
    """Shortest of several runs, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [smooth_map, random_map])
def test_sweep(benchmark, make, dtype):
    saliency, mask, thresholds = make().astype(dtype), box(), GRID.astype(dtype)
    for found, expected in zip(sweep(saliency, mask, thresholds), tight_loop(saliency, mask, thresholds), strict=True):
        np.testing.assert_array_equal(found, expected)
    iou = overlap(*sweep(saliency, mask, thresholds, ">"), mask.sum()).iou
    np.testing.assert_allclose(iou, published_pattern(saliency, mask, thresholds))

    benchmark.pedantic(lambda: sweep(saliency, mask, thresholds), rounds=40, warmup_rounds=3)
    ours = best_of(lambda: sweep(saliency, mask, thresholds), 40)
    tight = best_of(lambda: tight_loop(saliency, mask, thresholds), 12)
    published = best_of(lambda: published_pattern(saliency, mask, thresholds), 5)
    print(
        f"\nsweep {SIDE} x {SIDE}, {GRID.size} thresholds, {make.__name__}, {np.dtype(dtype)}: {ours:.2f} ms; "
        f"{tight / ours:.0f} times faster than a tight loop ({tight:.1f} ms), "
        f"{published / ours:.0f} times faster than the CheXlocalize pattern ({published:.0f} ms)"
    )
    assert tight / ours >= 10
    assert published / ours >= 80


def test_bootstrap(benchmark):
    rng = np.random.default_rng(2)
    cases, classes, patients, replicates = 25596, 14, 2797, 1000  # the test split of ChestX-ray14
    labels = (rng.random((cases, classes)) < np.linspace(0.002, 0.2, classes)).astype(float)
    scores = rng.normal(labels, 1)
    by = clusters([f"{p:05d}" for p in rng.integers(patients, size=cases)])
    bootstrap_ranking(labels[:200], scores[:200], clusters([str(i) for i in range(200)]), 64)

    def ours() -> np.ndarray:
        return bootstrap_ranking(labels, scores, by, replicates).auc

    drawn = benchmark.pedantic(ours, rounds=2)
    assert np.abs(drawn.mean(axis=0) - [auc(labels[:, k], scores[:, k]).value for k in range(classes)]).max() < 0.01
    seconds = best_of(ours, 2) / 1000
    print(
        f"\nbootstrap: {replicates} patient-clustered replicates of {classes} AUCs (and average precisions, and "
        f"trapezoid AUPRCs) over {cases} cases: {seconds:.2f} s"
    )
    assert seconds < 5
