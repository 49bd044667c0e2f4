"""A table with a picture a row: columns of labels, or one finding a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medground.errors import ConfigError, DataError
from medground.importing.lines import Line, Wishes, finished, finite, located, picture_size
from medground.tables.reader import Table, read_table

FACTS = ("image", "case_id", "patient_id", "view")
TRAITS = ("sex", "age", "device", "site")
TRAIT = "trait:"
"""What a column is mapped to by which results are split, beside those four: ``--map "Ward=trait:ward"``."""
LONG = ("finding", "label")
CORNERS, SIDES, FRAME = ("x0", "y0", "x1", "y1"), ("x", "y", "width", "height"), ("frame_width", "frame_height")
KNOWN = (*FACTS, *TRAITS, *LONG, *CORNERS, *SIDES, *FRAME)
TRUTHS: Mapping[str, bool | None] = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "present"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "absent"), False),
    **dict.fromkeys(("", "-1", "-1.0", "nan", "na", "n/a", "unknown", "uncertain"), None),
}
"""How labels are commonly written; -1 is what CheXpert's kin write for uncertain."""


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a table.

    ``names`` says which column is what: a name of a manifest (``image``, ``patient_id``, ``finding``, ``x0``, ...), or
    else a finding whose labels the column holds; ``sex``, ``age``, ``device``, ``site`` and ``trait:NAME`` are what
    results are split by. Columns that are neither named so nor mapped are left out.

    Raises:
        ConfigError: a mapped column is not in the table, or no column is the picture.
        DataError: rows of one picture differ, or a value cannot be read.
    """
    table = read_table(source)
    roles = _roles(table, wishes)
    folder = wishes.images or source.parent
    lines: dict[str, Line] = {}
    for number, row in enumerate(table.frame.iter_rows(named=True)):
        where = table.where(number)
        values = {role: row[column] for role, column in roles.items()}
        _add(lines, values, folder, where)
    classes = list(dict.fromkeys(name for line in lines.values() for name in line.labels))
    yield from finished(lines.values(), classes, wishes)


def _roles(table: Table, wishes: Wishes) -> dict[str, str]:
    """Return role or finding -> column of the table."""
    columns = table.frame.columns
    if absent := [column for column in wishes.names if column not in columns]:
        raise ConfigError("the table has no such column", where="--map", expected=", ".join(columns), got=absent[0])
    roles = {column: column for column in columns if column in KNOWN and column not in wishes.names}
    for column, role in wishes.names.items():
        if role in roles:
            raise ConfigError("two columns are the same", where="--map", got=f"{roles[role]} and {column}: {role}")
        roles[role] = column
    if "image" not in roles:
        raise ConfigError("no column is the picture", where="--map", expected="COLUMN=image", got=", ".join(columns))
    if not {role for role in roles if not role.startswith(TRAIT)} - {*FACTS, *TRAITS, *FRAME}:
        raise ConfigError(
            "no column holds labels",
            where="--map",
            expected="COLUMN=finding, or a finding for each column of labels",
            got=", ".join(columns),
            fix=_suggested([column for column in columns if column not in roles.values()]),
        )
    return roles


def _suggested(left: Sequence[str]) -> str | None:
    return f"where {left[0]!r} holds labels: --map {left[0]}={left[0]}" if left else None


def _add(lines: dict[str, Line], values: Mapping[str, Any], folder: Path, where: str) -> None:
    name = values["image"]
    if name is None:
        raise DataError("a row has no picture", where=where)
    facts: dict[str, str | None] = {fact: values.get(fact) for fact in FACTS[1:]}
    traits = {r.removeprefix(TRAIT): v for r, v in values.items() if v and (r in TRAITS or r.startswith(TRAIT))}
    if name not in lines:
        picture = located(name, folder, where)
        lines[name] = Line(picture, None, facts["case_id"], facts["patient_id"], facts["view"], traits)
    line = lines[name]
    if traits != line.traits:
        raise DataError("rows of one picture differ in a trait", where=where, expected=line.traits, got=traits)
    if differing := [fact for fact, value in facts.items() if value != getattr(line, fact)]:
        raise DataError(f"rows of one picture differ in {differing[0]}", where=where, got=name)
    for role, value in values.items():
        if role not in KNOWN and not role.startswith(TRAIT):
            _label(line, role, value, where)
    if values.get("finding"):
        _finding(line, values, where)


def _label(line: Line, finding: str, value: str | None, where: str) -> None:
    key = (value or "").casefold()
    if key not in TRUTHS:
        raise DataError("a label cannot be read", where=f"{where}, {finding}", expected="1, 0 or nothing", got=value)
    before, now = line.labels.get(finding), TRUTHS[key]
    if before is not None and now is not None and before != now:
        raise DataError("labels of one picture contradict each other", where=f"{where}, {finding}")
    line.labels[finding] = before if now is None else now


def _finding(line: Line, values: Mapping[str, Any], where: str) -> None:
    finding = values["finding"]
    _label(line, finding, values.get("label", "1"), where)
    for kind, names in (("boxes", CORNERS), ("boxes_xywh", SIDES)):
        given = [values.get(name) for name in names]
        if all(value is None for value in given):
            continue
        if line.labels[finding] is False:
            raise DataError("an absent finding has a region", where=where, got=finding)
        line.frame = line.frame or _frame(line, values, where)
        line.mark(finding, "boxes" if kind == "boxes" else "boxes_xywh", finite(given, where))


def _frame(line: Line, values: Mapping[str, Any], where: str) -> tuple[int, int]:
    given = [values.get(name) for name in FRAME]
    if None in given:
        return picture_size(line.image)
    width, height = finite(given, where)
    return int(width), int(height)
