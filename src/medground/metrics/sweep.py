"""Dice, IoU, precision and recall at every threshold from one pass over the pixels.

At a threshold only two counts matter: pixels selected, and of these pixels inside the region. Both follow, for all
thresholds together, from a histogram over the intervals between thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._arrays import Map, as_map, as_mask, kernel
from medground.metrics.values import EMPTY_PREDICTION, EMPTY_REGION

Comparison = Literal[">=", ">"]
EmptyPrediction = Literal["zero", "undefined"]
Counts = NDArray[np.int64]
_MOST_CELLS = 1 << 15  # a cell and a mask bit share 16 bits
_BLOCK = 4096  # pixels whose cells are found together: stays in the first cache


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
    table = _table(asked.tobytes(), comparison, array.dtype.char)
    values, inside = array.ravel(), region.ravel()
    if table.cells is None:
        selected, hit = _count_by_search(values, inside, table.edges)
    else:
        selected, hit = _count_by_cell(values, inside, table.cells)
    return Sweep(selected[table.order], hit[table.order])


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


class _Cells(NamedTuple):
    """A guess at the edge next to a value: ``cell(v)`` rises with v, and no two edges share a cell.

    So an edge in a lower cell than a value is below it, one in a higher cell above it, and one comparison with the
    edge of its own cell settles the rest. The guess may be rough; the counts are exact.
    """

    low: np.floating
    scale: np.floating
    last: np.floating
    of_edge: NDArray[np.int64]  # (edges,)
    edge_of: Map | NDArray[np.floating]  # (2 * cells,), each edge twice (outside, inside the region); inf: no edge


class _Table(NamedTuple):
    """What `sweep` needs to know of its thresholds; made once for a list of them."""

    edges: NDArray[np.floating]  # distinct, ascending: a value is selected where it is at or above its edge
    order: NDArray[np.intp]  # edge of each threshold asked
    cells: _Cells | None  # None: thresholds too unevenly spaced


@lru_cache(maxsize=64)
def _table(thresholds: bytes, comparison: Comparison, dtype: str) -> _Table:
    asked = np.frombuffer(thresholds, dtype=np.float64)
    edges, order = np.unique(_edges(asked, comparison, np.dtype(dtype)), return_inverse=True)
    return _Table(edges, order, _cells(edges))


def _edges(asked: NDArray[np.float64], comparison: Comparison, dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
    """Smallest number of the map's type that each threshold selects."""
    least = np.nextafter(asked, np.inf) if comparison == ">" else asked
    with np.errstate(over="ignore"):  # above the largest float32 only infinity is selected
        rounded = least.astype(dtype)
    return np.where(rounded < least, np.nextafter(rounded, dtype.type(np.inf)), rounded).astype(dtype)


def _cells(edges: NDArray[np.floating]) -> _Cells | None:
    """Cut the range of the edges into the fewest cells (a power of two) that part them, or give up."""
    number = edges.dtype.type
    count = 128
    while count <= _MOST_CELLS:
        last = number(count - 1)
        with np.errstate(all="ignore"):  # one edge: 0 / 0, and every value shares its cell
            scale = last / (edges[-1] - edges[0])
        of_edge = np.array([_cell(edge, edges[0], scale, last) for edge in edges], dtype=np.int64)
        if np.unique(of_edge).size == edges.size:
            edge_of = np.full(count, np.inf, dtype=edges.dtype)
            edge_of[of_edge] = edges
            return _Cells(edges[0], scale, last, of_edge, np.repeat(edge_of, 2))
        count *= 2
    return None


def _count_by_cell(values: NDArray[np.floating], inside: NDArray[np.bool_], cells: _Cells) -> tuple[Counts, Counts]:
    """Pixels, and pixels inside, at or above each edge."""
    histogram = _histogram(values, inside.view(np.uint8), cells.edge_of, cells.low, cells.scale, cells.last)
    by_cell = histogram.reshape(-1, 2, 2)  # cell, inside the region, at or above the cell's edge
    higher = by_cell.sum(axis=2)
    higher = np.cumsum(higher[::-1], axis=0)[::-1] - higher  # in higher cells
    counts = higher[cells.of_edge] + by_cell[cells.of_edge, :, 1]
    return counts.sum(axis=1), counts[:, 1]


def _count_by_search(
    values: NDArray[np.floating], inside: NDArray[np.bool_], edges: NDArray[np.floating]
) -> tuple[Counts, Counts]:
    """The same for edges that no even grid parts: a binary search a pixel."""
    reached = np.searchsorted(edges, values, side="right")
    reached[np.isnan(values)] = 0
    bins = edges.size + 1
    by_bin = np.bincount(reached + bins * inside, minlength=2 * bins).reshape(2, bins)
    at_or_above = np.cumsum(by_bin[:, :0:-1], axis=1)[:, ::-1]
    return at_or_above.sum(axis=0), at_or_above[1]


@kernel
def _cell(value: np.floating, low: np.floating, scale: np.floating, last: np.floating) -> int:
    """Cell of a value: rises with it whatever the rounding; NaN falls into cell 0."""
    position = (value - low) * scale
    position = position if position > 0 else low - low
    return int(position if position < last else last)


@kernel
def _histogram(
    values: NDArray[np.floating],
    inside: NDArray[np.uint8],
    edge_of: NDArray[np.floating],
    low: np.floating,
    scale: np.floating,
    last: np.floating,
) -> Counts:
    """Count pixels by (cell, inside, at or above the cell's edge); the first loop of a block is vectorised."""
    # Four histograms in turn, so that equal neighbours need not wait for one another's store.
    histograms = np.zeros((4, 2 * edge_of.size), dtype=np.int64)
    keys = np.empty(_BLOCK, dtype=np.uint16)
    for start in range(0, values.size, _BLOCK):
        block, region = values[start : start + _BLOCK], inside[start : start + _BLOCK]
        for i in range(block.size):
            keys[i] = 2 * _cell(block[i], low, scale, last) + np.int64(region[i])
        for i in range(block.size):
            key = np.int64(keys[i])
            histograms[i & 3, 2 * key + np.int64(block[i] >= edge_of[key])] += 1
    total: Counts = histograms.sum(axis=0)
    return total
