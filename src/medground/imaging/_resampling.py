"""The kernel that enlarges saliency maps, and the places along one axis that it reads.

Places are worked out in whole numbers, so that mirrored pixels get exactly mirrored weights; the four products of a
pixel are added in an order that no mirroring or transposing changes; and the sum is kept between the four values it
blends. Hence equal values stay equal, ties stay ties, and a flat map stays flat, whatever the sizes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Rule = Literal["bilinear", "bilinear_corners", "nearest"]


class Taps(NamedTuple):
    """What each of N output rows (or columns) reads.

    Attributes:
        first: ``(N,)`` row of the grid.
        second: ``(N,)`` the row after it, or the same at the edge.
        weight_first: ``(N,)`` in [0, 1].
        weight_second: ``(N,)``, the rest to 1.
        seen: ``(N,)`` whether the row lies on the grid's frame at all.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weight_first: NDArray[np.float64]
    weight_second: NDArray[np.float64]
    seen: NDArray[np.bool_]


def plain_taps(cells: int, out: int, rule: Rule) -> Taps:
    """Return the taps of ``out`` rows over a grid of ``cells`` rows that covers the whole frame."""
    return framed_taps(cells, out, rule, Fraction(1), Fraction(0), 1)


def rational(value: float) -> Fraction:
    """Return the fraction of small terms that a float stands for: 0.1 is 1/10 again."""
    return Fraction(value).limit_denominator(1 << 20)


@lru_cache(maxsize=4096)
def framed_taps(cells: int, out: int, rule: Rule, extent: Fraction, offset: Fraction, frame: int) -> Taps:
    """Return the taps of ``out`` rows over a picture that a geometry placed on the grid's frame.

    Args:
        cells: rows of the grid, which covers ``frame`` pixels.
        out: rows that the picture is rastered with.
        rule: see :func:`medground.imaging.geometry.upsample`.
        extent: pixels of the frame that the picture takes up.
        offset: pixel of the frame where the picture begins.
        frame: pixels of the grid's frame.
    """
    whole = extent == frame and offset == 0
    # The centre of row i lies (2 i + 1) / (2 out) of the extent behind the offset; in units of 1 / unit pixel:
    common = extent.denominator * offset.denominator
    step, start = int(extent * common), int(2 * out * offset * common)
    unit = 2 * out * common
    centres = [(2 * i + 1) * step + start for i in range(out)]
    seen = [0 <= centre < frame * unit for centre in centres]
    if rule == "nearest":
        # The floor rule of the published loaders where nothing is cut, else the cell that holds the centre.
        places = [i * cells for i in range(out)] if whole else [centre * cells for centre in centres]
        denominator = out if whole else frame * unit
    elif rule == "bilinear":
        places = [2 * centre * cells - frame * unit for centre in centres]
        denominator = 2 * frame * unit
    elif whole:
        places, denominator = [i * (cells - 1) for i in range(out)], max(out - 1, 1)
    else:
        places = [(2 * centre - unit) * (cells - 1) for centre in centres]
        denominator = 2 * max(frame - 1, 1) * unit
    places = [min(max(place, 0), (cells - 1) * denominator) for place in places]
    first = [place // denominator for place in places]
    rest = [0 if rule == "nearest" else place % denominator for place in places]
    taps = Taps(
        np.array(first, dtype=np.int64),
        np.array([min(row + 1, cells - 1) for row in first], dtype=np.int64),
        np.array([(denominator - part) / denominator for part in rest]),
        np.array([part / denominator for part in rest]),
        np.array(seen, dtype=np.bool_),
    )
    for array in taps:
        array.flags.writeable = False  # shared by every caller
    return taps


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _blend(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    above: NDArray[np.int64],
    below: NDArray[np.int64],
    weight_above: NDArray[np.float64],
    weight_below: NDArray[np.float64],
    weight_left: NDArray[np.float64],
    weight_right: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for i in range(out.shape[0]):
        a, b, c, d = left[above[i]], right[above[i]], left[below[i]], right[below[i]]
        top, bottom = weight_above[i], weight_below[i]
        blended = (a * (top * weight_left) + d * (bottom * weight_right)) + (
            b * (top * weight_right) + c * (bottom * weight_left)
        )
        low = np.minimum(np.minimum(a, b), np.minimum(c, d))
        high = np.maximum(np.maximum(a, b), np.maximum(c, d))
        out[i] = np.minimum(np.maximum(blended, low), high)


def read(grid: NDArray[np.float64], rows: Taps, columns: Taps) -> NDArray[np.float64]:
    """Return the grid read at rows and columns, ``(len(rows), len(columns))`` float64; NaN where either is unseen."""
    left, right = grid[:, columns.first], grid[:, columns.second]
    out = np.empty((rows.first.size, columns.first.size))
    _blend(
        left,
        right,
        rows.first,
        rows.second,
        rows.weight_first,
        rows.weight_second,
        columns.weight_first,
        columns.weight_second,
        out,
    )
    if not rows.seen.all():
        out[~rows.seen] = np.nan
    if not columns.seen.all():
        out[:, ~columns.seen] = np.nan
    return out
