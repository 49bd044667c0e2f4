"""The files of one chunk: a table, arrays, and the receipt that makes them count.

::

    <root>/<task>/<chunk>.npz       first, where there are arrays
    <root>/<task>/<chunk>.parquet   then
    <root>/<task>/<chunk>.json      last: the receipt, with the hashes of the two and the chunk's failures

``root`` is ``predictions`` (what was said), ``readings/<reading>/rows`` (what it means under one reading) or
``readings/<reading>/replies`` (what a judge said). A chunk without a receipt was never finished; one whose files differ
from its receipt is damaged. Both are computed again. A receipt of rows names the receipt of the predictions that they
were made from, and one of predictions the content of every picture that was read.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from medground.errors import RunError
from medground.running.files import write_atomic
from medground.running.names import folder_name

PREDICTIONS = "predictions"
READINGS = "readings"
ITEMS = "items"
"""Below a reading: what single items came to, one table a name, made with the summary."""


@dataclass(frozen=True)
class Failure:
    """An item that could not be read or answered.

    Attributes:
        item: its id.
        reason: the kind of trouble, as in the item's rows.
        detail: the whole message.
    """

    item: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Picture:
    """A file that an item was made of, as it was when it was read."""

    item: str
    position: int
    sha256: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Receipt:
    """What a finished chunk consists of.

    Attributes:
        items: how many items it holds, failed ones included.
        table: SHA-256 of the parquet file.
        arrays: SHA-256 of the npz file; None where the chunk has no arrays.
        failures: the items that could not be read, in order.
        pictures: the files that were read, in order.
        made_from: seal of the predictions that rows were made from; empty for predictions.
        seal: SHA-256 of all this.
    """

    items: int
    table: str
    arrays: str | None
    failures: tuple[Failure, ...] = ()
    pictures: tuple[Picture, ...] = ()
    made_from: str = ""
    seal: str = field(default="", compare=False)


@dataclass(frozen=True)
class ChunkFiles:
    """Where the files of a chunk lie."""

    table: Path
    arrays: Path
    receipt: Path


class DamagedChunkError(Exception):
    """The files of a finished chunk are not what was written; the text says which."""


def chunk_files(root: Path, path: Sequence[str], name: str) -> ChunkFiles:
    """Return where the chunk ``name`` of the task ``path`` lies below ``root``."""
    stem = root.joinpath(*(folder_name(part) for part in path)) / name
    return ChunkFiles(*(stem.with_name(f"{name}.{suffix}") for suffix in ("parquet", "npz", "json")))


def write_chunk(
    files: ChunkFiles,
    table: bytes,
    arrays: bytes | None,
    items: int,
    failures: Sequence[Failure] = (),
    pictures: Sequence[Picture] = (),
    made_from: str = "",
) -> Receipt:
    """Write the files of a chunk and, last, its receipt.

    Raises:
        OSError: the disk is full or the folder cannot be written; the chunk then does not count.
    """
    if arrays is not None:
        write_atomic(files.arrays, arrays)
    write_atomic(files.table, table)
    hashed = None if arrays is None else _sha256(arrays)
    receipt = Receipt(items, _sha256(table), hashed, tuple(failures), tuple(pictures), made_from)
    record = {name: value for name, value in asdict(receipt).items() if name != "seal"}
    seal = _seal(record)
    write_atomic(files.receipt, json.dumps(record | {"seal": seal}, indent=1).encode())
    return Receipt(items, receipt.table, hashed, receipt.failures, receipt.pictures, made_from, seal)


def encode_rows(rows: Sequence[Mapping[str, Any]], schema: pl.Schema) -> bytes:
    """Return rows as the bytes of a parquet file: no clock in them, the same on any number of threads.

    Raises:
        RunError: a row has other columns than the schema, or a value that does not fit.
    """
    names = set(schema.names())
    for row in rows:
        if row.keys() != names:
            raise RunError(
                "a row does not have the columns of its task's schema",
                expected=sorted(names),
                got=f"missing {sorted(names - row.keys())}, unexpected {sorted(row.keys() - names)}",
                fix="correct the measurer's measure and failed, or Task.schema",
            )
    try:
        frame = pl.DataFrame(rows, schema=schema, orient="row")
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise RunError("a value does not fit its column's type", expected=dict(schema), got=error) from error
    return to_parquet(frame)


def to_parquet(frame: pl.DataFrame) -> bytes:
    """Return a table as the bytes of a parquet file: no clock in them, the same on any number of threads."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def read_receipt(files: ChunkFiles) -> Receipt | None:
    """Return the receipt of a finished chunk with its files checked to the last bit; None: not finished.

    Raises:
        DamagedChunkError: a file is missing, cut or changed.
    """
    try:
        data = files.receipt.read_bytes()
    except FileNotFoundError:
        return None
    receipt = _parse(data, files.receipt)
    _check(files.table, receipt.table)
    if receipt.arrays is not None:
        _check(files.arrays, receipt.arrays)
    return receipt


def read_content(files: ChunkFiles, receipt: Receipt) -> tuple[bytes, bytes | None]:
    """Return the table and the arrays of a finished chunk, as bytes."""
    return files.table.read_bytes(), files.arrays.read_bytes() if receipt.arrays is not None else None


def _parse(data: bytes, path: Path) -> Receipt:
    try:
        record = json.loads(data)
        seal = record.pop("seal")
        if seal != _seal(record):
            raise DamagedChunkError(f"{path.name} is not what was written")
        failures = tuple(Failure(**failure) for failure in record.pop("failures"))
        pictures = tuple(Picture(**picture) for picture in record.pop("pictures"))
        return Receipt(**record, failures=failures, pictures=pictures, seal=seal)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedChunkError(f"{path.name} cannot be read") from error


def _check(path: Path, expected: str) -> None:
    try:
        content = _sha256(path.read_bytes())
    except FileNotFoundError:
        raise DamagedChunkError(f"{path.name} is missing") from None
    if content != expected:
        raise DamagedChunkError(f"{path.name} is not what was written ({path.stat().st_size} bytes)")


def _seal(record: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(record, sort_keys=True).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
