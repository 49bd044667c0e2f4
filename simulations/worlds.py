"""Data sets with a known truth: few or many patients with one to four items each, alike within a patient or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import beta as beta_distribution

from medground.metrics.bootstrap import Clusters

Floats = NDArray[np.float64]
QUANTILES = 4_001


@dataclass(frozen=True)
class Shape:
    """How many patients, how many items each, and how alike these are.

    Attributes:
        patients: G.
        items: of every patient, or 0 for one to four of them.
        alike: correlation of two items of one patient, on the scale of a hidden normal variable.
    """

    patients: int
    items: int = 1
    alike: float = 0.0

    def clusters(self, rng: np.random.Generator) -> Clusters:
        """Deal items out to the patients."""
        each = np.full(self.patients, self.items) if self.items else rng.choice(4, self.patients, p=_FEW) + 1
        return Clusters(np.repeat(np.arange(self.patients), each), self.patients)


_FEW = (0.4, 0.25, 0.2, 0.15)


def hidden(rng: np.random.Generator, by: Clusters, sets: int, alike: float) -> Floats:
    """Draw standard normal variables (sets, N), correlated within patients."""
    own = rng.standard_normal((sets, by.codes.size))
    if not alike:
        return own
    patient = rng.standard_normal((sets, by.count))[:, by.codes]
    return np.sqrt(alike) * patient + np.sqrt(1 - alike) * own


def pair(rng: np.random.Generator, by: Clusters, sets: int, alike: float, close: float) -> tuple[Floats, Floats]:
    """Draw the hidden variables of two models, whose correlation on one item is ``close``."""
    common, one, other = (hidden(rng, by, sets, alike) for _ in range(3))
    mixed = [np.sqrt(close) * common + np.sqrt(1 - close) * own for own in (one, other)]
    return mixed[0], mixed[1]


def hits(z: Floats, rate: float) -> Floats:
    """Turn hidden variables into hits (0 or 1) with a given rate."""
    return (z < ndtri(rate)).astype(np.float64)


def dice(z: Floats, zeros: float, mean: float, spread: float = 6.0) -> Floats:
    """Turn hidden variables into overlaps: a share of zeros, the rest from a beta distribution.

    The mean of all is ``(1 - zeros) * mean``.
    """
    u = (ndtr(z) - zeros) / (1 - zeros)
    inside = np.interp(u, np.linspace(0, 1, QUANTILES), _quantiles(mean, spread))
    return np.where(u <= 0, 0.0, inside)


@cache
def _quantiles(mean: float, spread: float) -> Floats:
    """Quantiles scaled so that the mean of the interpolated distribution is exactly the one asked for."""
    q = beta_distribution.ppf(np.linspace(0, 1, QUANTILES), mean * spread, (1 - mean) * spread)
    found = np.trapezoid(q, dx=1 / (QUANTILES - 1))
    return np.asarray(q * mean / found)


@dataclass(frozen=True)
class Ranked:
    """Patients with and without a finding, and a score that tells them apart.

    Attributes:
        positives: patients with the finding.
        negatives: patients without it.
        auc: chance that a positive item scores above a negative one.
        items: as in `Shape`.
        alike: as in `Shape`.
        wider: standard deviation of the positives' scores; 1 as for the negatives.
    """

    positives: int
    negatives: int
    auc: float
    items: int = 1
    alike: float = 0.0
    wider: float = 1.0

    @property
    def shift(self) -> float:
        """Distance between the means of the two kinds."""
        return float(ndtri(self.auc)) * np.hypot(1.0, self.wider)

    def layout(self, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Clusters]:
        """Return labels and patients of the items."""
        by = Shape(self.positives + self.negatives, self.items).clusters(rng)
        return by.codes < self.positives, by

    def scores(self, z: Floats, truth: NDArray[np.bool_]) -> Floats:
        """Turn hidden variables (sets, N) into scores."""
        return np.where(truth, self.shift + self.wider * z, z)

    def average_precision(self, prevalence: float) -> float:
        """The population's average precision at a prevalence."""
        z = ndtri((np.arange(20_000) + 0.5) / 20_000)
        at = self.shift + self.wider * z
        recall = 1 - ndtr(z)
        called = prevalence * recall + (1 - prevalence) * (1 - ndtr(at))
        return float(np.mean(prevalence * recall / called))

    def f1(self, prevalence: float, cut: float) -> float:
        """The population's F1 at a cut."""
        recall, alarms = 1 - ndtr((cut - self.shift) / self.wider), 1 - ndtr(cut)
        return float(2 * prevalence * recall / (prevalence * (1 + recall) + (1 - prevalence) * alarms))
