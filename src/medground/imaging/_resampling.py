"""The kernel that enlarges saliency maps, and the places along one axis that it reads.

Places are worked out in whole numbers, so that mirrored pixels get exactly mirrored weights. A pixel is blended along
the rows and then the columns, and the other way round, each blend kept between the two values that it mixes; the
result is the mean of both. In exact arithmetic that is the bilinear value; in floating point it is also unchanged by
every mirroring and transposing. Hence equal values stay equal, ties stay ties, and a flat map stays flat, whatever the
sizes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

Rule = Literal["bilinear", "bilinear_corners", "nearest"]


class Taps(NamedTuple):
    """What each of N output rows (or columns) reads.

    Attributes:
        first: ``(N,)`` row of the grid.
        second: ``(N,)`` the row after it, or the same where it would weigh nothing.
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
        np.array([row + (part > 0) for row, part in zip(first, rest, strict=True)], dtype=np.int64),
        np.array([(denominator - part) / denominator for part in rest]),
        np.array([part / denominator for part in rest]),
        np.array(seen, dtype=np.bool_),
    )
    for array in taps:
        array.flags.writeable = False  # shared by every caller
    return taps


def read(grid: NDArray[np.float64], rows: Taps, columns: Taps) -> NDArray[np.float64]:
    """Return the grid read at rows and columns, ``(len(rows), len(columns))`` float64; NaN where either is unseen."""
    if grid.size > rows.first.size * columns.first.size and not config.DISABLE_JIT:
        out = np.empty((rows.first.size, columns.first.size))
        at_once(grid, rows[:4], columns[:4], out)
    else:
        out = _in_two_ways(grid, rows, columns)
    if not rows.seen.all():
        out[~rows.seen] = np.nan
    if not columns.seen.all():
        out[:, ~columns.seen] = np.nan
    return out


def _in_two_ways(grid: NDArray[np.float64], rows: Taps, columns: Taps) -> NDArray[np.float64]:
    """Return the mean of both orders of blending: what a small grid needs for a large picture."""
    wide = blend(grid[:, columns.first], grid[:, columns.second], columns.weight_first, columns.weight_second)
    above, below = rows.weight_first[:, None], rows.weight_second[:, None]
    tall = blend(grid[rows.first], grid[rows.second], above, below)
    if config.DISABLE_JIT:  # the loop below would take seconds
        out = blend(wide[rows.first], wide[rows.second], above, below)
        out += blend(tall[:, columns.first], tall[:, columns.second], columns.weight_first, columns.weight_second)
        out *= 0.5
    else:
        out = np.empty((rows.first.size, columns.first.size))
        cross(wide, tall, rows[:4], columns[:4], out)
    return out


def blend(
    a: NDArray[np.float64], b: NDArray[np.float64], of_a: NDArray[np.float64], of_b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of a and b with weights that add to 1, never outside the two."""
    mixed: NDArray[np.float64] = a * of_a + b * of_b
    np.maximum(mixed, np.minimum(a, b), out=mixed)
    return np.minimum(mixed, np.maximum(a, b), out=mixed)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def cross(
    wide: NDArray[np.float64],
    tall: NDArray[np.float64],
    rows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    out: NDArray[np.float64],
) -> None:
    """Write to ``out`` the mean of two blends: rows of ``wide`` (h, W) and columns of ``tall`` (H, w)."""
    above, below, of_above, of_below = rows
    left, right, of_left, of_right = columns
    for i in range(out.shape[0]):
        upper, lower, of_upper, of_lower, row = wide[above[i]], wide[below[i]], of_above[i], of_below[i], tall[i]
        for j in range(out.shape[1]):
            a, b = upper[j], lower[j]
            vertical = min(max(a * of_upper + b * of_lower, min(a, b)), max(a, b))
            a, b = row[left[j]], row[right[j]]
            horizontal = min(max(a * of_left[j] + b * of_right[j], min(a, b)), max(a, b))
            out[i, j] = 0.5 * (vertical + horizontal)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def between(a: float, b: float, of_a: float, of_b: float) -> float:
    """Return what :func:`blend` does, of two numbers; NaN stays NaN."""
    mixed = a * of_a + b * of_b
    low, high = min(a, b), max(a, b)
    if mixed < low:
        return low
    return high if mixed > high else mixed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def at_once(
    grid: NDArray[np.float64],
    rows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    out: NDArray[np.float64],
) -> None:
    """Write to ``out`` what two blends and :func:`cross` give, from the four cells of each pixel alone.

    Where a map is larger than the picture that it is laid on, most of its cells are never asked for.
    """
    above, below, of_above, of_below = rows
    left, right, of_left, of_right = columns
    for i in range(out.shape[0]):
        upper, lower, of_upper, of_lower = grid[above[i]], grid[below[i]], of_above[i], of_below[i]
        for j in range(out.shape[1]):
            a, b = float(upper[left[j]]), float(upper[right[j]])
            c, d = float(lower[left[j]]), float(lower[right[j]])
            first, second = between(a, b, of_left[j], of_right[j]), between(c, d, of_left[j], of_right[j])
            vertical = between(first, second, of_upper, of_lower)
            first, second = between(a, c, of_upper, of_lower), between(b, d, of_upper, of_lower)
            horizontal = between(first, second, of_left[j], of_right[j])
            out[i, j] = 0.5 * (vertical + horizontal)
