"""The state of a saliency map and the ways to bring it to a common scale."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._arrays import Map, as_map, as_mask, kernel

State = Literal["ok", "flat", "invalid"]


def state(saliency: ArrayLike, covered: ArrayLike | None = None) -> State:
    """Name the state of a map.

    Args:
        saliency: (H, W) map.
        covered: (H, W) mask of the pixels that the model saw; others are not looked at. None: all of them.

    Returns:
        ``"invalid"`` where a covered pixel is NaN or infinite, or none is covered; ``"flat"`` where all covered
        pixels are equal; ``"ok"`` otherwise.

    Example:
        >>> state([[0.0, 0.5]]), state([[0.5, 0.5]]), state([[0.5, float("nan")]])
        ('ok', 'flat', 'invalid')
    """
    array = as_map(saliency)
    low, high, finite = _range(array, _covered(covered, array.shape))
    if not finite:
        return "invalid"
    return "flat" if low == high else "ok"


def minmax(saliency: ArrayLike, covered: ArrayLike | None = None, uncovered: float = 0.0) -> NDArray[np.float64]:
    """Scale a map so that its smallest covered value is 0 and its largest 1.

    A flat map comes back all 0: threshold 0 selects everything under ``>=``, any higher one nothing.

    Args:
        saliency: (H, W) map, finite on the covered pixels.
        covered: (H, W) mask of the pixels that the model saw. None: all of them.
        uncovered: what the other pixels get: 0 (the smallest value, so that threshold 0 alone selects them), or NaN
            (never selected).

    Raises:
        MetricError: the map is invalid.

    Example:
        >>> minmax([[-2.0, 0.0, 2.0]])
        array([[0. , 0.5, 1. ]])
    """
    array = as_map(saliency)
    seen = _covered(covered, array.shape)
    low, high = _finite_range(array, seen)
    # The difference of two finite numbers may overflow; that of their halves does not.
    unit = 0.5 if math.isinf(high - low) else 1.0
    span = high * unit - low * unit
    return _rescale(array, seen, unit, low * unit, span if low < high else 1.0, uncovered)


def divide_by_max(saliency: ArrayLike, covered: ArrayLike | None = None, uncovered: float = 0.0) -> NDArray[np.float64]:
    """Scale a map so that its largest covered value is 1; negative values stay negative.

    A map without a positive value cannot be scaled so and comes back as it is: no positive threshold selects any of
    it.

    Args:
        saliency: (H, W) map, finite on the covered pixels.
        covered: (H, W) mask of the pixels that the model saw. None: all of them.
        uncovered: what the other pixels get.

    Raises:
        MetricError: the map is invalid.

    Example:
        >>> divide_by_max([[-1.0, 1.0, 2.0]])
        array([[-0.5,  0.5,  1. ]])
    """
    array = as_map(saliency)
    seen = _covered(covered, array.shape)
    high = _finite_range(array, seen)[1]
    return _rescale(array, seen, 1.0, 0.0, high if high > 0 else 1.0, uncovered)


def fill_uncovered(saliency: ArrayLike, covered: ArrayLike) -> Map:
    """Give the pixels that a crop removed the smallest covered value, for protocols that do not normalise.

    Raises:
        MetricError: the map is invalid.

    Example:
        >>> fill_uncovered([[float("nan"), 0.25, 0.5]], [[False, True, True]])
        array([[0.25, 0.25, 0.5 ]])
    """
    array = as_map(saliency)
    seen = as_mask(covered, array.shape, "covered")
    return np.where(seen, array, array.dtype.type(_finite_range(array, seen)[0]))


def _covered(covered: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.ones(shape, dtype=np.bool_) if covered is None else as_mask(covered, shape, "covered")


def _finite_range(array: Map, seen: NDArray[np.bool_]) -> tuple[float, float]:
    low, high, finite = _range(array, seen)
    if not finite:
        raise MetricError(
            "The saliency map is invalid.",
            expected="finite values on at least one covered pixel",
            got=f"{np.count_nonzero(seen & ~np.isfinite(array))} of {np.count_nonzero(seen)} not finite",
            fix="look at its state first and leave an invalid map out of the mean",
        )
    return float(low), float(high)


@kernel
def _range(array: Map, seen: NDArray[np.bool_]) -> tuple[float, float, bool]:
    """Smallest and largest covered value, and whether all are finite (and any is covered)."""
    low, high = np.inf, -np.inf
    finite = True
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            if seen[row, column]:
                value = np.float64(array[row, column])
                finite &= np.isfinite(value)
                low = min(low, value)
                high = max(high, value)
    return low, high, finite and low <= high


@kernel
def _rescale(
    array: Map, seen: NDArray[np.bool_], unit: float, shift: float, span: float, uncovered: float
) -> NDArray[np.float64]:
    """(unit * value - shift) / span on covered pixels, ``uncovered`` elsewhere."""
    scaled = np.empty(array.shape)
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            if seen[row, column]:
                scaled[row, column] = (np.float64(array[row, column]) * unit - shift) / span
            else:
                scaled[row, column] = uncovered
    return scaled
