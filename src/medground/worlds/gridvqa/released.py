"""D_pure as the published generator makes it: directions may repeat and confusers are not guaranteed.

About 27 % of its relations can be dropped without changing the count. Kept for comparison with published numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from medground.worlds.gridvqa.language import Clause
from medground.worlds.gridvqa.questions import ask
from medground.worlds.gridvqa.world import Answer, Bucket, Scene

_OPPOSITE = {"left of": "right of", "above": "below"}


def released_scene(draws: Draws, bucket: Bucket, grid: int, scene_id: str) -> Scene:
    """Draw a scene the published way."""
    while True:
        question = ask(draws, bucket, distinct=False)
        made = draft(draws, bucket, question, grid)
        reply = attributes_only(made) if bucket.type == "A" else _relational(made)
        if reply is not None:
            return made.scene(scene_id, "pure", reply)


def _relational(made: Draft) -> Answer | None:
    cells = _anchors(made)
    if cells is None:
        return None
    where = sides(made.board, made.question, cells)
    if not all(spot.valid for spot in where):
        return None
    made.anchor(cells)
    if made.question.form == "compare":
        _compared(made, where)
        made.scatter(made.left, made.board.full, strangers(made.question, targets=True), "distractor")
    else:
        _asked(made, where[0])
    return _settle(made, where)


def _anchors(made: Draft) -> list[int] | None:
    """Place anchors one by one, room for targets kept between opposite directions; None when there is none."""
    cells: list[int] = []
    for clause in made.question.clauses:
        low = dict.fromkeys(_OPPOSITE, made.board.grid)
        directions = [relation.direction for relation in clause.relations]
        placed: dict[int, int] = {}
        for i in sorted(range(len(directions)), key=lambda k: directions[k] not in _OPPOSITE):
            spots = [
                cell
                for cell in range(made.board.cells)
                if cell not in cells and cell not in placed.values() and _fits(made, directions, i, cell, low)
            ]
            if not spots:
                return None
            placed[i] = made.draws.pick(spots)
            if directions[i] in _OPPOSITE:
                low[directions[i]] = min(low[directions[i]], _along(made, directions[i], placed[i]))
        cells += [placed[i] for i in range(len(directions))]
    return cells


def _fits(made: Draft, directions: Sequence[str], i: int, cell: int, low: dict[str, int]) -> bool:
    direction = directions[i]
    if not made.board.plane(direction, cell):
        return False
    for near, far in _OPPOSITE.items():
        if near in directions and far in directions:
            if direction == near:
                return _along(made, direction, cell) >= 2
            if direction == far:
                return _along(made, direction, cell) <= low[near] - 2
    return True


def _along(made: Draft, direction: str, cell: int) -> int:
    row, column = divmod(cell, made.board.grid)
    return column if direction in ("left of", "right of") else row


def _asked(made: Draft, where: Side) -> None:
    """Place targets, one lure in each confuser region that has room, and fillers that are often lures."""
    draws, target = made.draws, kinds(made.question.clauses[0])
    most = min(made.left, where.valid.bit_count())
    n = targets_to_exist(draws, most) if made.question.form == "exists" else 1 + draws.below(most)
    made.scatter(n, where.valid, target, "target")
    deep = where.confusers if len(where.confusers) > 1 else ()
    for region in deep:
        if made.left:
            made.scatter(1, region, target, "lure")
    anything = strangers(made.question, targets=True)
    while made.left:
        outside = made.free(where.outside)
        cell = draws.cell(outside if outside and draws.random() < 0.5 else made.free(made.board.full))
        if outside >> cell & 1 and draws.random() < 0.75:
            roomy = [region for region in deep if made.free(region)]
            made.scatter(1, draws.pick(roomy) if roomy else 1 << cell, target, "lure")
        else:
            made.put(cell, draws.pick(anything), "distractor")


def _compared(made: Draft, where: Sequence[Side]) -> None:
    """Place the targets of both sides, each on a drawn share of its region, at most six tenths of it."""
    for spot, clause in zip(where, made.question.clauses, strict=True):
        room = min(made.left - 1, made.free(spot.valid).bit_count())
        most = max(1, int(0.6 * room)) if room > 0 else 0
        if most:
            made.scatter(1 + made.draws.below(most), spot.valid, kinds(clause), "target")


def _settle(made: Draft, where: Sequence[Side]) -> Answer:
    """Give every object that fits a target its role and count; existence questions lose accidental targets."""
    counts = []
    for spot, clause in zip(where, made.question.clauses, strict=True):
        target = set(kinds(clause))
        for cell in [c for c, kind in made.classes.items() if kind in target and made.roles[c] != "anchor"]:
            inside = bool(spot.valid >> cell & 1)
            if inside and made.roles[cell] != "target" and made.question.form == "exists":
                _mend(made, cell, clause)
            else:
                made.roles[cell] = "target" if inside else "lure"
        counts.append(sum(1 for c, kind in made.classes.items() if kind in target and made.roles[c] == "target"))
    return answer(made.question, *counts)


def _mend(made: Draft, cell: int, clause: Clause) -> None:
    """Recolour an accidental target, or remove it where only one attribute is asked for."""
    if clause.target.colour and clause.target.shape:
        made.classes[cell] = made.draws.pick(strangers(made.question, targets=False))
    else:
        del made.classes[cell], made.roles[cell]
