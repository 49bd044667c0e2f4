"""Draws the objects of GridVQA-X: filled shapes with a black outline on white, one a cell.

A cell is drawn at 64 pixels as the published generator does (padding of a tenth, outline of two pixels) and, where
smaller cells are asked for, averaged down: area means keep every edge where it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw

from medground.errors import ConfigError
from medground.worlds.gridvqa.language import COLOURS, SHAPES

CELL = 64
OUTLINE = 2
EMPTY = len(COLOURS) * len(SHAPES)


@lru_cache(maxsize=8)
def sprites(cell: int = CELL) -> NDArray[np.uint8] | NDArray[np.float32]:
    """Return one picture a class, colour-major, and the empty cell last.

    Args:
        cell: pixels a side; must divide 64, or be a multiple of it (shapes are then drawn at that size).

    Returns:
        ``(17, cell, cell, 3)``: uint8 at 64 pixels and more, else float32 area means in 0..255. Read only.

    Raises:
        ConfigError: the size is neither a divisor nor a multiple of 64.
    """
    if cell < 1 or (CELL % cell and cell % CELL):
        raise ConfigError("a cell must have a divisor or a multiple of 64 pixels a side", got=cell)
    drawn = max(cell, CELL)
    pictures = [_draw(colour, shape, drawn) for colour in COLOURS for shape in SHAPES]
    table = np.stack([*pictures, np.full((drawn, drawn, 3), 255, np.uint8)])
    if cell < CELL:
        step = CELL // cell
        table = table.reshape(EMPTY + 1, cell, step, cell, step, 3).mean((2, 4), dtype=np.float64)
        table = table.astype(np.float32)
    table.setflags(write=False)
    return table


def _draw(colour: str, shape: str, cell: int) -> NDArray[np.uint8]:
    picture = Image.new("RGB", (cell, cell), "white")
    pen = ImageDraw.Draw(picture)
    low, high, middle = cell * 0.1, cell * 0.9, cell / 2
    style = {"fill": ImageColor.getrgb(colour), "outline": (0, 0, 0), "width": OUTLINE * cell // CELL}
    if shape == "circle":
        pen.ellipse((low, low, high, high), **style)  # type: ignore[arg-type]  # one dict of mixed options
    elif shape == "square":
        pen.rectangle((low, low, high, high), **style)  # type: ignore[arg-type]  # one dict of mixed options
    else:
        corners = [(middle, low), (low, high), (high, high)] if shape == "triangle" else _pentagon(middle, low)
        pen.polygon(corners, **style)  # type: ignore[arg-type]  # one dict of mixed options
    return np.asarray(picture)


def _pentagon(middle: float, low: float) -> list[tuple[float, float]]:
    radius = middle - low
    angles = [math.radians(72 * i - 90) for i in range(5)]
    return [(middle + radius * math.cos(a), middle + radius * math.sin(a)) for a in angles]


def class_of(colour: str, shape: str) -> int:
    """Return the position of a class in :func:`sprites`."""
    return COLOURS.index(colour) * len(SHAPES) + SHAPES.index(shape)


def paint(classes: Sequence[NDArray[np.integer]] | NDArray[np.integer], cell: int = CELL) -> NDArray[np.generic]:
    """Return pictures of boards.

    Args:
        classes: ``(..., S, S)`` classes by row and column, :data:`EMPTY` where nothing lies.
        cell: pixels a side of a cell, see :func:`sprites`.

    Returns:
        ``(..., S * cell, S * cell, 3)`` in the sprites' type, 0..255.
    """
    boards = np.asarray(classes)
    grid = boards.shape[-1]
    tiles = np.moveaxis(sprites(cell)[boards], -3, -4)
    return tiles.reshape(*boards.shape[:-2], grid * cell, grid * cell, 3)
