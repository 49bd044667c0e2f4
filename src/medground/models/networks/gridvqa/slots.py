"""Words to numbers for the network of modules: which word, in which slot, to what use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.gridvqa.tokens import PAD, UNKNOWN, VOCABULARY
from medground.worlds.gridvqa.language import functions

RELATIONS = 4
"""Relations a side: those of both sides, where a comparison has lost its first word. Further ones are passed over."""
SIDES = 2
SLOTS = SIDES * (1 + RELATIONS)
"""A target and its relations, for either side: slot ``side * (1 + RELATIONS) + relation``."""
USES = ("", "head", "attribute", "direction")


@lru_cache(maxsize=65536)
def encode(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return one triple a word: its number, its slot, and its use as a position in :data:`USES`."""
    codes = []
    for part in functions(text.split())[1]:
        kept = part.relation <= RELATIONS
        slot = part.side * (1 + RELATIONS) + part.relation if kept else 0
        codes.append((VOCABULARY.get(part.word, UNKNOWN), slot, USES.index(part.use) if kept else 0))
    return tuple(codes)


def batch(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return ``(N, longest, 3)`` codes, padded with :data:`~medground.models.networks.gridvqa.tokens.PAD`."""
    rows = [encode(text) for text in texts]
    table = np.full((len(rows), max(1, *map(len, rows)) if rows else 1, 3), PAD, np.int64)
    for i, row in enumerate(rows):
        if row:
            table[i, : len(row)] = row
    return table
