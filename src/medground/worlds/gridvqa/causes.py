"""Which objects an answer hangs on: minimal causes, and how responsible each object is.

The intervention is the removal of objects from the picture, and an absent anchor leaves nothing beside it. A *minimal
cause* is a set of objects without which the answer is another, and no smaller part of which does that. The
*responsibility* of an object (Chockler and Halpern, J. Artif. Intell. Res. 22, 2004) is 1 / (1 + k), k being the least
number of other objects whose removal keeps the answer but makes it hang on this one; 0 where there is no such set.

One of three targets is all of the cause of "three", and a third of that of "there is one".
"""

from __future__ import annotations

from dataclasses import dataclass

from medground.errors import DataError
from medground.worlds.gridvqa.board import members
from medground.worlds.gridvqa.checker import Cell, ClauseTruth, Truth
from medground.worlds.gridvqa.language import Question


@dataclass(frozen=True, slots=True)
class Cause:
    """A family of minimal causes: any ``take`` of these ``cells``."""

    take: int
    cells: frozenset[Cell]


def minimal_causes(question: Question, truth: Truth) -> tuple[Cause, ...]:
    """Return every minimal cause of an answer, as families.

    Empty where no removal can change the answer: "no" to an existence question, a count of 0, or "no" to a comparison
    whose first side is empty.

    Args:
        question: whose descriptions fit no object in common, as those of the generators.
        truth: what :func:`~medground.worlds.gridvqa.checker.check` says.

    Raises:
        DataError: two descriptions of the question can fit one object.
    """
    _hold_apart(question)
    if question.form == "compare":
        first, second = truth.counts
        if truth.answer == "yes":
            return _fewer(truth.clauses[0], first - second)
        return _fewer(truth.clauses[1], second - first + 1) if first else ()
    count = truth.counts[0]
    if count == 0:
        return ()
    return _fewer(truth.clauses[0], count if question.form == "exists" else 1)


def responsibility(question: Question, truth: Truth) -> dict[Cell, float]:
    """Return the responsibility of every object that has any, in (0, 1], by its cell; see :func:`minimal_causes`."""
    weights: dict[Cell, float] = {}
    for cause in minimal_causes(question, truth):
        for cell in cause.cells:
            weights[cell] = max(weights.get(cell, 0.0), 1 / cause.take)
    return dict(sorted(weights.items()))


def _fewer(clause: ClauseTruth, by: int) -> tuple[Cause, ...]:
    """Return the ways to lower the count of a clause by so many: as many targets, or any one anchor."""
    return Cause(by, clause.targets), *(Cause(1, frozenset([anchor])) for anchor in clause.anchors)


def _hold_apart(question: Question) -> None:
    kinds = [clause.target for clause in question.clauses] + list(question.anchors)
    classes = [members(kind) for kind in kinds]
    if sum(map(len, classes)) != len(frozenset[int]().union(*classes)):
        raise DataError(
            "two descriptions of a question can fit one object",
            got=repr(question.text),
            expected="descriptions that differ pairwise",
        )
