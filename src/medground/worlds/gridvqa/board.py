"""Cells as bits of one integer, and the draws that a generator needs: small, fast and the same everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, Kind

T = TypeVar("T")

CLASSES = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)


class Draws(random.Random):
    """Random draws that rest on ``random()`` alone, the one sequence that Python keeps between versions."""

    def below(self, n: int) -> int:
        """Return an integer of 0..n-1."""
        return int(self.random() * n)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self.random() * len(items))]

    def several(self, items: Sequence[T], k: int) -> list[T]:
        """Return k different items in random order."""
        pool = list(items)
        for i in range(k):
            j = i + int(self.random() * (len(pool) - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def cell(self, mask: int) -> int:
        """Return one of the cells whose bit is set in a mask that is not 0."""
        for _ in range(int(self.random() * mask.bit_count())):
            mask &= mask - 1
        return (mask & -mask).bit_length() - 1


class Board:
    """A square board; cell ``y * grid + x`` is bit ``1 << cell``."""

    def __init__(self, grid: int) -> None:
        self.grid = grid
        self.cells = grid * grid
        self.full = (1 << self.cells) - 1
        self._planes = {
            direction: [self._plane(direction, cell) for cell in range(self.cells)] for direction in DIRECTIONS
        }

    def plane(self, direction: str, cell: int) -> int:
        """Return the cells in a direction of a cell, itself and its own row or column excluded."""
        return self._planes[direction][cell]

    def _plane(self, direction: str, cell: int) -> int:
        ay, ax = divmod(cell, self.grid)
        columns = {"left of": range(ax), "right of": range(ax + 1, self.grid)}.get(direction, range(self.grid))
        rows = {"above": range(ay), "below": range(ay + 1, self.grid)}.get(direction, range(self.grid))
        return sum(1 << (y * self.grid + x) for y in rows for x in columns)


@lru_cache(maxsize=32)
def board(grid: int) -> Board:
    """Return the board of this size."""
    return Board(grid)


@lru_cache(maxsize=4096)
def members(kind: Kind) -> frozenset[int]:
    """Return the classes (positions in :data:`CLASSES`) that fit a description."""
    return frozenset(i for i, (colour, shape) in enumerate(CLASSES) if kind.matches(colour, shape))
