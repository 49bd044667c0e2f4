"""Recognises the objects of a picture by comparing its cells with the drawings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.errors import ModelError
from medground.worlds.gridvqa.drawing import EMPTY, sprites

CELL = 16


def cells(images: NDArray[np.floating[Any]], grid: int) -> NDArray[np.float64]:
    """Return the cells of pictures at 16 pixels a side, by area means.

    Args:
        images: ``(N, H, W, 3)`` in [0, 1], at least 16 pixels a cell.
        grid: cells a side.

    Returns:
        ``(N, grid, grid, 16, 16, 3)``.

    Raises:
        ModelError: the pictures are no RGB pictures, or too small.
    """
    side = grid * CELL
    if images.ndim != 4 or images.shape[-1] != 3 or min(images.shape[1:3]) < side:
        raise ModelError(
            "pictures do not fit the board", expected=f"(N, H, W, 3), H and W at least {side}", got=images.shape
        )
    small = images.astype(np.float64, copy=False)
    for axis in (1, 2):
        small = _means(small, axis, side)
    return np.moveaxis(small.reshape(len(images), grid, CELL, grid, CELL, 3), 3, 2)


def _means(values: NDArray[np.float64], axis: int, n: int) -> NDArray[np.float64]:
    """Return means over n equal stretches of an axis; stretches are rounded to whole pixels."""
    length = values.shape[axis]
    if length == n:
        return values
    edges = np.arange(n) * length // n
    widths = np.diff([*edges, length]).reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return np.add.reduceat(values, edges, axis) / widths


@lru_cache(maxsize=1)
def _table() -> tuple[NDArray[np.float64], float]:
    """Return the drawings, flattened, and the smallest mean difference between two of them."""
    flat = sprites(CELL).reshape(EMPTY + 1, -1).astype(np.float64) / 255
    apart = np.abs(flat[:, None] - flat[None]).mean(-1)
    return flat, float(apart[~np.eye(EMPTY + 1, dtype=bool)].min())


def distances(images: NDArray[np.floating[Any]], grid: int) -> NDArray[np.float64]:
    """Return the mean absolute difference of every cell from every drawing, ``(N, grid, grid, 17)``."""
    table, _ = _table()
    seen = cells(images, grid).reshape(len(images), grid, grid, 1, -1)
    return np.stack([np.abs(seen[..., 0, :] - row).mean(-1) for row in table], -1)


def evidence(images: NDArray[np.floating[Any]], grid: int) -> NDArray[np.float64]:
    """Return how much every cell looks like every class, ``(N, grid, grid, 16)`` in [0, 1].

    1 for the drawing itself, falling linearly, 0 for what is as far away as another drawing is: one-hot on clean
    pictures, nothing at all on a cell that is hidden.
    """
    _, apart = _table()
    return np.clip(1 - distances(images, grid)[..., :EMPTY] / apart, 0, 1)


def classes(images: NDArray[np.floating[Any]], grid: int) -> NDArray[np.int64]:
    """Return the nearest drawing of every cell, ``(N, grid, grid)``; ``drawing.EMPTY`` for an empty one."""
    nearest: NDArray[np.int64] = distances(images, grid).argmin(-1)
    return nearest
