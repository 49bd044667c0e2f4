"""The user's own table: CSV or JSON lines with id, image, caption, source, licence, split, paper."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist.sources.base import Captioned, text_lines
from medground.errors import DataError

_FIELD = 2_000_000


def read(path: Path) -> Iterator[Captioned]:
    """Yield the rows of a ``.csv`` or ``.jsonl`` file; only ``id`` and ``caption`` must be there.

    Raises:
        DataError: a row lacks its id or caption, or the file is neither.
    """
    rows = _json_rows(path) if path.suffix in (".jsonl", ".json", ".ndjson") else _csv_rows(path)
    for where, row in rows:
        key, caption = str(row.get("id") or "").strip(), row.get("caption")
        if not key or not isinstance(caption, str):
            raise DataError("a row needs an id and a caption", where=where, got=sorted(map(str, row)))
        text = {k: str(row.get(k) or "") for k in ("image", "source", "licence", "split", "paper")}
        yield Captioned(
            key,
            caption.strip(),
            text["image"] or None,
            text["paper"] or text["image"] or key,
            text["source"] or path.stem,
            text["licence"],
            text["split"],
        )


def _json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in text_lines(path):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError("a line is no JSON", where=where, got=str(error)) from None
            if not isinstance(row, dict):
                raise DataError("a line is no JSON object", where=where, got=type(row).__name__)
            yield where, row


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    csv.field_size_limit(_FIELD)
    lines = (line + "\n" for _, line in text_lines(path))
    try:
        reader = csv.DictReader(lines, strict=True)
        for row in reader:
            if None in row or None in row.values():
                raise DataError("a row has the wrong number of fields", where=f"{path}, line {reader.line_num}")
            yield f"{path}, line {reader.line_num}", row
    except csv.Error as error:
        raise DataError("a CSV file is malformed", where=path, got=str(error)) from None
