"""The additive fallacy check: does a score of synergy follow what a model truly does?

A model that intersects relations needs more of image and text together at each depth; a model that counts target
words does not. So a score must rise with depth for the first and stay flat and low for the second. The published
description gives no test; the rules and intervals here are ours and are stated below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError

Interval = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A score over depths.

    Attributes:
        n: scenes a depth, undefined ones left out.
        n_undefined: scenes a depth without a score.
        mean: mean a depth.
        sd: population standard deviation a depth.
        slope: least squares slope of the means over depth.
        slope_interval: 95 % percentile bootstrap over scenes, each depth resampled on its own.
        step_intervals: the same for the rise from each depth to the next.
        concordance: share of pairs of scenes of different depths in which the deeper one scores higher, ties half
            (Jonckheere-Terpstra, scaled to [0, 1]; 0.5 without a trend).
        p_rising: one-sided p of the concordance by permutation of depths.
    """

    n: tuple[int, ...]
    n_undefined: tuple[int, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    slope: float
    slope_interval: Interval
    step_intervals: tuple[Interval, ...]
    concordance: float
    p_rising: float

    @property
    def increasing(self) -> bool:
        """Whether the means rise strictly."""
        return all(b > a for a, b in zip(self.mean, self.mean[1:], strict=False))


@dataclass(frozen=True)
class Fallacy:
    """The verdict on one score.

    Attributes:
        pure: its series on the model that reasons.
        spurious: its series on the model that takes the shortcut.
        passes_mean_rule: rule A: the means of ``pure`` rise strictly; the slope interval of ``spurious`` covers 0;
            every mean of ``spurious`` lies below the first mean of ``pure``.
        passes_confident_rule: rule B: rule A, and every step interval of ``pure`` lies above 0.
    """

    pure: Series
    spurious: Series

    @property
    def flat(self) -> bool:
        """Whether the slope interval of the shortcut model covers 0."""
        low, high = self.spurious.slope_interval
        return low <= 0 <= high

    @property
    def low(self) -> bool:
        """Whether every mean of the shortcut model lies below the other's first."""
        return all(mean < self.pure.mean[0] for mean in self.spurious.mean)

    @property
    def passes_mean_rule(self) -> bool:
        """Rule A."""
        return self.pure.increasing and self.flat and self.low

    @property
    def passes_confident_rule(self) -> bool:
        """Rule B."""
        return self.passes_mean_rule and all(low > 0 for low, _ in self.pure.step_intervals)


def additive_fallacy(
    pure: Sequence[ArrayLike], spurious: Sequence[ArrayLike], *, resamples: int = 4000, seed: int = 12345
) -> Fallacy:
    """Check one score of synergy.

    Args:
        pure: one array of per-scene scores a depth, in order; NaN where undefined (left out and counted).
        spurious: the same for the shortcut model.
        resamples: bootstrap replicates; also permutations.
        seed: of the bootstrap, one generator a series.

    Raises:
        MetricError: fewer than two depths, or a depth without a defined score.
    """
    return Fallacy(series(pure, resamples=resamples, seed=seed), series(spurious, resamples=resamples, seed=seed))


def series(depths: Sequence[ArrayLike], *, resamples: int = 4000, seed: int = 12345) -> Series:
    """Return a score over depths with its intervals; arguments as in :func:`additive_fallacy`."""
    given = [np.asarray(values, np.float64).ravel() for values in depths]
    kept = [values[~np.isnan(values)] for values in given]
    if len(kept) < 2 or any(values.size == 0 for values in kept):
        raise MetricError(
            "A trend needs scores at two depths at least.", got=f"{[v.size for v in kept]} defined scores"
        )
    rng = np.random.default_rng(seed)
    means = np.stack([v[rng.integers(0, v.size, (resamples, v.size))].mean(1) for v in kept], 1)
    observed = np.array([v.mean() for v in kept])
    concordance = _concordance(kept)
    return Series(
        n=tuple(v.size for v in kept),
        n_undefined=tuple(g.size - v.size for g, v in zip(given, kept, strict=True)),
        mean=tuple(observed.tolist()),
        sd=tuple(float(v.std()) for v in kept),
        slope=float(_slope(observed)),
        slope_interval=_interval(_slope(means)),
        step_intervals=tuple(_interval(step) for step in np.diff(means, axis=1).T),
        concordance=concordance,
        p_rising=_permuted(kept, concordance, rng, min(resamples, 2000)),
    )


def _slope(means: NDArray[np.float64]) -> Any:
    """Return the least squares slope over equally spaced depths, along the last axis."""
    x = np.arange(means.shape[-1]) - (means.shape[-1] - 1) / 2
    return (means * x).sum(-1) / (x**2).sum()


def _interval(draws: NDArray[np.float64]) -> Interval:
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def _concordance(depths: Sequence[NDArray[np.float64]]) -> float:
    """Return the Jonckheere-Terpstra statistic as a share of all pairs of scenes at different depths."""
    good, pairs = 0.0, 0
    for i, low in enumerate(depths):
        ordered = np.sort(low)
        for high in depths[i + 1 :]:
            good += (np.searchsorted(ordered, high, "left") + np.searchsorted(ordered, high, "right")).sum() / 2
            pairs += low.size * high.size
    return good / pairs


def _permuted(depths: Sequence[NDArray[np.float64]], observed: float, rng: np.random.Generator, n: int) -> float:
    """Return the share of permutations of depths whose concordance is at least the observed one."""
    pool, cuts = np.concatenate(depths), np.cumsum([d.size for d in depths])[:-1]
    at_least = sum(_concordance(np.split(rng.permutation(pool), cuts)) >= observed - 1e-12 for _ in range(n))
    return (1 + at_least) / (1 + n)
