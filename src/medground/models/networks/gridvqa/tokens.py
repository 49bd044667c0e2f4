"""Words to numbers, for the small network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, NOUN, SHAPES, bare

PAD, UNKNOWN = 0, 1
HEADS = [direction.split()[0] for direction in DIRECTIONS]
WORDS = [
    *("how", "many", "is", "there", "any", "are", "more", "than", "that", "and", "of", NOUN),
    *COLOURS,
    *SHAPES,
    *HEADS,
]
VOCABULARY = {word: number for number, word in enumerate(WORDS, start=2)}
SIZE = len(VOCABULARY) + 2
CLAUSES, SIDES = 5, 2
"""Positions counted from the words alone: direction words read so far (0..4), and whether "than" has been read."""


@lru_cache(maxsize=65536)
def encode(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return one triple a word: its number, the direction words read so far, and 1 once "than" has been read."""
    codes, directions, side = [], 0, 0
    for word in (bare(piece) for piece in text.split()):
        directions += word in HEADS
        side = 1 if word == "than" else side
        codes.append((VOCABULARY.get(word, UNKNOWN), min(directions, CLAUSES - 1), side))
    return tuple(codes)


def batch(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return ``(N, longest, 3)`` codes, padded with zeros; at least one column."""
    rows = [encode(text) for text in texts]
    table = np.zeros((len(rows), max(1, *map(len, rows)) if rows else 1, 3), np.int64)
    for i, row in enumerate(rows):
        if row:
            table[i, : len(row)] = row
    return table
