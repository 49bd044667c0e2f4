"""The pointing game: does the maximum of a saliency map lie in the region?

Zhang et al., Top-down neural attention by excitation backprop, IJCV 2018. Published scorers differ in what they do
with several equal maxima, so the rule has a name here and the ties are counted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError, did_you_mean
from medground.metrics._arrays import Map, as_map, as_mask, kernel
from medground.metrics.values import EMPTY_REGION, INVALID_MAP

TieRule = Literal["first", "any", "expected"]


class Peak(NamedTuple):
    """The maximum of a map: its first position in row-major order, its value, and how many pixels share it."""

    row: int
    col: int
    value: float
    ties: int


class Pointing(NamedTuple):
    """One outcome of the pointing game.

    Attributes:
        hit: 1, 0, or the share of tied maxima inside under ``"expected"``; None where undefined.
        ties: number of pixels that hold the maximum (1: no tie, 0: the map is invalid).
        inside: how many of them lie in the region.
        reason: why ``hit`` is undefined; None where it is defined.
    """

    hit: float | None
    ties: int
    inside: int
    reason: str | None = None


def peak(saliency: ArrayLike, covered: ArrayLike | None = None) -> Peak | None:
    """Find the maximum of a map.

    Args:
        saliency: (H, W) map.
        covered: (H, W) mask of the pixels that may hold it. None: all of them.

    Returns:
        The peak, or None where a covered pixel is NaN or infinite, or none is covered.

    Example:
        >>> peak([[0.0, 2.0], [2.0, 1.0]])
        Peak(row=0, col=1, value=2.0, ties=2)
    """
    array = as_map(saliency)
    anywhere = np.zeros(array.shape, dtype=np.bool_)
    first, ties, _ = _maximum(array, _allowed(covered, array.shape), anywhere)
    if not ties:
        return None
    row, col = divmod(first, array.shape[1])
    return Peak(row, col, float(array[row, col]), ties)


def pointing(
    saliency: ArrayLike, mask: ArrayLike, ties: TieRule = "first", covered: ArrayLike | None = None
) -> Pointing:
    """Play the pointing game on one map and one region.

    Args:
        saliency: (H, W) map.
        mask: (H, W) region, margin included where one is wanted (see `dilate`).
        ties: ``"first"`` looks at the first maximum in row-major order (CheXlocalize, xbench), ``"any"`` counts a hit
            where any maximum lies inside (MedKLIP, MAVL, Quantus), ``"expected"`` gives the share of maxima inside.
        covered: (H, W) mask of the pixels that may hold the maximum. None: all of them.

    Returns:
        The outcome; undefined for an empty region and for an invalid map. A flat map is scored by the rule.

    Raises:
        MetricError: an unknown rule, or shapes that differ.

    Example:
        >>> pointing([[0.0, 2.0], [2.0, 1.0]], [[False, False], [True, False]], ties="expected")
        Pointing(hit=0.5, ties=2, inside=1, reason=None)
    """
    if ties not in get_args(TieRule):
        raise MetricError(
            "Unknown tie rule.", expected=get_args(TieRule), got=ties, fix=did_you_mean(ties, get_args(TieRule))
        )
    array = as_map(saliency)
    region = as_mask(mask, array.shape)
    first, n, inside = _maximum(array, _allowed(covered, array.shape), region)
    if not n:
        return Pointing(None, 0, 0, INVALID_MAP)
    if not region.any():
        return Pointing(None, n, 0, EMPTY_REGION)
    hit = {"first": float(region.flat[first]), "any": float(inside > 0), "expected": inside / n}[ties]
    return Pointing(hit, n, inside)


def dilate(mask: ArrayLike, margin: int) -> NDArray[np.bool_]:
    """Widen a mask by a square of ``2 * margin + 1`` pixels: the tolerance of the original game was 15 pixels.

    Args:
        mask: (H, W) region.
        margin: pixels a side, 0 or more; the picture's border cuts.

    Raises:
        MetricError: a negative margin or not a mask.

    Example:
        >>> dilate([[True, False, False]], 1)
        array([[ True,  True, False]])
    """
    region = as_mask(mask, np.shape(mask))
    if margin < 0:
        raise MetricError("The margin is negative.", expected="0 pixels or more", got=margin)
    for _ in range(2):  # a square is a run along the rows, then one along the columns
        region = _widen_rows(region, margin).T
    return np.ascontiguousarray(region)


def _widen_rows(region: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """Widen along the second axis: a pixel is set where the window around it holds any."""
    width = region.shape[1]
    running = np.zeros((region.shape[0], width + 1), dtype=np.int32)
    np.cumsum(region, axis=1, out=running[:, 1:])
    ends = np.minimum(np.arange(width) + margin + 1, width)
    starts = np.maximum(np.arange(width) - margin, 0)
    return running[:, ends] > running[:, starts]


def _allowed(covered: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.ones(shape, dtype=np.bool_) if covered is None else as_mask(covered, shape, "covered")


@kernel
def _maximum(array: Map, allowed: NDArray[np.bool_], region: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Flat index of the first maximum, pixels that hold it, and how many of these lie in the region.

    All three are 0 for a map without an allowed pixel or with one that is not finite.
    """
    values, may, inside_region = array.ravel(), allowed.ravel(), region.ravel()
    best = -np.inf
    first, ties, inside = 0, 0, 0
    for i in range(values.size):
        if may[i]:
            value = values[i]
            if not np.isfinite(value):
                return 0, 0, 0
            if value > best:
                best = value
                first, ties, inside = i, 1, int(inside_region[i])
            elif value == best:
                ties += 1
                inside += int(inside_region[i])
    return first, ties, inside
