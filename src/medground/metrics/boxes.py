"""Measures of predicted boxes against true ones: hits, average precision as COCO defines it, and FROC.

A predicted box is true where it meets a true box that no better scored one has taken; "meets" is an intersection over
union of at least a threshold. Lin et al. 2014 (COCO), Bunch et al. 1977 and Chakraborty 1989 (FROC).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

COCO_THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).tolist())
"""Thresholds of intersection over union that COCO's mean average precision is over."""
FROC_RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""False boxes a picture at which sensitivity is read, as in the LUNA16 challenge."""
_RECALLS = np.linspace(0.0, 1.0, 101)
ROUNDING = 1e-9
"""An overlap this little below a threshold reaches it: corners as shares of a side are not whole numbers."""


def iou_matrix(predicted: ArrayLike, true: ArrayLike) -> Floats:
    """Return the intersection over union of every predicted box with every true one.

    Args:
        predicted: (P, 4) corners x0, y0, x1, y1 in any unit: edges, not centres of pixels.
        true: (T, 4) in the same unit.

    Returns:
        (P, T) in [0, 1].

    Raises:
        MetricError: a box has no area, or a corner is no number.

    Example:
        >>> iou_matrix([[0, 0, 2, 2]], [[1, 0, 3, 2], [4, 4, 5, 5]]).round(3).tolist()
        [[0.333, 0.0]]
    """
    first, second = _checked(predicted), _checked(true)
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=-1)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1) for boxes in (first, second)]
    union = areas[0][:, None] + areas[1][None] - both
    return np.asarray(both / union, dtype=np.float64)


def hits(iou: Floats, scores: ArrayLike, thresholds: Sequence[float] = COCO_THRESHOLDS) -> Flags:
    """Return which predicted boxes of one picture and finding are true.

    The best scored box goes first and takes the true box that it overlaps most and that is still free.

    Args:
        iou: (P, T).
        scores: (P,), of equal ones the first goes first.
        thresholds: K of intersection over union.

    Returns:
        (K, P).
    """
    found = np.zeros((len(thresholds), iou.shape[0]), dtype=bool)
    order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    for k, threshold in enumerate(thresholds):
        free = np.ones(iou.shape[1], dtype=bool)
        for p in order:
            open_ones = np.where(free, iou[p], -1.0)
            if not free.any() or open_ones.max() < threshold - ROUNDING:
                continue
            taken = np.flatnonzero(open_ones == open_ones.max())[-1]  # of equal ones COCO takes the last
            free[taken], found[k, p] = False, True
    return found


def box_average_precision(scores: ArrayLike, true: ArrayLike, positives: int) -> float | None:
    """Return COCO's average precision: the mean over 101 recalls of the greatest precision at or beyond each.

    Args:
        scores: (P,) of all predicted boxes of a finding, over all pictures; of equal ones the first goes first.
        true: (P,) whether each is true.
        positives: true boxes there are.

    Returns:
        In [0, 1]; None where there is no true box.

    Example:
        >>> round(box_average_precision([0.9, 0.8, 0.7], [True, False, True], 2), 4)
        0.835
    """
    if not positives:
        return None
    flags = np.asarray(true, dtype=bool)[np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")]
    found = np.cumsum(flags)
    precision = found / np.arange(1, len(flags) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(found / positives, _RECALLS, side="left")
    return float(np.where(at < len(best), best[np.minimum(at, len(best) - 1)], 0.0).mean()) if len(best) else 0.0


def froc(
    scores: ArrayLike, true: ArrayLike, positives: int, pictures: int, rates: Sequence[float] = FROC_RATES
) -> list[float | None]:
    """Return the share of true boxes that are met while no more than so many false boxes a picture are raised.

    Args:
        scores: (P,) of all predicted boxes of a finding; boxes of one score are raised together or not at all.
        true: (P,) whether each is true.
        positives: true boxes there are.
        pictures: that were looked at, those without a true box too.
        rates: false boxes a picture.

    Returns:
        One sensitivity a rate in [0, 1]; None where there is no true box or no picture.

    Example:
        >>> froc([0.9, 0.8, 0.7], [True, False, True], 2, 2, rates=(0.0, 0.5))
        [0.5, 1.0]
    """
    if not positives or not pictures:
        return [None for _ in rates]
    marks, flags = np.asarray(scores, dtype=np.float64), np.asarray(true, dtype=bool)
    order = np.argsort(-marks, kind="stable")
    marks, flags = marks[order], flags[order]
    last = np.append(marks[1:] != marks[:-1], True) if len(marks) else np.zeros(0, dtype=bool)
    sensitivity = np.concatenate([[0.0], np.cumsum(flags)[last] / positives])
    false = np.concatenate([[0.0], np.cumsum(~flags)[last] / pictures])
    return [float(sensitivity[false <= rate].max()) for rate in rates]


def _checked(boxes: ArrayLike) -> Floats:
    array = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    if not np.isfinite(array).all() or (array[:, 2:] <= array[:, :2]).any():
        raise MetricError("a box has no area", expected="x0 < x1 and y0 < y1, finite", got=array.tolist()[:3])
    return array
