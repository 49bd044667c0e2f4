"""A scene in the making, and the steps that all generators share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from medground.worlds.gridvqa.board import CLASSES, Board, Draws, board, members
from medground.worlds.gridvqa.language import Clause, Question, Relation
from medground.worlds.gridvqa.world import Answer, Bucket, Role, Scene, Thing, occupied


@dataclass(frozen=True, slots=True)
class Side:
    """Where things may lie for one clause; masks without the cells of anchors.

    Attributes:
        valid: inside all half-planes.
        confusers: one a relation: inside all half-planes but its own.
        outside: not in ``valid``.
    """

    valid: int
    confusers: tuple[int, ...]
    outside: int


@dataclass(slots=True)
class Draft:
    """Objects placed so far: cell -> class and role."""

    draws: Draws
    bucket: Bucket
    question: Question
    board: Board
    size: int
    classes: dict[int, int] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)
    taken: int = 0

    def put(self, cell: int, kind: int, role: Role) -> None:
        """Place an object of class ``kind`` on a free cell."""
        self.classes[cell], self.roles[cell] = kind, role
        self.taken |= 1 << cell

    def free(self, mask: int) -> int:
        """Return the free cells of a mask."""
        return mask & ~self.taken

    @property
    def left(self) -> int:
        """Objects still to place."""
        return self.size - len(self.classes)

    def scatter(self, n: int, mask: int, kinds: Sequence[int], role: Role) -> bool:
        """Place n objects on free cells of a mask; False when it has no room for them."""
        for _ in range(n):
            spots = self.free(mask)
            if not spots:
                return False
            self.put(self.draws.cell(spots), self.draws.pick(kinds), role)
        return True

    def anchor(self, cells: Sequence[int]) -> None:
        """Place the anchors of the question; an attribute that their description leaves open is drawn."""
        for cell, kind in zip(cells, self.question.anchors, strict=True):
            self.put(cell, self.draws.pick(sorted(members(kind))), "anchor")

    def scene(self, scene_id: str, variant: str, answer: Answer) -> Scene:
        """Return the finished scene; objects in the order of placing."""
        things = tuple(
            Thing(c % self.board.grid, c // self.board.grid, *CLASSES[kind], self.roles[c])
            for c, kind in self.classes.items()
        )
        return Scene(scene_id, self.board.grid, things, self.question, answer, variant, self.bucket.density)


def draft(draws: Draws, bucket: Bucket, question: Question, grid: int) -> Draft:
    """Return an empty draft."""
    return Draft(draws, bucket, question, board(grid), occupied(grid, bucket.density))


def side(area: Board, relations: Sequence[Relation], cells: Sequence[int], anchors: int) -> Side:
    """Return the regions of one clause whose anchors lie on ``cells``; ``anchors`` masks those of all clauses."""
    planes = [area.plane(r.direction, cell) for r, cell in zip(relations, cells, strict=True)]
    free = area.full & ~anchors
    valid = meet(area, planes) & free
    confusers = tuple(meet(area, planes[:k] + planes[k + 1 :]) & ~planes[k] & free for k in range(len(planes)))
    return Side(valid, confusers, free & ~valid)


def sides(area: Board, question: Question, cells: Sequence[int]) -> list[Side]:
    """Return the regions of every clause; ``cells`` are those of the anchors in the order of the words."""
    anchors = mask(cells)
    regions, start = [], 0
    for clause in question.clauses:
        stop = start + len(clause.relations)
        regions.append(side(area, clause.relations, cells[start:stop], anchors))
        start = stop
    return regions


def meet(area: Board, planes: Iterable[int]) -> int:
    """Return the cells that lie in all planes."""
    common = area.full
    for plane in planes:
        common &= plane
    return common


def mask(cells: Iterable[int]) -> int:
    """Return the mask of some cells."""
    return sum(1 << cell for cell in cells)


def kinds(clause: Clause) -> list[int]:
    """Return the classes that fit a clause's target, in order."""
    return sorted(members(clause.target))


def strangers(question: Question, *, targets: bool) -> list[int]:
    """Return the classes that fit no anchor and, unless ``targets``, no target either."""
    taken = set[int]().union(*(members(kind) for kind in question.anchors))
    if not targets:
        taken.update(*(members(clause.target) for clause in question.clauses))
    return [i for i in range(len(CLASSES)) if i not in taken]


def targets_to_exist(draws: Draws, most: int) -> int:
    """Draw the number of targets of an existence question: none in half of the scenes, one in a quarter."""
    coin = draws.random()
    return 0 if coin < 0.5 else 1 if coin < 0.75 else 1 + draws.below(most)


def attributes_only(made: Draft) -> Answer:
    """Fill a scene without relations: its target or another class is the largest, in half of the counts each."""
    draws, size = made.draws, made.size
    everywhere, plain = made.board.full, strangers(made.question, targets=False)
    rival = 0
    if made.question.form == "exists":
        n = targets_to_exist(draws, size)
    elif draws.random() < 0.5:
        share = 0.48 + 0.42 * draws.random()
        n = math.ceil(share * size) if made.bucket.density > 0.5 else size // 2 + 1 + draws.below(size - size // 2)
    else:
        n = 1 + draws.below((size - 1) // 2)
        rival = n + 1 + draws.below(size - 2 * n)
    made.scatter(rival, everywhere, [draws.pick(plain)], "distractor")
    made.scatter(n, everywhere, kinds(made.question.clauses[0]), "target")
    made.scatter(made.left, everywhere, plain, "distractor")
    return answer(made.question, n)


def answer(question: Question, *counts: int) -> Answer:
    """Return the answer that these counts, one a clause, give."""
    if question.form == "count":
        return counts[0]
    truth = counts[0] > 0 if question.form == "exists" else counts[0] > counts[1]
    return "yes" if truth else "no"
