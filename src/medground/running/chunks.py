"""The files of one chunk: rows, arrays, and the receipt that makes them count.

::

    maps/<task>/<chunk>.npz       first, where there are arrays
    rows/<task>/<chunk>.parquet   then
    rows/<task>/<chunk>.json      last: the receipt, with the hashes of the two and the chunk's failures

A chunk without a receipt was never finished; one whose files differ from its receipt is damaged. Both are computed
again.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from medground.benchmarks.base import Measured
from medground.errors import RunError
from medground.running.arrays import pack_arrays
from medground.running.files import write_atomic
from medground.running.names import folder_name


@dataclass(frozen=True)
class Failure:
    """An item that could not be read.

    Attributes:
        item: its id.
        reason: the kind of trouble, as in the item's rows.
        detail: the whole message.
    """

    item: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Receipt:
    """What a finished chunk consists of.

    Attributes:
        items: how many items it holds, failed ones included.
        rows: SHA-256 of the parquet file.
        arrays: SHA-256 of the npz file; None where the chunk has no arrays.
        failures: the items that could not be read, in order.
    """

    items: int
    rows: str
    arrays: str | None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class ChunkFiles:
    """Where the files of a chunk lie."""

    rows: Path
    arrays: Path
    receipt: Path


class DamagedChunkError(Exception):
    """The files of a finished chunk are not what was written; the text says which."""


def chunk_files(folder: Path, path: Sequence[str], name: str) -> ChunkFiles:
    """Return where the chunk ``name`` of the task ``path`` lies in a run folder."""
    task = Path(*(folder_name(part) for part in path))
    rows, maps = folder / "rows" / task, folder / "maps" / task
    return ChunkFiles(rows / f"{name}.parquet", maps / f"{name}.npz", rows / f"{name}.json")


def write_chunk(
    files: ChunkFiles,
    schema: pl.Schema,
    measured: Sequence[tuple[str, Measured]],
    failures: Sequence[Failure] = (),
) -> Receipt:
    """Write a chunk: ``(item id, what was measured)`` in the order of its items.

    Raises:
        OSError: the disk is full or the folder cannot be written; the chunk then does not count.
        RunError: the rows do not fit the schema.
    """
    rows = encode_rows([row for _, part in measured for row in part.rows], schema)
    arrays = pack_arrays((item_id, part.arrays) for item_id, part in measured)
    if arrays is not None:
        write_atomic(files.arrays, arrays)
    write_atomic(files.rows, rows)
    hashed = None if arrays is None else _sha256(arrays)
    receipt = Receipt(len(measured), _sha256(rows), hashed, tuple(failures))
    record = asdict(receipt)
    write_atomic(files.receipt, json.dumps(record | {"seal": _seal(record)}, indent=1).encode())
    return receipt


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
                fix="mend Stages.measure and Stages.failed, or Task.schema",
            )
    try:
        frame = pl.DataFrame(rows, schema=schema, orient="row")
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise RunError("a value does not fit its column's type", expected=dict(schema), got=error) from error
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
    _check(files.rows, receipt.rows)
    if receipt.arrays is not None:
        _check(files.arrays, receipt.arrays)
    return receipt


def _parse(data: bytes, path: Path) -> Receipt:
    try:
        record = json.loads(data)
        if record.pop("seal") != _seal(record):
            raise DamagedChunkError(f"{path.name} is not what was written")
        failures = tuple(Failure(**failure) for failure in record.pop("failures"))
        return Receipt(**record, failures=failures)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedChunkError(f"{path.name} cannot be read") from error


def _check(path: Path, expected: str) -> None:
    try:
        found = _sha256(path.read_bytes())
    except FileNotFoundError:
        raise DamagedChunkError(f"{path.name} is missing") from None
    if found != expected:
        raise DamagedChunkError(f"{path.name} is not what was written ({path.stat().st_size} bytes)")


def _seal(record: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(record, sort_keys=True).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
