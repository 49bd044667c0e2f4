"""Answers any question about any scene from first principles, and says what each relation is worth.

It shares no code with the generators: it compares coordinates of objects, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from medground.errors import DataError
from medground.worlds.gridvqa.language import Clause, Kind, Question, Relation

Cell = tuple[int, int]
Answer = int | str
Status = Literal["filled", "no_region", "occupied", "free_but_unfilled"]

_HOLDS = {
    "left of": lambda cell, anchor: cell[0] < anchor[0],
    "right of": lambda cell, anchor: cell[0] > anchor[0],
    "above": lambda cell, anchor: cell[1] < anchor[1],
    "below": lambda cell, anchor: cell[1] > anchor[1],
}


class Placed(Protocol):
    """An object: column, row, colour and shape."""

    @property
    def x(self) -> int:
        """Column from the left."""

    @property
    def y(self) -> int:
        """Row from the top."""

    @property
    def colour(self) -> str:
        """Its colour."""

    @property
    def shape(self) -> str:
        """Its shape."""


@dataclass(frozen=True)
class ClauseTruth:
    """What holds for one clause.

    Attributes:
        anchors: the cell of each relation's anchor.
        region: cells inside all half-planes, occupied ones included.
        targets: cells of the objects that fit and lie in the region.
        matching: cells of the objects that fit, anywhere.
    """

    anchors: tuple[Cell, ...]
    region: frozenset[Cell]
    targets: frozenset[Cell]
    matching: frozenset[Cell]


@dataclass(frozen=True)
class Dropped:
    """What one relation is worth.

    Attributes:
        clause: which clause it belongs to.
        relation: its position in the clause.
        count: objects of the clause without it.
        answer: the answer without it.
        region: its confuser region: cells inside all other half-planes of the clause and outside its own.
        confusers: cells of that region with an object that fits the target.
        status: ``filled``, or why not: ``no_region`` (no cell, or cells of anchors only), ``occupied`` (other
            objects on every cell), ``free_but_unfilled``.
    """

    clause: int
    relation: int
    count: int
    answer: Answer
    region: frozenset[Cell]
    confusers: frozenset[Cell]
    status: Status
    can_change: bool


@dataclass(frozen=True)
class Truth:
    """Everything that can be derived from objects and a question.

    Attributes:
        answer: a count, or ``yes`` / ``no``.
        counts: one a clause.
        clauses: see :class:`ClauseTruth`.
        bag_of_words: counts and answer when directions and anchors are ignored.
        drop_one: one entry a relation.
    """

    answer: Answer
    counts: tuple[int, ...]
    clauses: tuple[ClauseTruth, ...]
    bag_of_words: tuple[tuple[int, ...], Answer]
    drop_one: tuple[Dropped, ...]

    @property
    def strict_confusers(self) -> bool | None:
        """Whether every relation has a filled confuser region; None when there is no relation."""
        return all(d.status == "filled" for d in self.drop_one) if self.drop_one else None

    @property
    def needs_directions(self) -> bool:
        """Whether ignoring all directions gives another answer."""
        return self.bag_of_words[1] != self.answer

    @property
    def causal(self) -> frozenset[Cell]:
        """Cells of all anchors and true targets: the unique explanation of the answer."""
        return frozenset[Cell]().union(*(c.targets | frozenset(c.anchors) for c in self.clauses))

    @property
    def shortcut(self) -> frozenset[Cell]:
        """Cells of everything that fits a target: the explanation of a model that counts words (ours)."""
        return frozenset[Cell]().union(*(c.matching for c in self.clauses))


def check(things: Sequence[Placed], question: Question, grid: int) -> Truth:
    """Derive the truth of a question about objects on a ``grid`` by ``grid`` board.

    Raises:
        DataError: two objects share a cell or lie outside the board, or an anchor is missing or not unique.
    """
    _check_board(things, grid)
    clauses = tuple(_clause(things, clause, grid) for clause in question.clauses)
    counts = tuple(len(c.targets) for c in clauses)
    blind = tuple(len(c.matching) for c in clauses)
    dropped = tuple(
        _drop(things, question, clauses, i, k, grid)
        for i, clause in enumerate(question.clauses)
        for k in range(len(clause.relations))
    )
    return Truth(_reply(question, counts), counts, clauses, (blind, _reply(question, blind)), dropped)


def _check_board(things: Sequence[Placed], grid: int) -> None:
    cells = [(t.x, t.y) for t in things]
    for cell in cells:
        if not (0 <= cell[0] < grid and 0 <= cell[1] < grid):
            raise DataError("an object lies outside the board", expected=f"columns and rows 0..{grid - 1}", got=cell)
        if cells.count(cell) > 1:
            raise DataError("two objects share a cell", where=cell, expected="one object a cell")


def _find(things: Sequence[Placed], kind: Kind) -> Cell:
    cells = [(t.x, t.y) for t in things if kind.matches(t.colour, t.shape)]
    if len(cells) != 1:
        raise DataError(f"the anchor {kind.phrase()!r} must be unique", expected="one object that fits", got=len(cells))
    return cells[0]


def _clause(things: Sequence[Placed], clause: Clause, grid: int) -> ClauseTruth:
    anchors = tuple(_find(things, relation.anchor) for relation in clause.relations)
    region = _region(clause.relations, anchors, grid)
    matching = frozenset((t.x, t.y) for t in things if clause.target.matches(t.colour, t.shape))
    return ClauseTruth(anchors, region, matching & region, matching)


def _region(relations: Iterable[Relation], anchors: Iterable[Cell], grid: int) -> frozenset[Cell]:
    planes = list(zip(relations, anchors, strict=True))
    return frozenset(
        (x, y)
        for y in range(grid)
        for x in range(grid)
        if all(_HOLDS[relation.direction]((x, y), anchor) for relation, anchor in planes)
    )


def _drop(
    things: Sequence[Placed],
    question: Question,
    clauses: Sequence[ClauseTruth],
    i: int,
    k: int,
    grid: int,
) -> Dropped:
    whole, relations = clauses[i], question.clauses[i].relations
    wider = _region(relations[:k] + relations[k + 1 :], whole.anchors[:k] + whole.anchors[k + 1 :], grid)
    counts = [len(c.targets) for c in clauses]
    counts[i] = len(whole.matching & wider)
    region = wider - whole.region
    return Dropped(
        i,
        k,
        counts[i],
        _reply(question, counts),
        region,
        whole.matching & region,
        _status(things, clauses, region, whole.matching & region),
        question.form == "count" or _reply(question, [len(c.targets) for c in clauses]) == ("no", "yes")[i],
    )


def _status(
    things: Sequence[Placed],
    clauses: Sequence[ClauseTruth],
    region: frozenset[Cell],
    confusers: frozenset[Cell],
) -> Status:
    if confusers:
        return "filled"
    usable = region - {anchor for clause in clauses for anchor in clause.anchors}
    if not usable:
        return "no_region"
    return "free_but_unfilled" if usable - {(t.x, t.y) for t in things} else "occupied"


def _reply(question: Question, counts: Sequence[int]) -> Answer:
    if question.form == "count":
        return counts[0]
    truth = counts[0] > 0 if question.form == "exists" else counts[0] > counts[1]
    return "yes" if truth else "no"
