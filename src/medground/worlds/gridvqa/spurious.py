"""D_spur: whatever fits a target lies inside its region, so counting the target's words always answers."""

from __future__ import annotations

from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.draft import (
    Draft,
    answer,
    attributes_only,
    draft,
    kinds,
    sides,
    strangers,
    targets_to_exist,
)
from medground.worlds.gridvqa.questions import ask
from medground.worlds.gridvqa.world import Answer, Bucket, Scene


def spurious_scene(draws: Draws, bucket: Bucket, grid: int, scene_id: str, *, distinct: bool = True) -> Scene:
    """Draw a scene of D_spur; ``distinct`` as in :func:`~medground.worlds.gridvqa.questions.ask`."""
    question = ask(draws, bucket, distinct=distinct)
    while True:
        made = draft(draws, bucket, question, grid)
        reply = _fill(made)
        if reply is not None:
            return made.scene(scene_id, "spurious", reply)


def _fill(made: Draft) -> Answer | None:
    if made.bucket.type == "A":
        return attributes_only(made)
    draws, question = made.draws, made.question
    cells = draws.several(range(made.board.cells), len(question.anchors))
    where = sides(made.board, question, cells)
    if not all(spot.valid for spot in where):
        return None
    made.anchor(cells)
    room, plain = made.left, strangers(question, targets=False)
    rival = 0
    if question.form == "compare":
        counts = _both(draws, room)
    elif question.form == "exists":
        counts = [targets_to_exist(draws, min(room, where[0].valid.bit_count()))]
    else:
        n, rival = _count(draws, room, where[0].valid.bit_count())
        counts = [n]
    for n, spot, clause in zip(counts, where, question.clauses, strict=True):
        if not made.scatter(n, spot.valid, kinds(clause), "target"):
            return None
    made.scatter(rival, made.board.full, [draws.pick(plain)], "distractor")
    made.scatter(made.left, made.board.full, plain, "distractor")
    return answer(question, *counts)


def _count(draws: Draws, room: int, most: int) -> tuple[int, int]:
    """Draw a count and the size of a rival class: few targets beside one more of something else, or many."""
    few = room // 2
    if draws.random() < 0.5 or most <= few:
        n = 1 + draws.below(min(few, most))
        return n, min(n + 1, room - n)
    return few + 1 + draws.below(min(room, most) - few), 0


def _both(draws: Draws, room: int) -> list[int]:
    """Draw the two counts of a comparison, the answer being yes in half of the scenes."""
    low = 1 if room > 2 else 0
    yes = draws.random() < 0.5
    while True:
        counts = [low + draws.below(room - low), low + draws.below(room - low)]
        if sum(counts) <= room and (counts[0] > counts[1]) == yes:
            return counts
