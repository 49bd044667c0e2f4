"""True explanations as records, beside the scenes of a data set."""

from __future__ import annotations

from typing import Any

from medground.worlds.gridvqa.shapley import Players, true_values
from medground.worlds.gridvqa.world import Scene

DIGITS = 12


def true_record(scene: Scene, players: Players) -> dict[str, Any]:
    """Return the exact explanation of a scene's answer, by the executor and by the counter.

    Args:
        scene: any scene.
        players: beside the objects ``words``, ``phrases`` or, for the whole question, ``objects`` alone. Comparisons
            of depth 3 have too many words to be exact: they are given by phrases, and say so.

    Returns:
        ``id``, ``players``, ``words`` (positions, one list a word player), and for ``executor`` and ``counter`` their
        own answer with ``objects`` (column, row, Shapley value), ``spoken`` (a value a word player) and ``across``
        (interactions, one row an object, one column a word player).
    """
    chosen: Players = (
        "phrases" if players == "words" and scene.bucket.type == "CMP" and scene.bucket.depth > 2 else players
    )
    record: dict[str, Any] = {"id": scene.scene_id, "players": chosen}
    for name, relations in (("executor", True), ("counter", False)):
        known = true_values(scene.things, scene.question.text, scene.grid, relations=relations, players=chosen)
        record["words"] = [list(group) for group in known.words]
        record[name] = {
            "answer": known.answer,
            "objects": [[*t.cell, _short(value)] for t, value in zip(known.things, known.objects, strict=True)],
            "spoken": [_short(value) for value in known.spoken],
            "across": [[_short(value) for value in row] for row in known.across],
        }
    return record


def _short(value: float) -> float:
    """Return a value without what is rounding alone; -0 is 0."""
    return round(float(value), DIGITS) + 0.0
