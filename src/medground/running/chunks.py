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
from typing import Any

import polars as pl

from medground.errors import RunError
from medground.running.names import folder_name
from medground.storage import Storage
from medground.storage.base import Safety

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
    """Where the files of a chunk lie: a storage, and keys in it."""

    storage: Storage
    table: str
    arrays: str
    receipt: str


class DamagedChunkError(Exception):
    """The files of a finished chunk are not what was written; the text says which."""


def chunk_files(storage: Storage, root: str, path: Sequence[str], name: str) -> ChunkFiles:
    """Return where the chunk ``name`` of the task ``path`` lies below ``root``."""
    stem = "/".join((root, *(folder_name(part) for part in path), name))
    return ChunkFiles(storage, f"{stem}.parquet", f"{stem}.npz", f"{stem}.json")


def write_chunk(
    files: ChunkFiles,
    table: bytes,
    arrays: bytes | None,
    items: int,
    failures: Sequence[Failure] = (),
    pictures: Sequence[Picture] = (),
    made_from: str = "",
    *,
    safe: Safety = "name",
    receipt_safe: Safety = "content",
) -> Receipt:
    """Write the files of a chunk and, last, its receipt.

    The receipt holds the hashes of the others, so that one which a power cut has not left whole is found out. Waiting
    for the disk is therefore a matter of how much may have to be computed again, not of what is true.

    Args:
        files: where they lie.
        table: the parquet file.
        arrays: the npz file, if there are arrays.
        items: how many the chunk holds.
        failures: the items that could not be read.
        pictures: the files that were read.
        made_from: seal of the predictions that rows were made from.
        safe: what to wait for before the receipt is written.
        receipt_safe: what to wait for then.

    Raises:
        OSError: the disk is full or the folder cannot be written; the chunk then does not count.
    """
    put = files.storage.put
    if arrays is not None:
        put(files.arrays, arrays, safe=safe)
    put(files.table, table, safe=safe)
    hashed = None if arrays is None else _sha256(arrays)
    receipt = Receipt(items, _sha256(table), hashed, tuple(failures), tuple(pictures), made_from)
    record = {name: value for name, value in asdict(receipt).items() if name != "seal"}
    seal = _seal(record)
    put(files.receipt, json.dumps(record | {"seal": seal}, indent=1).encode(), safe=receipt_safe)
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
        data = files.storage.get(files.receipt)
    except FileNotFoundError:
        return None
    receipt = _parse(data, files.receipt)
    _checked(files.storage, files.table, receipt.table)
    if receipt.arrays is not None:
        _checked(files.storage, files.arrays, receipt.arrays)
    return receipt


def read_content(files: ChunkFiles, receipt: Receipt) -> tuple[bytes, bytes | None]:
    """Return the table and the arrays of a finished chunk, as bytes."""
    arrays = files.storage.get(files.arrays) if receipt.arrays is not None else None
    return files.storage.get(files.table), arrays


def read_table(files: ChunkFiles) -> pl.DataFrame:
    """Return the table of a finished chunk."""
    return pl.read_parquet(io.BytesIO(files.storage.get(files.table)))


def _parse(data: bytes, key: str) -> Receipt:
    name = _file(key)
    try:
        record = json.loads(data)
        seal = record.pop("seal")
        if seal != _seal(record):
            raise DamagedChunkError(f"{name} is not what was written")
        failures = tuple(Failure(**failure) for failure in record.pop("failures"))
        pictures = tuple(Picture(**picture) for picture in record.pop("pictures"))
        return Receipt(**record, failures=failures, pictures=pictures, seal=seal)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedChunkError(f"{name} cannot be read") from error


def _checked(storage: Storage, key: str, expected: str) -> None:
    try:
        data = storage.get(key)
    except FileNotFoundError:
        raise DamagedChunkError(f"{_file(key)} is missing") from None
    if _sha256(data) != expected:
        raise DamagedChunkError(f"{_file(key)} is not what was written ({len(data)} bytes)")


def _file(key: str) -> str:
    return key.rpartition("/")[2]


def _seal(record: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(record, sort_keys=True).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
