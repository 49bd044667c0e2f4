"""Reads data sets in the published layout: JSON lines, pictures and ``.npz`` files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from medground.errors import DataError
from medground.worlds.gridvqa.checker import Truth, check
from medground.worlds.gridvqa.drawing import CELL, EMPTY, class_of
from medground.worlds.gridvqa.language import COLOURS, SHAPES, parse
from medground.worlds.gridvqa.records import answer_of
from medground.worlds.gridvqa.sight import classes
from medground.worlds.gridvqa.world import Cell, Role, Scene, Thing

_PLACE = re.compile(r"g(\d+)_d(\d+)")


def read_released(root: str | Path, split: str = "val", *, variant: str = "pure", whole: bool = False) -> list[Scene]:
    """Read a data set in the published layout.

    The records name anchors and true targets only; distractors come from the picture, or from the ``.npz`` file
    where there is no picture. A scene with neither holds the annotated objects alone.

    Args:
        root: the folder with ``grounding_<split>.jsonl`` and ``qa_<split>.jsonl``.
        split: name of the split.
        variant: what to call the scenes.
        whole: refuse a scene that has neither picture nor ``.npz`` file: its distractors are unknown, and a model that
            is shown it without them is asked something easier.

    Raises:
        DataError: a file is missing, a record is malformed, or an answer is not that of its objects.
    """
    folder = Path(root)
    replies = {row["image_id"]: row for row in _lines(folder / f"qa_{split}.jsonl", ("image_id", "question", "answer"))}
    scenes = []
    for row in _lines(folder / f"grounding_{split}.jsonl", ("image", "annotations", "sentence")):
        number, name = row["image"]["id"], row["image"]["file_name"]
        if number not in replies:
            raise DataError("an image has no question", where=f"{folder}: image {number}", expected="a line in qa")
        scenes.append(_scene(folder, row, replies[number], f"{variant}-{number:06d}", name, variant, whole=whole))
    return scenes


def read_npz(path: str | Path, *, variant: str = "pure") -> Scene:
    """Read one ``.npz`` file of the published tree; objects come from its picture.

    Raises:
        DataError: the file lacks a field, needs unpickling, or its answer is not that of its objects.
    """
    file = Path(path)
    try:
        with np.load(file, allow_pickle=False) as held:
            picture, question, reply = held["image"], str(held["question"]), held["answer"]
    except (KeyError, ValueError, OSError) as error:
        raise DataError(
            "not a published .npz file", where=file, expected="plain arrays: image, question, answer", got=error
        ) from error
    grid, density = _place(str(file))
    things = _seen(picture, grid)
    return _verified(Scene(file.stem, grid, tuple(things), parse(question), answer_of(reply), variant, density), file)


def _lines(path: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    if not path.is_file():
        raise DataError("a file of the data set is missing", where=path)
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError("not a line of JSON", where=f"{path}:{number}", got=error) from error
        lacking = [key for key in keys if key not in row]
        if lacking:
            raise DataError("a record lacks fields", where=f"{path}:{number}", expected=lacking)
        rows.append(row)
    return rows


def _scene(
    folder: Path,
    row: Mapping[str, Any],
    reply: Mapping[str, Any],
    scene_id: str,
    name: str,
    variant: str,
    *,
    whole: bool,
) -> Scene:
    where = f"{folder / name}"
    grid, density = _place(name)
    things = [_annotated(a, grid, where) for a in row["annotations"]]
    picture = folder / name
    arrays = folder / Path(name).relative_to("images").with_suffix(".npz") if name.startswith("images/") else picture
    if picture.is_file():
        with Image.open(picture) as image:
            things = _merged(things, _seen(np.asarray(image.convert("RGB")), grid), where)
    elif arrays.is_file() and arrays.suffix == ".npz":
        things = _merged(things, list(read_npz(arrays).things), where)
    elif whole:
        raise DataError(
            "a scene has no picture, so its distractors are unknown",
            where=where,
            expected="the picture, or its .npz file",
            fix="fetch the pictures of the data set, or build it with images",
        )
    question = parse(row["sentence"]["text"])
    if reply["question"] != question.text:
        raise DataError("two files disagree on a question", where=where, expected=question.text, got=reply["question"])
    return _verified(
        Scene(scene_id, grid, tuple(things), question, answer_of(reply["answer"]), variant, density), where
    )


def _annotated(annotation: Mapping[str, Any], grid: int, where: str) -> Thing:
    x, y, width, height = annotation["bbox"]
    colour, shape = annotation["color"], annotation["shape"]
    if (width, height) != (CELL, CELL) or x % CELL or y % CELL or not 0 <= max(x, y) < grid * CELL:
        raise DataError(
            "a box is not a whole cell", where=where, expected=f"{CELL} pixels a side", got=annotation["bbox"]
        )
    if colour not in COLOURS or shape not in SHAPES or annotation["category_id"] != class_of(colour, shape) + 1:
        raise DataError("a category does not fit its colour and shape", where=where, got=dict(annotation))
    return Thing(x // CELL, y // CELL, colour, shape)


def _seen(picture: Any, grid: int) -> list[Thing]:
    """Return the objects of a picture with 8-bit values."""
    board = classes(np.asarray(picture)[None] / 255.0, grid)[0]
    return [
        Thing(x, y, COLOURS[board[y, x] // len(SHAPES)], SHAPES[board[y, x] % len(SHAPES)])
        for y in range(grid)
        for x in range(grid)
        if board[y, x] != EMPTY
    ]


def _merged(annotated: list[Thing], seen: list[Thing], where: str) -> list[Thing]:
    """Return annotated objects first, in their order, then the others that the picture shows."""
    named = {thing.cell: thing for thing in annotated}
    shown = {thing.cell: replace(thing, role="distractor") for thing in seen}
    wrong = [thing for cell, thing in named.items() if shown.get(cell) != thing]
    if wrong:
        raise DataError(
            "an annotation and its picture disagree", where=where, expected=wrong[0], got=shown.get(wrong[0].cell)
        )
    return annotated + [thing for cell, thing in shown.items() if cell not in named]


def _place(name: str) -> tuple[int, float]:
    match = _PLACE.search(name)
    if not match:
        raise DataError("a file name does not tell grid and density", expected="a folder such as g5_d07", got=name)
    digits = match[2]
    return int(match[1]), int(digits) / 10 ** (len(digits) - 1)


def _verified(scene: Scene, where: object) -> Scene:
    """Return the scene with the role of every object, once its answer is that of its objects."""
    truth = check(scene.things, scene.question, scene.grid)
    if truth.answer != scene.answer:
        raise DataError("an answer is not that of its objects", where=where, expected=truth.answer, got=scene.answer)
    anchors = {anchor for clause in truth.clauses for anchor in clause.anchors}
    return replace(scene, things=tuple(replace(t, role=_role(t, anchors, truth)) for t in scene.things))


def _role(thing: Thing, anchors: set[Cell], truth: Truth) -> Role:
    if thing.cell in anchors:
        return "anchor"
    if thing.cell in truth.shortcut:
        return "target" if thing.cell in truth.causal else "lure"
    return "distractor"
