"""Local linear surrogates, as LIME fits them (Ribeiro et al. 2016; lime 0.2.0.1), in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Surrogate:
    """A weighted ridge regression of an output on which units are present.

    Attributes:
        weights: ``(units,)``; 0 for units that were not chosen.
        intercept: free of penalty.
        score: weighted R².
    """

    weights: Table
    intercept: float
    score: float


def distances(on: NDArray[np.bool_], scale: float = 1.0) -> Table:
    """Return the cosine distance of every row ``(Q, units)`` from the first, times ``scale``; 1 for an empty row."""
    rows = on.astype(np.float64)
    lengths = np.sqrt(rows.sum(1))
    dots = rows @ rows[0]
    cosine = np.divide(dots, lengths * lengths[0], out=np.zeros(len(rows)), where=lengths * lengths[0] > 0)
    distances: Table = (1 - cosine) * scale
    return distances


def kernel(distance: Table, width: float) -> Table:
    """Return the weight of every row: ``sqrt(exp(-d**2 / width**2))``."""
    weights: Table = np.sqrt(np.exp(-(distance**2) / width**2))
    return weights


def fit(
    on: NDArray[np.bool_], outputs: Table, weights: Table, *, penalty: float = 1.0, features: int | None = None
) -> Surrogate:
    """Fit a surrogate.

    Args:
        on: ``(Q, units)`` which units are present.
        outputs: ``(Q,)``.
        weights: ``(Q,)`` weight of every row.
        penalty: of the squared weights.
        features: keep only this many units: those with the largest weights in a first fit with little penalty, or by
            forward selection where there are six at most (as the library's ``auto``). None: all.
    """
    units = on.shape[1]
    chosen: Sequence[int] = range(units)
    if features is not None and features < units:
        chosen = _forward(on, outputs, weights, features) if features <= 6 else _largest(on, outputs, weights, features)
    slopes, intercept, score = _ridge(on[:, list(chosen)].astype(np.float64), outputs, weights, penalty)
    full = np.zeros(units)
    full[list(chosen)] = slopes
    return Surrogate(full, intercept, score)


def _largest(on: NDArray[np.bool_], outputs: Table, weights: Table, n: int) -> list[int]:
    slopes, _, _ = _ridge(on.astype(np.float64), outputs, weights, 0.01)
    return sorted(np.argsort(-np.abs(slopes), kind="stable")[:n].tolist())


def _forward(on: NDArray[np.bool_], outputs: Table, weights: Table, n: int) -> list[int]:
    chosen: list[int] = []
    x = on.astype(np.float64)
    for _ in range(n):
        rest = [unit for unit in range(on.shape[1]) if unit not in chosen]
        scores = [_ridge(x[:, [*chosen, unit]], outputs, weights, 0.0)[2] for unit in rest]
        chosen.append(rest[int(np.argmax(scores))])
    return chosen


def _ridge(x: Table, y: Table, weights: Table, penalty: float) -> tuple[Table, float, float]:
    """Return slopes, intercept and weighted R² of a ridge regression with a free intercept."""
    total = weights.sum()
    x_mean, y_mean = weights @ x / total, float(weights @ y / total)
    centred, target = x - x_mean, y - y_mean
    gram = (centred * weights[:, None]).T @ centred + penalty * np.eye(x.shape[1])
    slopes: Table = np.linalg.lstsq(gram, (centred * weights[:, None]).T @ target, rcond=None)[0]
    left = float(weights @ (target - centred @ slopes) ** 2)
    spread = float(weights @ target**2)
    return slopes, y_mean - float(x_mean @ slopes), 1 - left / spread if spread > 0 else 0.0
