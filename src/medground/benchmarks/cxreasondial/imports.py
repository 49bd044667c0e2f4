"""Dialogues and evidence that others released: a map from their fields to ours, and CheXStruct's tables.

The released schema of the dialogues is not public, so the map is the user's: our field, a dot, and where it stands in
their record, from the record or from its turn.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medground.benchmarks.cxreasondial.build import MeasuredCase
from medground.benchmarks.cxreasondial.contract import Dialogue, parse
from medground.errors import DataError
from medground.tools import RULES, TASKS, Measurement
from medground.tools.rules import NONE

#: Our field -> theirs, where nothing else is said: our own names.
FIELDS: Mapping[str, str] = {
    "id": "id",
    "image.path": "image.path",
    "image.dicom_id": "image.dicom_id",
    "image.view": "image.view",
    "turns": "turns",
    "turn.query": "query",
    "turn.reference_reply": "reference_reply",
    "turn.requests": "requests",
}
#: Task -> columns of CheXStruct's table that hold its value.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "inspiration": ("rib_position",),
    "rotation": ("ratio",),
    "projection": ("ratio_right", "ratio_left"),
    "cardiomegaly": ("ctr",),
    "mediastinal_widening": ("mcr",),
    "carina_angle": ("angle",),
    "trachea_deviation": ("direction",),
    "aortic_knob_enlargement": ("ratio",),
    "ascending_aorta_enlargement": ("ratio",),
    "descending_aorta_enlargement": ("ratio",),
    "descending_aorta_tortuous": ("curvature",),
}


#: Columns that are read where a table has them: the two distances behind a ratio.
_BESIDE: Mapping[str, tuple[str, ...]] = {"rotation": ("distance_right", "distance_left")}


def import_dialogues(path: Path, fields: Mapping[str, str] | None = None) -> list[Dialogue]:
    """Read dialogues of another layout.

    Args:
        path: JSONL, or a JSON list.
        fields: our field -> theirs, with dots for nesting; what is not named keeps our name.

    Raises:
        DataError: a field of the map is not ours, or a record is no dialogue; the line stands in the message.
    """
    names = {**FIELDS, **(fields or {})}
    if unknown := set(names) - set(FIELDS):
        raise DataError("a field of the map is not ours", expected=", ".join(FIELDS), got=", ".join(sorted(unknown)))
    dialogues: dict[str, Dialogue] = {}
    for where, record in _records(path):
        dialogue = parse(json.dumps(_converted(record, names, where)), where)
        if dialogue.id in dialogues:
            raise DataError(f"dialogue {dialogue.id!r} stands twice", where=where)
        dialogues[dialogue.id] = dialogue
    if not dialogues:
        raise DataError("the file holds no dialogue", where=str(path), expected="JSONL, or a JSON list")
    return list(dialogues.values())


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("the dialogues cannot be read", where=str(path), got=str(error)) from error
    if text.lstrip().startswith("["):
        try:
            yield from ((f"{path}, record {i}", record) for i, record in enumerate(json.loads(text), 1))
        except ValueError as error:
            raise DataError("this is not JSON", where=str(path), got=str(error)) from error
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except ValueError as error:
                raise DataError("this is not JSON", where=f"{path}, line {number}", got=str(error)) from error


def _converted(record: Any, names: Mapping[str, str], where: str) -> dict[str, Any]:
    turns = _at(record, names["turns"], where)
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise DataError("the turns are no list", where=where, expected=names["turns"], got=repr(turns)[:60])
    image = {
        field.partition(".")[2]: _at(record, names[field], where, needed=field == "image.path")
        for field in names
        if field.startswith("image.")
    }
    own = {key: _at(record, key, where, needed=False) for key in ("source", "license_note", "patient_id")}
    return {
        "id": str(_at(record, names["id"], where)),
        "image": {key: value for key, value in image.items() if value is not None},
        "turns": [_turn(turn, i, names, where) for i, turn in enumerate(turns)],
        **{key: value for key, value in own.items() if value is not None},
    }


def _turn(turn: Any, index: int, names: Mapping[str, str], where: str) -> dict[str, Any]:
    place = f"{where}: turn {index}"
    return {
        "index": index,
        "query": _at(turn, names["turn.query"], place),
        "reference_reply": _at(turn, names["turn.reference_reply"], place, needed=False),
        "requests": _at(turn, names["turn.requests"], place),
    }


def _at(record: Any, dotted: str, where: str, *, needed: bool = True) -> Any:
    value = record
    for part in dotted.split("."):
        if not isinstance(value, Mapping) or part not in value:
            if needed:
                raise DataError("a field is missing", where=where, expected=dotted, fix="name theirs in the field map")
            return None
        value = value[part]
    return value


def read_chexstruct(path: Path, task: str) -> dict[str, tuple[str | None, Measurement]]:
    """Read one of CheXStruct's task tables: image id -> view and measurement.

    Labels are made again from the values by the task's rule; a row without a value is dropped with that reason.

    Raises:
        DataError: the task has no such table, or a column is missing or holds no number.
    """
    if task not in COLUMNS:
        raise DataError(f"there is no table of the task {task!r}", expected=", ".join(t for t in TASKS if t in COLUMNS))
    out: dict[str, tuple[str | None, Measurement]] = {}
    with path.open(newline="", encoding="utf-8-sig") as file:
        table = csv.DictReader(file)
        if missing := {"image_id", *COLUMNS[task]} - set(table.fieldnames or ()):
            raise DataError("columns are missing", where=str(path), expected=", ".join(sorted(missing)))
        for row in table:
            where = f"{path}, line {table.line_num}"
            if row["image_id"] in out:
                raise DataError("an image stands twice", where=where, got=row["image_id"])
            view = (row.get("viewposition") or "").strip().upper()
            known = view if view in ("PA", "AP") else None
            measured = _measurement(task, [row[c] for c in COLUMNS[task]], known, where)
            beside = {c: float(row[c]) for c in _BESIDE.get(task, ()) if _is_number(row.get(c))}
            out[row["image_id"]] = (known, replace(measured, parts=beside) if beside else measured)
    return out


def _is_number(text: str | None) -> bool:
    try:
        return math.isfinite(float(text or ""))
    except ValueError:
        return False


def measured_cases(folder: Path) -> Iterator[MeasuredCase]:
    """Read CheXStruct's tables, ``<task>.csv`` each, as cases; pictures are ``images/<image id>.png``.

    Inclusion has labels and no margins in its table, so nothing is asked about it.

    Raises:
        DataError: there is no such table, or one cannot be read; the line stands in the message.
    """
    tables = {task: folder / f"{task}.csv" for task in COLUMNS if (folder / f"{task}.csv").is_file()}
    if not tables:
        expected = ", ".join(f"{task}.csv" for task in COLUMNS)
        raise DataError("the folder holds no table of a task", where=str(folder), expected=expected)
    views: dict[str, str | None] = {}
    cases: dict[str, dict[str, Measurement]] = {}
    for task, path in tables.items():
        for image, (view, measured) in read_chexstruct(path, task).items():
            if view is not None and views.setdefault(image, view) not in (None, view):
                raise DataError("an image has two views", where=f"{path}: {image}", got=f"{views[image]} and {view}")
            cases.setdefault(image, {})[task] = measured
    for image, measurements in cases.items():
        yield MeasuredCase(image, f"images/{image}.png", 0, 0, views.get(image), measurements)


def _measurement(task: str, texts: Sequence[str], view: str | None, where: str) -> Measurement:
    rule = RULES[task]
    if any(not text.strip() for text in texts):
        return Measurement(task, "dropped", "no_value")
    if task == "trachea_deviation":
        side = texts[0].strip().lower()
        return Measurement(task, "ok", None, side, None, rule.labelled(int(side != "flat")))
    try:
        values = [float(text) for text in texts]
    except ValueError as error:
        raise DataError("a value is no number", where=where, got=repr(texts)) from error
    if task == "projection":
        from medground.tools.projection import Projection

        rounded = [rule.rounded(value) for value in values]
        decision = Projection().decide(rounded)
        if decision is None:
            return Measurement(task, "dropped", "mixed_sides")
        return Measurement(task, "ok", None, values, rounded, decision)
    if task == "ascending_aorta_enlargement":
        from medground.tools.ascending_aorta_enlargement import AscendingAortaEnlargement

        decision = AscendingAortaEnlargement().decide(values[0])
        return Measurement(task, "ok" if decision is not NONE else "unlabelled", None, values[0], None, decision)
    rounded_value = rule.rounded(values[0])
    return Measurement(task, "ok", None, values[0], rounded_value, rule.decide(rounded_value, view))
