"""Bringing a mask to another size by picking whole pixels: which row takes which."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

ResizeRule = Literal["floor", "centre", "none"]
"""Which row of H the row i of H' takes: ``floor(i H / H')`` (``floor``, as the published loaders do) or
``floor((i + 1/2) H / H')`` (``centre``); ``none`` allows no other size than the frame's. Columns alike."""


def picked(source: int, target: int, resize: ResizeRule) -> NDArray[np.int64]:
    """Return which of ``source`` rows each of ``target`` rows takes."""
    index = np.arange(target, dtype=np.int64)
    if resize == "centre":
        return (2 * index + 1) * source // (2 * target)
    return index * source // target


def first_taking(edge: int, source: int, target: int, resize: ResizeRule) -> int:
    """Return the first of ``target`` rows that takes row ``edge`` of ``source`` rows or a later one.

    With it a box is drawn at another size without drawing it at its own.
    """
    edge = min(max(edge, 0), source)
    if resize == "centre":
        return max(0, -((source - 2 * target * edge) // (2 * source)))
    return -(-edge * target // source)
