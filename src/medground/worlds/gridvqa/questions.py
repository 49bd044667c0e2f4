"""Draws questions: which attributes, which directions."""

from __future__ import annotations

from collections.abc import Sequence

from medground.worlds.gridvqa.board import CLASSES, Draws
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, Clause, Kind, Question, Relation
from medground.worlds.gridvqa.world import Bucket


def ask(draws: Draws, bucket: Bucket, *, distinct: bool = True) -> Question:
    """Draw a question of a bucket.

    All attributes that a question names differ: colours in colour-only, shapes in shape-only, classes elsewhere.

    Args:
        draws: the source of chance.
        bucket: depth, type and form.
        distinct: whether directions of one clause differ pairwise. With a repeated direction the half-planes are
            nested, and no scene can show that both relations matter; the published generator repeats them.
    """
    clauses = 2 if bucket.type == "CMP" else 1
    relations = 0 if bucket.type == "A" else bucket.depth - (bucket.type == "CMP")
    kinds = iter(_kinds(draws, bucket, clauses * (relations + 1)))
    targets = [next(kinds) for _ in range(clauses)]
    made = tuple(
        Clause(target, tuple(Relation(d, next(kinds)) for d in _directions(draws, relations, distinct)))
        for target in targets
    )
    return Question(bucket.form, made)


def _kinds(draws: Draws, bucket: Bucket, n: int) -> list[Kind]:
    if bucket.type == "SO":
        return [Kind(shape=shape) for shape in draws.several(SHAPES, n)]
    if bucket.type == "CO":
        return [Kind(colour=colour) for colour in draws.several(COLOURS, n)]
    return [Kind(*CLASSES[i]) for i in draws.several(range(len(CLASSES)), n)]


def _directions(draws: Draws, n: int, distinct: bool) -> Sequence[str]:
    return draws.several(DIRECTIONS, n) if distinct else [draws.pick(DIRECTIONS) for _ in range(n)]
