"""Where an explanation's error comes from: noise, answers off the manifold, or the method itself.

With maps m_r of one answer under several seeds, maps e_r that the same method gives under the same seeds for a model
that is exact on every coalition, and the true map t:

    mean |m_r - t|^2 = mean |m_r - m|^2 + |m - t|^2          noise, and the error of the mean map m
    |m - t|^2        = <m - t, m - e> + <m - t, e - t>       off the manifold, and of the method

The three parts add up to the whole, exactly. Each of the last two is the error's component along its own share of it:
one of them is negative where the two errors cancel in part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError


class ErrorSplit(NamedTuple):
    """Squared error of maps, in the maps' unit squared, and its parts: ``total = noise + off_manifold + method``.

    Attributes:
        total: mean squared distance of a map from the true one, summed over its entries.
        noise: what the seed alone does: variance over the repeats, summed over entries. Of R repeats the mean map keeps
            an R-th of it, which counts with the other parts.
        off_manifold: what the model does where it is not exact.
        method: what is left with an exact model.
    """

    total: float
    noise: float
    off_manifold: float
    method: float


def error_split(maps: ArrayLike, exact: ArrayLike, truth: ArrayLike) -> ErrorSplit:
    """Split the squared error of explanations.

    Args:
        maps: ``(R, ...)`` maps of one answer under R seeds.
        exact: ``(R, ...)`` those of a model that is exact, under the same seeds.
        truth: ``(...)`` the true map.

    Raises:
        MetricError: shapes differ, there is no repeat, or a value is not finite.

    Example:
        >>> round(error_split([[1.0, 0.0], [0.8, 0.2]], [[0.9, 0.1], [0.9, 0.1]], [1.0, 0.0]).noise, 9)
        0.02
    """
    given, ideal = (np.asarray(values, np.float64) for values in (maps, exact))
    true = np.asarray(truth, np.float64)
    if given.ndim < 1 or not len(given) or given.shape != ideal.shape or given.shape[1:] != true.shape:
        raise MetricError(
            "maps to split do not belong together",
            expected="(R, ...), (R, ...) and (...) with R of 1 or more",
            got=f"{given.shape}, {ideal.shape}, {true.shape}",
        )
    if not all(np.isfinite(values).all() for values in (given, ideal, true)):
        raise MetricError("maps to split must be finite", got="NaN or infinite values")
    mean, middle = given.mean(0), ideal.mean(0)
    error = mean - true
    return ErrorSplit(
        _squared(given - true) / len(given),
        _squared(given - mean) / len(given),
        float((error * (mean - middle)).sum()),
        float((error * (middle - true)).sum()),
    )


def _squared(values: NDArray[np.float64]) -> float:
    return float((values**2).sum())
