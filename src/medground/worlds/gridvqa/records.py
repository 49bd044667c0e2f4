"""Scenes as records: the neutral layout (everything, derived facts included) and the published two-file layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from medground.errors import DataError
from medground.worlds.gridvqa.causes import minimal_causes, responsibility
from medground.worlds.gridvqa.checker import Cell, Truth, check
from medground.worlds.gridvqa.drawing import CELL, class_of
from medground.worlds.gridvqa.language import Kind, parse
from medground.worlds.gridvqa.masks import position_mask, text_mask
from medground.worlds.gridvqa.world import Answer, Scene, Thing, density_key

Offsets = Callable[[str], Sequence[tuple[int, int]]]
"""Gives the character span of every sub-token of a text, such as a RoBERTa tokenizer's offset mapping."""

HEADER = {"count": 2, "exists": 3, "compare": 3}
_FORMS = {"count": 0, "compare": 0, "exists": 1}
_TEXT = str.maketrans("", "", "?")


def neutral(scene: Scene) -> dict[str, Any]:
    """Return a scene with everything that can be derived from it, cells as ``[x, y]``."""
    truth = check(scene.things, scene.question, scene.grid)
    bucket, text = scene.bucket, scene.question.text
    return {
        "id": scene.scene_id,
        "variant": scene.variant,
        "grid": scene.grid,
        "density": scene.density,
        "depth": bucket.depth,
        "qtype": bucket.type,
        "form": bucket.form,
        "question": text,
        "words": text.split(),
        "objects": [{"x": t.x, "y": t.y, "color": t.colour, "shape": t.shape, "role": t.role} for t in scene.things],
        "answer": scene.answer,
        "counts": list(truth.counts),
        "clauses": _clauses(scene, truth),
        "bag_of_words": {"counts": list(truth.bag_of_words[0]), "answer": truth.bag_of_words[1]},
        "drop_one": [
            {
                "clause": d.clause,
                "relation": d.relation,
                "count": d.count,
                "answer": d.answer,
                "confuser_region": listed(d.region),
                "confuser_cells": listed(d.confusers),
                "status": d.status,
            }
            for d in truth.drop_one
        ],
        "drop_one_can_change": [d.can_change for d in truth.drop_one],
        "strict_confusers": truth.strict_confusers,
        **_causes(scene, truth),
        "vision_mask": listed(truth.causal),
        "shortcut_mask": listed(truth.shortcut),
        "position_mask_released": listed(position_mask(scene.things, scene.question, truth)),
        "text_mask_correct": text_mask(text).astype(int).tolist(),
        "text_mask_released": text_mask(text, "released").astype(int).tolist(),
    }


def _causes(scene: Scene, truth: Truth) -> dict[str, Any]:
    """Return minimal causes and responsibilities; None where descriptions of a question of one's own overlap."""
    try:
        causes = minimal_causes(scene.question, truth)
    except DataError:
        return {"minimal_causes": None, "responsibility": None}
    weights = responsibility(scene.question, truth)
    return {
        "minimal_causes": [{"take": cause.take, "of": listed(cause.cells)} for cause in causes],
        "responsibility": [[*cell, weight] for cell, weight in weights.items()],
    }


def from_neutral(record: Mapping[str, Any]) -> Scene:
    """Return the scene of a neutral record; derived fields are not read.

    Raises:
        DataError: a field is missing, or the question is not of the grammar.
    """
    try:
        things = tuple(
            Thing(o["x"], o["y"], o["color"], o["shape"], o.get("role", "distractor")) for o in record["objects"]
        )
        return Scene(
            record["id"],
            record["grid"],
            things,
            parse(record["question"]),
            record["answer"],
            record["variant"],
            record["density"],
        )
    except KeyError as missing:
        raise DataError("a scene's record lacks a field", where=record.get("id"), expected=missing) from missing


def released(
    scene: Scene, image_id: int, first: int, file_name: str, offsets: Offsets | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the grounding record and the question record of the published layout.

    Args:
        scene: any scene; boxes are whole cells of 64 pixels.
        image_id: number of the image, from 1.
        first: number of its first annotation.
        file_name: where the image lies.
        offsets: a tokenizer's offsets; without it sub-token spans are (-1, -1).
    """
    truth = check(scene.things, scene.question, scene.grid)
    at = {thing.cell: thing for thing in scene.things}
    cells = [a for c in truth.clauses for a in c.anchors] + [t for c in truth.clauses for t in sorted(c.targets)]
    ids = {cell: first + i for i, cell in enumerate(cells)}
    annotations = [_annotation(at[cell], ids[cell], image_id) for cell in cells]
    text = scene.question.text
    words = text.translate(_TEXT).split()
    spans = [
        {"span": [a, b], "token_span": _sub_tokens(text, words, a, b, offsets), "box_ids": [ids[c] for c in boxes]}
        for a, b, boxes in _spans(scene, truth)
        if boxes or scene.bucket.type == "A"
    ]
    grounding = {
        "image": {"id": image_id, "file_name": file_name},
        "annotations": annotations,
        "sentence": {"text": text, "words": words, "spans": spans},
    }
    return grounding, {"image_id": image_id, "question": text, "answer": scene.answer}


def folder(scene: Scene, split: str) -> str:
    """Return the published folder of a scene's bucket, below ``images``."""
    bucket = scene.bucket
    keys = f"depth{bucket.depth}/{bucket.type}/form{_FORMS[bucket.form]}"
    return f"{split}/{keys}/g{scene.grid}_{density_key(scene.density)}"


def listed(cells: Iterable[Cell]) -> list[list[int]]:
    """Return cells as sorted lists, for JSON."""
    return sorted(list(cell) for cell in cells)


def _clauses(scene: Scene, truth: Truth) -> list[dict[str, Any]]:
    return [
        {
            "target": _kind(clause.target),
            "relations": [
                {"direction": r.direction, "anchor": _kind(r.anchor), "cell": list(cell)}
                for r, cell in zip(clause.relations, known.anchors, strict=True)
            ],
            "region": listed(known.region),
            "target_cells": listed(known.targets),
            "matching_cells": listed(known.matching),
        }
        for clause, known in zip(scene.question.clauses, truth.clauses, strict=True)
    ]


def _kind(kind: Kind) -> dict[str, str | None]:
    return {"color": kind.colour, "shape": kind.shape}


def _annotation(thing: Thing, number: int, image_id: int) -> dict[str, Any]:
    return {
        "id": number,
        "image_id": image_id,
        "bbox": [thing.x * CELL, thing.y * CELL, CELL, CELL],
        "category_id": class_of(thing.colour, thing.shape) + 1,
        "category_name": f"{thing.colour} {thing.shape}",
        "color": thing.colour,
        "shape": thing.shape,
    }


def _spans(scene: Scene, truth: Truth) -> list[tuple[int, int, list[Cell]]]:
    """Return (first word, last word, cells): the core phrase of a clause with its targets, then its anchors."""
    question, spans = scene.question, []
    start = HEADER[question.form]
    for clause, known in zip(question.clauses, truth.clauses, strict=True):
        at = start + len(clause.target.phrase().split())
        if clause.relations and question.form != "compare":
            at += 2 if question.form == "exists" or len(clause.relations) > 2 else 1
        anchors: list[tuple[int, int, list[Cell]]] = []
        for i, (relation, cell) in enumerate(zip(clause.relations, known.anchors, strict=True)):
            at += i > 0 and i == len(clause.relations) - 1
            at += len(relation.direction.split())
            length = len(relation.anchor.phrase().split())
            anchors.append((at, at + length - 1, [cell]))
            at += length
        spans += [(start, at - 1, sorted(known.targets)), *anchors]
        start = at + 1
    return spans


def _sub_tokens(text: str, words: Sequence[str], first: int, last: int, offsets: Offsets | None) -> tuple[int, int]:
    if offsets is None:
        return -1, -1
    starts, at = [], 0
    for word in words:
        at = text.index(word, at)
        starts.append(at)
        at += len(word)
    low, high = starts[first], starts[last] + len(words[last].rstrip(","))
    inside = [i for i, (a, b) in enumerate(offsets(text)) if a < high and b > low and b > a]
    return inside[0], inside[-1]


def answer_of(value: Any) -> Answer:
    """Return an answer as scenes hold it: an integer, or ``yes`` / ``no``.

    Raises:
        DataError: the value is no answer.
    """
    text = str(value).strip().lower()
    if text in ("yes", "no"):
        return text
    if text.isdigit():
        return int(text)
    raise DataError("not an answer", expected='a count, "yes" or "no"', got=repr(value))
