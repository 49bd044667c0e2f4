"""Which cells and which words an explanation should point at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from medground.worlds.gridvqa.checker import Cell, Placed, Truth
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, Question, bare

Convention = Literal["correct", "released"]

_DIRECTION_WORDS = frozenset(word for direction in DIRECTIONS for word in direction.split())
_ONE_WORD = frozenset(direction for direction in DIRECTIONS if " " not in direction)


def vision_mask(cells: Collection[Cell], grid: int, cell: int = 1) -> NDArray[np.bool_]:
    """Return whole cells as a mask of ``(grid * cell, grid * cell)``, ``cell`` pixels a side of a cell."""
    mask = np.zeros((grid, grid), bool)
    for x, y in cells:
        mask[y, x] = True
    return mask.repeat(cell, 0).repeat(cell, 1)


def text_mask(text: str, convention: Convention = "correct") -> NDArray[np.bool_]:
    """Return one flag a word (split at blanks): the first word, colours, shapes, directions, "more", "than".

    Args:
        text: the question.
        convention: the released masks compare single words with whole directions, so they miss "left", "right"
            and "of"; ``correct`` marks them.
    """
    directions = _DIRECTION_WORDS if convention == "correct" else _ONE_WORD
    told = {*COLOURS, *SHAPES, *directions, "more", "than"}
    return np.array([i == 0 or bare(word) in told for i, word in enumerate(text.split())], bool)


def shortcut_text_mask(text: str) -> NDArray[np.bool_]:
    """Return one flag a word: what a model that counts target words reads (ours).

    The first word, the words of the targets, "more" and "than"; no direction and no anchor.
    """
    return np.array([role in ("head", "target") for role in word_roles(text)], bool)


def word_roles(text: str) -> list[str]:
    """Return one role a word: ``head``, ``target``, ``direction``, ``anchor`` or ``filler``."""
    roles, anchored = [], False
    for i, word in enumerate(bare(piece) for piece in text.split()):
        anchored = (anchored or word in _DIRECTION_WORDS) and word != "than"
        if i == 0 or word in ("more", "than"):
            roles.append("head")
        elif word in _DIRECTION_WORDS:
            roles.append("direction")
        elif word in COLOURS or word in SHAPES:
            roles.append("anchor" if anchored else "target")
        else:
            roles.append("filler")
    return roles


def position_mask(things: Sequence[Placed], question: Question, truth: Truth) -> frozenset[Cell]:
    """Return the published mask of valid cells.

    The region without the cells of anchors; for comparisons the union of both sides, the second without the targets
    of the first. Attribute-only counts leave out a planted majority: in the published order of objects it stands
    before the targets, and filler objects that happen to look like it stand after them and count as valid.
    """
    anchors = frozenset(anchor for clause in truth.clauses for anchor in clause.anchors)
    first = truth.clauses[0]
    if question.type == "CMP":
        return (first.region - anchors) | (truth.clauses[1].region - anchors - first.targets)
    if question.type == "A" and question.form == "count":
        planted = list(takewhile(lambda t: (t.x, t.y) not in first.targets, things))
        return first.region - {(t.x, t.y) for t in planted}
    return first.region - anchors
