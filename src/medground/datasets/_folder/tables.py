"""Publishers' tables as they are: stripped names and values, broken headers, plain or compressed.

Every value is read as text and turned into a number where it is used, so that no reader has to guess a type.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from medground.errors import DatasetError, did_you_mean

COMPRESSED = ("", ".gz", ".zip")
"""A table may lie as it is, or packed under its own name, as mirrors and single-file downloads leave it."""


def find_file(folders: Sequence[Path], names: Sequence[str]) -> Path | None:
    """Return the first existing file: by name first, then by folder, plain before compressed."""
    for name in names:
        for folder in folders:
            for ending in COMPRESSED:
                if (path := folder / (name + ending)).is_file():
                    return path
    return None


def read_bytes(path: Path) -> bytes:
    """Return the content of a plain, gzipped or zipped file.

    Raises:
        DatasetError: it cannot be read, or the archive does not hold exactly one file.
    """
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                members = [m for m in archive.namelist() if not m.startswith("__MACOSX")]
                if len(members) != 1:
                    raise DatasetError("an archive holds several files", where=path, expected="one table")
                return archive.read(members[0])
        return path.read_bytes()
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError("a file cannot be read", where=path, got=str(error)) from error


def read_table(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> pl.DataFrame:
    """Return the named columns of a CSV file as stripped text; empty cells are null.

    Blanks around names and values, a byte-order mark, surplus trailing commas and blank lines do not matter, nor does
    the order of the columns or the case of their names.

    Args:
        path: the file, plain, ``.gz`` or ``.zip``.
        required: columns that must be there, as the result names them.
        optional: columns that are all null where the file lacks them.

    Raises:
        DatasetError: the file is empty, is no table, or lacks a required column.
    """
    frame = read_all(path)
    present = {name.casefold(): name for name in frame.columns}
    for name in required:
        if name.casefold() not in present:
            raise DatasetError(
                f"a table has no column {name!r}",
                where=path,
                expected=", ".join(required),
                got=", ".join(n for n in frame.columns if n) or "no columns",
                fix=did_you_mean(name, frame.columns),
            )
    chosen = [
        pl.col(present[name.casefold()]).alias(name)
        if name.casefold() in present
        else pl.lit(None, pl.String).alias(name)
        for name in (*required, *optional)
    ]
    return frame.select(chosen)


def read_all(path: Path) -> pl.DataFrame:
    """Return a whole CSV file as stripped text with stripped column names; see :func:`read_table`."""
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise DatasetError("a table is empty", where=path, expected="a header and rows")
    try:
        frame = pl.read_csv(content, infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True)
        # A quoted name with a comma in it (OriginalImage[Width,Height]) stands for as many fields as it has parts.
        _refuse_surplus(content, sum(1 + name.count(",") for name in frame.columns), path)
    except pl.exceptions.PolarsError as error:
        raise DatasetError("a table cannot be read as CSV", where=path, got=str(error).splitlines()[0]) from error
    names = [re.sub(r"_duplicated_\d+$", "", name).strip() for name in frame.columns]  # as polars marks repeats
    repeated = {name for name in names if name and names.count(name) > 1}
    if repeated:
        raise DatasetError("a table names a column twice", where=path, got=", ".join(sorted(repeated)))
    frame.columns = [name or f"unnamed_{i}" for i, name in enumerate(names)]
    stripped = pl.all().str.strip_chars()
    frame = frame.with_columns(pl.when(stripped != "").then(stripped))
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _refuse_surplus(content: bytes, columns: int, path: Path) -> None:
    """Refuse a line with more filled fields than the header: an unquoted comma has moved every field behind it."""
    try:
        pl.read_csv(content, infer_schema=False, encoding="utf8-lossy")
    except pl.exceptions.ComputeError:
        reader = csv.reader(io.StringIO(content.decode("utf-8", errors="replace")))
        for row in reader:
            if any(field.strip() for field in row[columns:]):
                raise DatasetError(
                    "a line of a table has more fields than its header",
                    where=f"{path}, line {reader.line_num}",
                    expected=f"{columns} fields; surplus ones are empty",
                    got=f"{len(row)} fields",
                    fix='quote fields that hold a comma: "A, B"',
                ) from None


def read_rows(path: Path) -> list[list[str]]:
    """Return the stripped fields of every line that is not blank, for files whose header does not fit their rows.

    Raises:
        DatasetError: the file cannot be read.
    """
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise DatasetError("a table cannot be read as CSV", where=path, got=str(error)) from error
    stripped = ([field.strip() for field in row] for row in rows)
    return [row for row in stripped if any(row)]


def read_json(path: Path, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    """Return the content of a JSON file.

    Raises:
        DatasetError: it is not JSON, or its outermost value is not of the expected kind.
    """
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DatasetError("a file is not JSON", where=path, got=str(error)) from error
    if not isinstance(content, kind):
        expected = "an object" if kind is dict else "a list"
        raise DatasetError("a JSON file has another shape", where=path, expected=expected, got=type(content).__name__)
    return content


def number(text: str | None) -> float | None:
    """Return a finite number, or None for an empty cell, ``nan`` or text.

    >>> number("12.5"), number("nan"), number(None), number("x")
    (12.5, None, None, None)
    """
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def truth(text: str | None) -> bool | None:
    """Return a binary label: ``1`` or ``1.0`` is True, ``0`` False, empty or ``-1`` (uncertain) None.

    >>> truth("1.0"), truth("0"), truth(None), truth("-1.0")
    (True, False, None, None)
    """
    return {1.0: True, 0.0: False}.get(value) if (value := number(text)) is not None else None
