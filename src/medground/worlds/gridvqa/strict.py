"""D_pure with confusers by construction: who ignores a relation, miscounts.

Theorem 1 of the paper asks that the confuser region of every anchor, inside all other half-planes and outside its
own, holds an object that fits the target. Here every scene does: directions of a clause differ pairwise, anchors are
drawn until every region has a cell, and a lure is placed in each before anything else. A comparison at depth 2 or 3
is one whose answer changes when all directions are ignored.
"""

from __future__ import annotations

from functools import lru_cache

from medground.errors import ConfigError
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.draft import (
    Draft,
    Side,
    answer,
    attributes_only,
    draft,
    kinds,
    sides,
    strangers,
    targets_to_exist,
)
from medground.worlds.gridvqa.questions import ask
from medground.worlds.gridvqa.world import Answer, Bucket, Scene, occupied


def strict_scene(draws: Draws, bucket: Bucket, grid: int, scene_id: str) -> Scene:
    """Draw a scene of D_pure in which every relation matters.

    Raises:
        ConfigError: the density leaves no room for anchors, one lure a relation and one target.
    """
    need = smallest(bucket)
    if occupied(grid, bucket.density) < need:
        raise ConfigError(
            f"a strict scene of {bucket.key} needs {need} objects",
            got=f"{occupied(grid, bucket.density)} on a {grid} by {grid} grid",
            fix="raise the density or the grid, or set confusers: released",
        )
    question = ask(draws, bucket)
    while True:
        made = draft(draws, bucket, question, grid)
        reply = _comparison(made) if bucket.type == "CMP" else _one_clause(made)
        if reply is not None:
            return made.scene(scene_id, "pure", reply)


def smallest(bucket: Bucket) -> int:
    """Return the number of objects that a strict scene needs at least."""
    if bucket.type == "A":
        return 3
    if bucket.type == "CMP":
        return 2 * (bucket.depth - 1) + 3
    return 2 * bucket.depth + 1


def stand(made: Draft) -> list[Side]:
    """Place the anchors so that every region of every clause has a free cell, and return the regions."""
    n = len(made.question.anchors)
    while True:
        cells = made.draws.several(range(made.board.cells), n)
        regions = sides(made.board, made.question, cells)
        if all(s.valid and all(s.confusers) for s in regions):
            made.anchor(cells)
            return regions


def _one_clause(made: Draft) -> Answer | None:
    if made.bucket.type == "A":
        return attributes_only(made)
    (where,) = stand(made)
    draws, target = made.draws, kinds(made.question.clauses[0])
    most = min(made.left - len(where.confusers), where.valid.bit_count())
    n = targets_to_exist(draws, most) if made.question.form == "exists" else 1 + draws.below(most)
    made.scatter(n, where.valid, target, "target")
    for region in where.confusers:
        made.scatter(1, region, target, "lure")
    _fill(made, where, target)
    return answer(made.question, n)


def _fill(made: Draft, where: Side, target: list[int]) -> None:
    """Add objects up to the density: three in eight are further lures, the rest anything that is no target."""
    draws, plain = made.draws, strangers(made.question, targets=False)
    anything, fits = strangers(made.question, targets=True), set(target)
    while made.left:
        if draws.random() < 0.375:
            roomy = [region for region in where.confusers if made.free(region)]
            if made.scatter(1, draws.pick(roomy) if roomy else where.outside, target, "lure"):
                continue
        cell = draws.cell(made.free(made.board.full))
        kind = draws.pick(plain if where.valid >> cell & 1 else anything)
        made.put(cell, kind, "lure" if kind in fits else "distractor")


def _comparison(made: Draft) -> Answer | None:
    """Fill a comparison; None when the drawn numbers do not fit the regions."""
    draws, where = made.draws, stand(made)
    relational = made.bucket.depth > 1
    plan = draws.pick(_plans(made.left, draws.random() < 0.5, relational))
    targets = [kinds(clause) for clause in made.question.clauses]
    for n, spot, target in zip(plan[:2], where, targets, strict=True):
        if not made.scatter(n, spot.valid, target, "target"):
            return None
    for n, spot, target in zip(plan[2:], where, targets, strict=True):
        for i in range(n):
            region = made.free(spot.confusers[i % len(spot.confusers)]) or spot.outside
            if not made.scatter(1, region, target, "lure"):
                return None
    made.scatter(made.left, made.board.full, strangers(made.question, targets=False), "distractor")
    return answer(made.question, *plan[:2])


@lru_cache(maxsize=256)
def _plans(room: int, yes: bool, relational: bool) -> tuple[tuple[int, int, int, int], ...]:
    """Return numbers of targets and lures on both sides that give this answer and change it without directions.

    Scenes with a target on both sides are preferred; a full board at low density has none with the answer yes.
    """
    most = range(room + 1)
    plans = [
        (t1, t2, l1, l2)
        for t1 in most
        for t2 in range(room - t1 + 1)
        if (t1 > t2) == yes
        for l1 in (range(room - t1 - t2 + 1) if relational else (0,))
        for l2 in (range(room - t1 - t2 - l1 + 1) if relational else (0,))
        if not relational or (t1 + l1 > t2 + l2) != yes
    ]
    both = [plan for plan in plans if plan[0] and plan[1]]
    return tuple(both or plans)
