"""One pass over the pixels for all thresholds: a histogram over the intervals between them.

A threshold becomes an *edge*, the smallest number of the map's type that it selects, so that every comparison is
``value >= edge`` and none is rounded. Edges are found by a guess that may be rough (`Cells`); the counts are exact.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.metrics._arrays import kernel

Counts = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
MOST_CELLS = 1 << 15  # a cell and a mask bit share 16 bits
BLOCK = 4096  # pixels whose cells are found together: stays in the first cache


def count_selected(
    values: Floats, inside: NDArray[np.bool_], thresholds: NDArray[np.float64], strict: bool
) -> tuple[Counts, Counts]:
    """Count the pixels that each threshold selects, and those of them inside the region.

    Args:
        values: (pixels,) NaN is never selected.
        inside: (pixels,) whether the region holds the pixel.
        thresholds: (T,) finite.
        strict: select values above a threshold, not those equal to it.

    Returns:
        Two arrays (T,).
    """
    table = _table(thresholds.tobytes(), strict, values.dtype.char)
    if table.cells is None:
        counts = _count_by_search(values, inside, table.edges)
    else:
        counts = _count_by_cell(values, inside, table.cells)
    return counts.sum(axis=1)[table.order], counts[table.order, 1]


class Cells(NamedTuple):
    """A guess at the edge next to a value: its cell rises with it, and no two edges share a cell.

    So an edge in a lower cell than a value is below it, one in a higher cell is above it, and one comparison with the
    edge of its own cell settles the rest, however the arithmetic of the guess was rounded.
    """

    low: np.floating[Any]
    scale: np.floating[Any]
    last: np.floating[Any]
    of_edge: NDArray[np.int64]  # (edges,)
    edge_of: Floats  # (2 * cells,), each twice (outside, inside the region); infinity where a cell has no edge


class _Table(NamedTuple):
    """What depends on the thresholds alone; made once for a list of them."""

    edges: Floats  # distinct, ascending
    order: NDArray[np.intp]  # (T,) edge of each threshold
    cells: Cells | None  # None: too unevenly spaced


@lru_cache(maxsize=64)
def _table(thresholds: bytes, strict: bool, dtype: str) -> _Table:
    asked = np.frombuffer(thresholds, dtype=np.float64)
    edges, order = np.unique(_edges(asked, strict, np.dtype(dtype)), return_inverse=True)
    return _Table(edges, order, _cells(edges))


def _edges(asked: NDArray[np.float64], strict: bool, dtype: np.dtype[np.floating]) -> Floats:
    """Smallest number of the map's type that each threshold selects."""
    with np.errstate(over="ignore"):  # above the largest number only infinity is selected
        least = np.nextafter(asked, np.inf) if strict else asked
        rounded = least.astype(dtype)
        return np.where(rounded < least, np.nextafter(rounded, dtype.type(np.inf)), rounded)


def _cells(edges: Floats) -> Cells | None:
    """Cut the range of the edges into the fewest cells (a power of two) that part them, or give up."""
    number = edges.dtype.type
    count = 128
    while count <= MOST_CELLS:
        last = number(count - 1)
        with np.errstate(all="ignore"):  # one edge: an infinite scale, and 0 times infinity
            scale = last / (edges[-1] - edges[0])
            of_edge = np.array([_cell(edge, edges[0], scale, last) for edge in edges], dtype=np.int64)
        if np.unique(of_edge).size == edges.size:
            edge_of = np.full(count, np.inf, dtype=edges.dtype)
            edge_of[of_edge] = edges
            return Cells(edges[0], scale, last, of_edge, np.repeat(edge_of, 2))
        count *= 2
    return None


def _count_by_cell(values: Floats, inside: NDArray[np.bool_], cells: Cells) -> Counts:
    """Pixels at or above each edge: (edges, 2), outside and inside the region."""
    with np.errstate(all="ignore"):  # infinite values warn where the kernel runs as plain Python
        histogram = _histogram(values, inside.view(np.uint8), cells.edge_of, cells.low, cells.scale, cells.last)
    by_cell = histogram.reshape(-1, 2, 2)  # cell, inside the region, at or above the cell's edge
    pixels = by_cell.sum(axis=2)
    in_higher_cells = np.cumsum(pixels[::-1], axis=0)[::-1] - pixels
    counts: Counts = in_higher_cells[cells.of_edge] + by_cell[cells.of_edge, :, 1]
    return counts


def _count_by_search(values: Floats, inside: NDArray[np.bool_], edges: Floats) -> Counts:
    """The same for edges that no even grid parts: a binary search a pixel."""
    reached = np.searchsorted(edges, values, side="right")
    reached[np.isnan(values)] = 0
    by_bin = np.bincount(2 * reached + inside, minlength=2 * edges.size + 2).reshape(-1, 2)
    return np.cumsum(by_bin[:0:-1], axis=0)[::-1].astype(np.int64)


@kernel
def _cell(value: np.floating, low: np.floating, scale: np.floating, last: np.floating) -> int:
    """Cell of a value: rises with it whatever the rounding; NaN falls into cell 0."""
    position = (value - low) * scale
    position = position if position > 0 else low - low  # a zero of the map's type, so that SIMD keeps it
    return int(position if position < last else last)


@kernel
def _histogram(
    values: Floats,
    inside: NDArray[np.uint8],
    edge_of: Floats,
    low: np.floating,
    scale: np.floating,
    last: np.floating,
) -> Counts:
    """Count pixels by (cell, inside, at or above the cell's edge); the first loop of a block is vectorised."""
    # Four histograms in turn, so that equal neighbours need not wait for one another's store.
    histograms = np.zeros((4, 2 * edge_of.size), dtype=np.int64)
    keys = np.empty(BLOCK, dtype=np.uint16)
    for start in range(0, values.size, BLOCK):
        block, region = values[start : start + BLOCK], inside[start : start + BLOCK]
        for i in range(block.size):
            keys[i] = 2 * _cell(block[i], low, scale, last) + np.int64(region[i])
        for i in range(block.size):
            key = np.int64(keys[i])
            histograms[i & 3, 2 * key + np.int64(block[i] >= edge_of[key])] += 1
    total: Counts = histograms.sum(axis=0)
    return total
