"""Do probabilities mean what they say? Brier score, log loss, expected calibration error, reliability bins.

Labels are 0, 1 or NaN (not annotated, left out); probabilities lie in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics.classification import annotated
from medground.metrics.values import NO_ANNOTATION, Value

Binning = Literal["right_closed", "left_closed", "equal_mass"]


@dataclass(frozen=True, slots=True)
class BrierParts:
    """Murphy's split of the Brier score: reliability - resolution + uncertainty, over the distinct probabilities."""

    reliability: float
    resolution: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins of a reliability diagram, each array (B,).

    Attributes:
        edges: (B + 1,) of even bins; None for bins of equal mass.
        count: cases in the bin.
        probability: mean probability; NaN in an empty bin.
        frequency: share of positives; NaN in an empty bin.
    """

    edges: NDArray[np.float64] | None
    count: NDArray[np.int64]
    probability: NDArray[np.float64]
    frequency: NDArray[np.float64]

    @property
    def gap(self) -> NDArray[np.float64]:
        """|mean probability - share of positives|; NaN in an empty bin."""
        return np.abs(self.probability - self.frequency)

    @property
    def ece(self) -> Value:
        """Expected calibration error: gaps weighted by the share of cases."""
        n, filled = int(self.count.sum()), self.count > 0
        if not n:
            return Value(None, NO_ANNOTATION)
        return Value(math.fsum(self.count[filled] * self.gap[filled]) / n, n=n)

    @property
    def mce(self) -> Value:
        """Maximum calibration error: the largest gap."""
        n = int(self.count.sum())
        return Value(float(np.nanmax(self.gap)), n=n) if n else Value(None, NO_ANNOTATION)


def brier(labels: ArrayLike, probabilities: ArrayLike) -> Value:
    """Mean squared difference between probability and label (the form with one probability; chance 0.25).

    Example:
        >>> brier([1, 0], [0.5, 0.5]).value
        0.25
    """
    truth, p = _probabilities(labels, probabilities)
    return _mean((p - truth) ** 2)


def brier_parts(labels: ArrayLike, probabilities: ArrayLike) -> BrierParts | None:
    """Split the Brier score exactly, cases grouped by equal probability; None without an annotated case.

    Murphy, A new vector partition of the probability score, 1973.
    """
    truth, p = _probabilities(labels, probabilities)
    if not p.size:
        return None
    distinct, group = np.unique(p, return_inverse=True)
    count = np.bincount(group)
    frequency = np.bincount(group, weights=truth) / count
    base = float(truth.mean())
    return BrierParts(
        reliability=math.fsum(count * (distinct - frequency) ** 2) / p.size,
        resolution=math.fsum(count * (frequency - base) ** 2) / p.size,
        uncertainty=base * (1 - base),
    )


def log_loss(labels: ArrayLike, probabilities: ArrayLike, clip: float = 1e-15) -> Value:
    """Mean negative natural logarithm of the probability given to the truth.

    Args:
        labels: (N,).
        probabilities: (N,).
        clip: probabilities are moved into [clip, 1 - clip], so that one sure mistake costs 34.5, not infinity.

    Example:
        >>> round(log_loss([1], [0.5]).value, 4)
        0.6931
    """
    truth, p = _probabilities(labels, probabilities)
    p = np.clip(p, clip, 1 - clip)
    return _mean(-np.where(truth == 1, np.log(p), np.log(1 - p)))


def reliability(
    labels: ArrayLike, probabilities: ArrayLike, bins: int = 10, binning: Binning = "right_closed"
) -> Reliability:
    """Sort cases into bins of probability.

    Args:
        labels: (N,).
        probabilities: (N,).
        bins: number of bins.
        binning: ``"right_closed"``: (k / bins, (k + 1) / bins], 0 in the first; ``"left_closed"``:
            [k / bins, (k + 1) / bins), 1 in the last; ``"equal_mass"``: cases in the order of their probability
            (stable), cut into parts whose sizes differ by at most one, the larger ones first.

    Raises:
        MetricError: probabilities outside [0, 1], fewer than one bin, or an unknown rule.

    Example:
        >>> reliability([0, 1, 1], [0.1, 0.2, 0.9]).ece.value
        0.3333333333333333
    """
    if bins < 1 or binning not in get_args(Binning):
        raise MetricError(
            "Cannot bin so.", expected=f"at least 1 bin and one of {get_args(Binning)}", got=(bins, binning)
        )
    truth, p = _probabilities(labels, probabilities)
    edges = None
    if binning == "equal_mass":
        order = np.argsort(p, kind="stable")
        truth, p = truth[order], p[order]
        small, larger = divmod(p.size, bins)
        which = np.repeat(np.arange(bins), small + (np.arange(bins) < larger))
    else:
        edges = np.arange(bins + 1) / bins
        side: Literal["left", "right"] = "left" if binning == "right_closed" else "right"
        which = np.clip(np.searchsorted(edges, p, side=side) - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins).astype(np.int64)
    return Reliability(edges, count, *(_bin_means(x, which, count) for x in (p, truth)))


def ece(labels: ArrayLike, probabilities: ArrayLike, bins: int = 10, binning: Binning = "right_closed") -> Value:
    """Expected calibration error; see `reliability`. Naeini et al., AAAI 2015."""
    return reliability(labels, probabilities, bins, binning).ece


def mce(labels: ArrayLike, probabilities: ArrayLike, bins: int = 10, binning: Binning = "right_closed") -> Value:
    """Maximum calibration error; see `reliability`."""
    return reliability(labels, probabilities, bins, binning).mce


def _probabilities(labels: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    truth, p = annotated(labels, probabilities)
    if ((p < 0) | (p > 1)).any():
        raise MetricError(
            "A probability lies outside [0, 1].",
            got=f"values from {p.min():g} to {p.max():g}",
            fix="give probabilities, not scores",
        )
    return truth.astype(np.float64), p


def _mean(values: NDArray[np.float64]) -> Value:
    return Value(math.fsum(values) / values.size, n=values.size) if values.size else Value(None, NO_ANNOTATION)


def _bin_means(values: NDArray[np.float64], which: NDArray[np.intp], count: NDArray[np.int64]) -> NDArray[np.float64]:
    means = np.full(count.size, np.nan)
    np.divide(np.bincount(which, weights=values, minlength=count.size), count, out=means, where=count > 0)
    return means
