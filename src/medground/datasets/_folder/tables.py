"""Publishers' tables: text, stripped, plain or packed; see :mod:`medground.tables.reader`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from medground.errors import DatasetError
from medground.tables import reader
from medground.tables.documents import parse_json

if TYPE_CHECKING:
    from medground.datasets.report import Ledger

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
    return reader.read_bytes(path, DatasetError)


def read_table(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    *,
    key: Sequence[str] = (),
    ledger: Ledger | None = None,
) -> pl.DataFrame:
    """Return the named columns of a CSV file as stripped text; empty cells are null.

    Args:
        path: the file, plain, ``.gz`` or ``.zip``.
        required: columns that must be there, as the result names them.
        optional: columns that are all null where the file lacks them.
        key: columns whose values together stand once.
        ledger: told what is unusual about how the table is written.

    Raises:
        DatasetError: the file is empty, is no table, or lacks a required column; or a line does not fit its header.
    """
    table = reader.read_table(path, required, optional, key=key, error=DatasetError)
    return _told(table, ledger)


def read_all(path: Path, *, ledger: Ledger | None = None) -> pl.DataFrame:
    """Return a whole CSV file as stripped text with stripped column names; see :func:`read_table`."""
    return _told(reader.read_table(path, error=DatasetError), ledger)


def _told(table: reader.Table, ledger: Ledger | None) -> pl.DataFrame:
    if ledger is not None:
        for remark in table.remarks:
            ledger.remark(f"tables {remark}", table.path.name)
    return table.frame


def read_rows(path: Path) -> list[list[str]]:
    """Return the stripped fields of every line that is not blank, for files whose header does not fit their rows.

    Raises:
        DatasetError: the file cannot be read.
    """
    text, _ = reader.decoded(read_bytes(path), path, DatasetError)
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
    content = parse_json(read_bytes(path), where=path, error=DatasetError)
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
