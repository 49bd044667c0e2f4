"""Look-ups inside the kernels: tables over a coordinate, tables over a share, a smooth step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.outlines import SAMPLES, SPAN, START

_SCALE = (SAMPLES - 1) / SPAN


@kernel
def _between(table: NDArray[np.float32], position: float) -> float:
    if position <= 0.0:
        return float(table[0])
    if position >= table.size - 1:
        return float(table[table.size - 1])
    low = int(position)
    rest = position - low
    return float(table[low] * (1.0 - rest) + table[low + 1] * rest)


@kernel
def lookup(table: NDArray[np.float32], at: float) -> float:
    """Return the value of a table over x or y (image widths) between its samples; ends are held."""
    return _between(table, (at - START) * _SCALE)


@kernel
def share(table: NDArray[np.float32], t: float) -> float:
    """Return the value of a table over 0 to 1 between its samples; ends are held."""
    return _between(table, t * (SAMPLES - 1))


@kernel
def smooth(x: float) -> float:
    """Return the cubic step: 0 below 0, 1 above 1."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    return x * x * (3.0 - 2.0 * x)
