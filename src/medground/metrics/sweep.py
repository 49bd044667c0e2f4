"""Dice, IoU, precision and recall at every threshold from one pass over the pixels.

At a threshold only two counts matter: pixels selected, and of these pixels inside the region. Both follow, for all
thresholds together, from a histogram over the intervals between thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._arrays import as_map, as_mask
from medground.metrics._histogram import count_selected
from medground.metrics.values import EMPTY_PREDICTION, EMPTY_REGION

Comparison = Literal[">=", ">"]
EmptyPrediction = Literal["zero", "undefined"]
Counts = NDArray[np.int64]


class Sweep(NamedTuple):
    """Counts at T thresholds, in the order in which they were asked, each (T,) int64."""

    selected: Counts
    inside: Counts


@dataclass(frozen=True, slots=True)
class Overlap:
    """How selected pixels and a region overlap; NaN where undefined, all of one shape.

    Attributes:
        dice: 2|A & B| / (|A| + |B|).
        iou: |A & B| / |A | B|.
        precision: |A & B| / |A|; undefined for an empty prediction.
        recall: |A & B| / |B|.
        empty_region: where the region is empty: all four are undefined.
        empty_prediction: where nothing is selected.
    """

    dice: NDArray[np.float64]
    iou: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    empty_region: NDArray[np.bool_]
    empty_prediction: NDArray[np.bool_]

    def reasons(self) -> NDArray[np.object_]:
        """Why Dice and IoU are undefined, entry by entry; None where they are defined."""
        why = np.full(self.dice.shape, None, dtype=object)
        undefined = np.isnan(self.dice)
        why[undefined] = EMPTY_PREDICTION
        why[undefined & self.empty_region] = EMPTY_REGION
        return why


def threshold_grid(steps: int = 100) -> NDArray[np.float64]:
    """Return k / steps for k = 0 ... steps, each the number nearest to the fraction (no accumulated error).

    Example:
        >>> threshold_grid(4)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if steps < 1:
        raise MetricError("A threshold grid needs steps.", expected="1 or more", got=steps)
    return np.arange(steps + 1) / steps


def sweep(saliency: ArrayLike, mask: ArrayLike, thresholds: ArrayLike, comparison: Comparison = ">=") -> Sweep:
    """Count selected pixels, and selected pixels inside the region, at every threshold.

    Equal to counting threshold by threshold, to the last pixel, for any thresholds: unsorted, repeated, unevenly
    spaced, outside the map's range. Numbers are compared as real numbers, exactly as stored: a float32 map against
    float64 thresholds is not rounded, and a float32 threshold is the number that it holds. To compare in float32, as
    published code does with a float32 map and a literal such as 0.008, give ``np.float32(0.008)``.

    Args:
        saliency: (H, W) map, float32 or float64; NaN is never selected.
        mask: (H, W) region.
        thresholds: (T,) finite numbers.
        comparison: a pixel is selected where ``value >= threshold`` or ``value > threshold``.

    Raises:
        MetricError: shapes that differ, thresholds that are not finite, or an unknown comparison.

    Example:
        >>> sweep([[0.0, 0.5, 1.0]], [[False, True, False]], [0.0, 0.5, 0.6])
        Sweep(selected=array([3, 2, 1]), inside=array([1, 1, 0]))
    """
    array = as_map(saliency)
    region = as_mask(mask, array.shape)
    asked = _as_thresholds(thresholds)
    if comparison not in get_args(Comparison):
        raise MetricError("Unknown comparison.", expected=get_args(Comparison), got=comparison)
    selected, hit = count_selected(array.ravel(), region.ravel(), asked, comparison == ">")
    return Sweep(selected, hit)


def overlap(
    selected: ArrayLike,
    inside: ArrayLike,
    region_area: ArrayLike,
    empty_prediction: EmptyPrediction = "zero",
) -> Overlap:
    """Turn counts into Dice, IoU, precision and recall.

    Args:
        selected: (..., T) pixels selected.
        inside: (..., T) of these, pixels inside the region.
        region_area: (...) pixels of the region.
        empty_prediction: what Dice and IoU are where nothing is selected: ``"zero"``, or ``"undefined"`` (the
            true-positive-only IoU of CheXlocalize, which drops such cases from the mean).

    Returns:
        Arrays of shape (..., T). An empty region leaves all four undefined.

    Raises:
        MetricError: counts that contradict each other, shapes that differ, or an unknown rule.

    Example:
        >>> result = overlap([3, 2, 0], [1, 1, 0], 1)
        >>> result.dice, result.iou
        (array([0.5       , 0.66666667, 0.        ]), array([0.33333333, 0.5       , 0.        ]))
    """
    if empty_prediction not in get_args(EmptyPrediction):
        raise MetricError("Unknown rule.", expected=get_args(EmptyPrediction), got=empty_prediction)
    chosen, hit = np.asarray(selected, dtype=np.int64), np.asarray(inside, dtype=np.int64)
    area = np.asarray(region_area, dtype=np.int64)
    if chosen.shape != hit.shape or area.shape not in (chosen.shape, chosen.shape[:-1]):
        raise MetricError(
            "The counts do not fit together.",
            expected="selected and inside of one shape, one area a curve",
            got=f"shapes {chosen.shape}, {hit.shape} and {area.shape}",
        )
    area = np.broadcast_to(area if area.shape == chosen.shape else area[..., None], chosen.shape)
    if (hit < 0).any() or (hit > chosen).any() or (hit > area).any():
        raise MetricError("Counts contradict each other.", expected="0 <= inside <= selected and inside <= region_area")
    no_region, nothing = area == 0, chosen == 0
    undefined = (no_region | nothing) if empty_prediction == "undefined" else no_region
    return Overlap(
        dice=_ratio(2 * hit, chosen + area, undefined),
        iou=_ratio(hit, chosen + area - hit, undefined),
        precision=_ratio(hit, chosen, no_region | nothing),
        recall=_ratio(hit, area, no_region),
        empty_region=no_region,
        empty_prediction=nothing,
    )


def all_foreground(region_area: ArrayLike, total: ArrayLike) -> Overlap:
    """Score a prediction that marks every pixel: the floor under any threshold search that includes 0 with ``>=``.

    Args:
        region_area: (...) pixels of the region.
        total: pixels of the picture, the same for all or (...).

    Example:
        >>> all_foreground(25, 100).dice
        array(0.4)
    """
    area = np.asarray(region_area, dtype=np.int64)
    return overlap(np.broadcast_to(np.asarray(total, dtype=np.int64), area.shape), area, area)


def best_threshold(mean_curve: ArrayLike) -> int | None:
    """Return the index of the largest mean, the first of several, or None where nothing is defined.

    Args:
        mean_curve: (T,) means at ascending thresholds, NaN where undefined.

    Example:
        >>> best_threshold([0.2, 0.4, 0.4, float("nan")])
        1
    """
    curve = np.asarray(mean_curve, dtype=np.float64)
    if curve.ndim != 1:
        raise MetricError("A mean curve has one axis.", expected="(thresholds,)", got=f"shape {curve.shape}")
    return None if np.isnan(curve).all() else int(np.nanargmax(curve))


def _ratio(numerator: Counts, denominator: Counts, undefined: NDArray[np.bool_]) -> NDArray[np.float64]:
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=~undefined)
    return result


def _as_thresholds(thresholds: ArrayLike) -> NDArray[np.float64]:
    asked = np.asarray(thresholds, dtype=np.float64)
    if asked.ndim != 1 or asked.size == 0 or not np.isfinite(asked).all():
        raise MetricError(
            "Thresholds must be a list of finite numbers.", expected="(T,), T >= 1", got=f"{asked!r:.200}"
        )
    return asked
