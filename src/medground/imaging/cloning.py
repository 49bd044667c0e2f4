"""Poisson cloning: keep a donor's differences between neighbours, and the target's values at the edge.

Perez, Gangnet and Blake, Poisson Image Editing (2003), with the plain guidance field. No seam shows, but what lies
at the edge spreads into the region: a lesion that crosses it bleeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

from medground.imaging.boxes import PixelBox

Grey = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SIDES = ((0, 1), (0, -1), (1, 0), (-1, 0))


def cloned(target: NDArray[Any], block: Grey, support: Mask, box: PixelBox) -> Grey:
    """Return the target with the donor's block cloned into the support; nothing outside of it changes.

    Args:
        target: ``(height, width)``.
        block: donor's values in ``box``.
        support: ``(height, width)`` where values are solved for. Pixels at the edge of ``box`` stay as they are, as the
            donor has no neighbour beyond; at the picture's own edge they are solved for.
        box: ``x0, y0, x1, y1`` of the block.

    Returns:
        float64, not clipped. A support without any neighbour in the target (the whole picture) keeps its mean.
    """
    x0, y0, x1, y1 = box
    out: Grey = np.array(target, dtype=np.float64)
    height, width = support.shape
    inside = np.zeros(support.shape, dtype=bool)
    within = slice(y0 + (y0 > 0), y1 - (y1 < height)), slice(x0 + (x0 > 0), x1 - (x1 < width))
    inside[within] = support[within]
    rows, columns = np.nonzero(inside)
    if rows.size == 0:
        return out
    guide = out.copy()
    guide[y0:y1, x0:x1] = block
    number = np.full(support.shape, -1)
    number[rows, columns] = np.arange(rows.size)
    degree, wanted, pairs = np.zeros(rows.size), np.zeros(rows.size), []
    for down, along in _SIDES:
        r, c = rows + down, columns + along
        there = (r >= 0) & (r < height) & (c >= 0) & (c < width)
        here, r, c = np.flatnonzero(there), r[there], c[there]
        degree[here] += 1
        wanted[here] += guide[rows[here], columns[here]] - guide[r, c]
        other = number[r, c]
        wanted[here] += np.where(other < 0, out[r, c], 0.0)
        pairs.append(np.stack([here[other >= 0], other[other >= 0]]))
    out[rows, columns] = _solved(degree, np.concatenate(pairs, axis=1), wanted, float(out[rows, columns].mean()))
    return out


def _solved(degree: Grey, pairs: NDArray[np.int64], wanted: Grey, mean: float) -> Grey:
    """Return the values whose differences are wanted: ``degree`` on the diagonal, -1 for each pair of neighbours."""
    n = degree.size
    every = np.arange(n)
    if degree.sum() == pairs.shape[1]:  # no edge to hold on to: values are known but for their mean
        degree = degree.copy()
        degree[0] += 1.0
    values = np.concatenate([degree, np.full(pairs.shape[1], -1.0)])
    matrix = coo_array((values, (np.concatenate([every, pairs[0]]), np.concatenate([every, pairs[1]]))), shape=(n, n))
    solution: Grey = np.asarray(spsolve(matrix.tocsc(), wanted))
    return solution - solution.mean() + mean if n > 1 and degree.sum() == pairs.shape[1] + 1 else solution
