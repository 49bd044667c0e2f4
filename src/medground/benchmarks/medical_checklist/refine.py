"""Fewer items, without the shortcut: mirror cells over two blind scorers, and reciprocal balance of terms.

Both keep as many items that a blind scorer gets right as such that it gets wrong. What they do is checked with a
learned scorer on papers that took no part: a balance that fools n-grams need not fool everyone.

Source of the mirror cells: Hsieh et al., SugarCrepe, NeurIPS 2023 (adversarial refinement over a 50 x 50 grid).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.benchmarks.medical_checklist.hashing import number
from medground.errors import MetricError

GRID = 50


def cells(gaps: ArrayLike, grid: int = GRID) -> NDArray[np.intp]:
    """Return the cell (N, 2) of each pair of gaps in [-1, 1]: floor((gap + 1) / 2 * grid), the last one closed."""
    held = np.asarray(gaps, dtype=np.float64)
    if held.ndim != 2 or held.shape[1] != 2 or not np.all(np.abs(held) <= 1):
        raise MetricError("gaps of two scorers are (N, 2) numbers in [-1, 1]", got=held.shape)
    return np.minimum(np.floor((held + 1) / 2 * grid).astype(np.intp), grid - 1)


def mirror_cells(gaps: ArrayLike, item_ids: Sequence[str], grid: int = GRID, seed: int = 0) -> NDArray[np.bool_]:
    """Return which items to keep: as many in each cell as in the cell reflected at the centre.

    In a cell that is its own reflection (an odd grid's middle) items are kept in pairs of opposite gap.

    Args:
        gaps: (N, 2) score of the true caption minus score of the false one, two scorers, each scaled to [-1, 1].
        item_ids: (N,) decides, with the seed, which items of a cell stay; their order does not.
        grid: cells along each axis.
        seed: of the choice.
    """
    where = cells(gaps, grid)
    signs = np.sign(np.asarray(gaps, dtype=np.float64)).sum(axis=1)
    groups = [_cell_key((int(a), int(b)), grid, float(s)) for (a, b), s in zip(where, signs, strict=True)]
    return balance([g for g, _ in groups], [d for _, d in groups], item_ids, seed)


def _cell_key(cell: tuple[int, int], grid: int, sign: float) -> tuple[Hashable, int]:
    """Return a cell and its reflection as one group, and on which side of the two an item lies."""
    mirrored = (grid - 1 - cell[0], grid - 1 - cell[1])
    if cell == mirrored:
        return cell, 1 if sign > 0 else -1 if sign < 0 else 0
    return min(cell, mirrored), 1 if cell > mirrored else -1


def balance(
    groups: Sequence[Hashable], directions: Sequence[int], item_ids: Sequence[str], seed: int = 0
) -> NDArray[np.bool_]:
    """Return which items to keep so that every group holds as many of one direction as of the other.

    Items of direction 0 tell nothing and stay.

    Args:
        groups: (N,) what must be balanced within.
        directions: (N,) 1 or -1.
        item_ids: (N,) distinct; they decide with the seed which items stay.
        seed: of the choice.
    """
    if len(set(item_ids)) != len(item_ids):
        raise MetricError("items to balance need distinct ids")
    held: dict[Hashable, dict[int, list[int]]] = {}
    keep = np.zeros(len(groups), dtype=np.bool_)
    for row, (group, direction) in enumerate(zip(groups, directions, strict=True)):
        if direction == 0:
            keep[row] = True
        else:
            held.setdefault(group, {1: [], -1: []})[direction].append(row)
    for sides in held.values():
        least = min(len(rows) for rows in sides.values())
        for rows in sides.values():
            chosen = sorted(rows, key=lambda r: (number(seed, item_ids[r]), item_ids[r]))[:least]
            keep[chosen] = True
    return keep


def reciprocal(
    categories: Sequence[str],
    contexts: Sequence[str],
    positives: Sequence[str],
    negatives: Sequence[str],
    item_ids: Sequence[str],
    seed: int = 0,
) -> NDArray[np.bool_]:
    """Return which items to keep so that each pair of surface forms stands equally often in both orders.

    Forms, not concepts: balanced concepts leave the wording as a tell. ``contexts`` is the masked sentence (or the
    facts that it states, where they are known): a pair balanced within its type alone still tells, by what is said
    beside it.

    Args:
        categories: (N,) semantic type.
        contexts: (N,) what must be equal for two items to balance each other.
        positives: (N,) true surface form.
        negatives: (N,) false surface form.
        item_ids: (N,) distinct ids.
        seed: of the choice.
    """
    pairs = [(a, b) if a <= b else (b, a) for a, b in zip(positives, negatives, strict=True)]
    groups = list(zip(categories, contexts, pairs, strict=True))
    directions = [1 if a <= b else -1 for a, b in zip(positives, negatives, strict=True)]
    return balance(groups, directions, item_ids, seed)


def scaled(gaps: ArrayLike) -> NDArray[np.float64]:
    """Return gaps divided by the largest magnitude, so that they lie in [-1, 1] and keep their signs."""
    held = np.asarray(gaps, dtype=np.float64)
    most = float(np.max(np.abs(held), initial=0.0))
    return held / most if most > 0 else held
