"""Holds the shape of a map against the picture that it is of: turned and unfolded maps are recognised and named."""

from __future__ import annotations

import math

from medground.errors import ImageError
from medground.imaging._display import Size

# Differences of the logarithms of two aspects that are no accident: of maps at full size, and of coarse grids, whose
# cells need not be square.
_FINE, _COARSE = 0.1, 0.8


def hold_shape(shape: tuple[int, int], size: Size, where: str) -> None:
    """Refuse a map whose shape cannot be that of its picture.

    Args:
        shape: of the map, (height, width).
        size: of the picture, (width, height).
        where: the map, for the message.

    Raises:
        ImageError: it is turned (width before height), or a grid that was unfolded into one row.

    Example:
        >>> hold_shape((14, 14), (400, 200), "a map")
        >>> hold_shape((400, 200), (400, 200), "a map")
        Traceback (most recent call last):
        ...
        medground.errors.ImageError: a map is turned: its rows are the picture's columns
          where: a map
          expected: (height, width), such as (200, 400)
          got: (400, 200)
          fix: transpose it: map.T
    """
    (rows, columns), (width, height) = shape, size
    if min(shape) == 1 and max(shape) >= 16:
        _refuse_unfolded(max(shape), shape, where)
        return
    own, picture = math.log(columns / rows), math.log(width / height)
    turned = (rows, columns) == (width, height) and width != height
    slack = max(0.02, 0.6 / min(shape))  # a coarse grid rounds the aspect
    far = abs(own - picture) > (_FINE if min(shape) >= 64 else _COARSE) + slack
    if turned or (min(shape) > 1 and far and abs(own + picture) <= slack):
        raise ImageError(
            "a map is turned: its rows are the picture's columns",
            where=where,
            expected=f"(height, width), such as {(height, width)}",
            got=str(shape),
            fix="transpose it: map.T",
        )


def _refuse_unfolded(cells: int, shape: tuple[int, int], where: str) -> None:
    for extra in (0, 1):
        side = math.isqrt(cells - extra)
        if side * side == cells - extra:
            cut = "[:, 1:]" if extra else ""
            what = ", behind one value for the whole picture" if extra else ""
            raise ImageError(
                f"a map is one row: a grid of {side} x {side} cells that was unfolded{what}",
                where=where,
                expected=f"({side}, {side})",
                got=str(shape),
                fix=f"fold it: map{cut}.reshape({side}, {side})",
            )
