"""The executor on coalitions: what the right answer is where objects and words have been taken away.

A coalition is a subset of the objects and of the words, as an explainer shows it: absent objects leave an empty cell,
absent words are deleted from the text, the others stay in order. Its meaning is fixed here, once:

* words are read by :func:`~medground.worlds.gridvqa.language.read`: a masked attribute leaves its description open, so
  a target without attributes is any object; a masked direction drops its relation, and what followed it belongs to the
  description before, if that is still open; a masked first word leaves a count, a masked "than" a comparison with all.
* a relation whose anchor has no attribute left says nothing.
* a relation holds beside *some* object that fits its anchor. Beside an absent anchor lies nothing, so its count is 0.

On whole scenes and questions this is the truth of :mod:`~medground.worlds.gridvqa.checker`. The *counter* is the same
without relations: it counts what fits the target's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from medground.worlds.gridvqa.board import Board, board, members
from medground.worlds.gridvqa.checker import Placed
from medground.worlds.gridvqa.drawing import class_of
from medground.worlds.gridvqa.language import Clause, Kind, Question, read
from medground.worlds.gridvqa.world import Answer

Masks = Mapping[int, int]
"""Class -> mask of its cells."""


@lru_cache(maxsize=65536)
def meaning(words: tuple[str, ...], relations: bool = True) -> Question:
    """Return what remains of a question: :func:`~medground.worlds.gridvqa.language.read` without empty relations.

    Args:
        words: the words that are left, in order.
        relations: False for the counter's reading.
    """
    left = read(words, relations=relations)
    clauses = tuple(
        Clause(clause.target, tuple(r for r in clause.relations if r.anchor != Kind())) for clause in left.clauses
    )
    return Question(left.form, clauses)


def executor(things: Iterable[Placed], words: Sequence[str], grid: int, *, relations: bool = True) -> Answer:
    """Answer what remains of a question about what remains of a scene.

    Args:
        things: the objects that are left.
        words: the words that are left, in order.
        grid: cells a side.
        relations: False for the counter.

    Returns:
        A count, or ``yes`` / ``no``.
    """
    return reply(meaning(tuple(words), relations), masks_of(things, grid), grid)


def masks_of(things: Iterable[Placed], grid: int) -> dict[int, int]:
    """Return the cells of every class as a mask."""
    masks: dict[int, int] = {}
    for thing in things:
        kind = class_of(thing.colour, thing.shape)
        masks[kind] = masks.get(kind, 0) | 1 << (thing.y * grid + thing.x)
    return masks


def reply(question: Question, masks: Masks, grid: int) -> Answer:
    """Answer a question, as :func:`meaning` gives it, about cells by class."""
    counts = [targets(clause, masks, grid).bit_count() for clause in question.clauses]
    if question.form == "count":
        return counts[0]
    truth = counts[0] > 0 if question.form == "exists" else counts[0] > counts[1]
    return "yes" if truth else "no"


def targets(clause: Clause, masks: Masks, grid: int) -> int:
    """Return the mask of the cells that a clause counts."""
    area, counted = board(grid), fitting(clause.target, masks)
    for relation in clause.relations:
        counted &= beside(area, relation.direction, fitting(relation.anchor, masks))
    return counted


def fitting(kind: Kind, masks: Masks) -> int:
    """Return the mask of the cells whose object fits a description."""
    cells = 0
    for member in members(kind):
        cells |= masks.get(member, 0)
    return cells


def beside(area: Board, direction: str, anchors: int) -> int:
    """Return the cells that lie in a direction of some anchor."""
    cells = 0
    while anchors:
        cells |= area.plane(direction, (anchors & -anchors).bit_length() - 1)
        anchors &= anchors - 1
    return cells
