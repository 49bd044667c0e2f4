from __future__ import annotations

import hashlib
import io
import json

import numpy as np
import polars as pl
import pytest

from medground.errors import RunError
from medground.running.arrays import pack_arrays
from medground.running.chunks import (
    DamagedChunkError,
    Failure,
    chunk_files,
    encode_rows,
    read_receipt,
    read_table,
    write_chunk,
)
from medground.storage import FolderStorage

SCHEMA = pl.Schema({"id": pl.String, "x": pl.Float64, "counts": pl.List(pl.Int32)})
ROWS = [{"id": "a", "x": 0.1, "counts": np.arange(3)}, {"id": "b", "x": None, "counts": [1]}]


@pytest.fixture
def written(tmp_path):
    files = chunk_files(FolderStorage(tmp_path), "rows", ("m", "d"), "00000-abc")
    arrays = pack_arrays([("a", {"map": np.ones(2)})])
    receipt = write_chunk(files, encode_rows(ROWS, SCHEMA), arrays, 2, [Failure("b", "cut", "cut | where: b")])
    return files, receipt


def test_a_chunk_comes_back(written):
    files, receipt = written
    assert read_receipt(files) == receipt
    assert receipt.items == 2
    assert receipt.failures == (Failure("b", "cut", "cut | where: b"),)
    frame = read_table(files)
    assert frame.schema == SCHEMA
    assert frame.to_dicts() == [
        {"id": "a", "x": 0.1, "counts": [0, 1, 2]},
        {"id": "b", "x": None, "counts": [1]},
    ]


def test_files_lie_where_the_design_says(written, tmp_path):
    names = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert names == ["rows/m/d/00000-abc.json", "rows/m/d/00000-abc.npz", "rows/m/d/00000-abc.parquet"]


def test_without_a_receipt_a_chunk_is_not_finished(written):
    files, _ = written
    files.storage.delete(files.receipt)
    assert read_receipt(files) is None


@pytest.mark.parametrize("which", ["table", "arrays", "receipt"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "one bit", "removed"])
def test_damage_is_found(written, which, damage):
    files, _ = written
    path = files.storage.path(getattr(files, which))
    data = path.read_bytes()
    if damage == "removed":
        path.unlink()
        if which == "receipt":
            assert read_receipt(files) is None
            return
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"cut": data[:middle], "emptied": b"", "one bit": flipped}[damage])
    with pytest.raises(DamagedChunkError, match=path.name):
        read_receipt(files)


def test_a_changed_reason_is_found_too(written):
    files, _ = written
    path = files.storage.path(files.receipt)
    path.write_text(path.read_text().replace("cut", "fine"))
    with pytest.raises(DamagedChunkError, match="json is not what was written"):
        read_receipt(files)


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"items": 1}', '{"items": 1, "rows": "", "arrays": null, "failures": [1]}']
)
def test_a_receipt_of_another_shape_is_damage(written, text):
    files, _ = written
    record = json.loads(text)
    if isinstance(record, dict):
        text = json.dumps(record | {"seal": hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()})
    files.storage.put(files.receipt, text.encode())
    with pytest.raises(DamagedChunkError, match="cannot be read"):
        read_receipt(files)


def test_rows_have_the_same_bytes_every_time():
    assert encode_rows(ROWS, SCHEMA) == encode_rows(ROWS, SCHEMA)


def test_no_rows_keep_their_schema():
    assert pl.read_parquet(io.BytesIO(encode_rows([], SCHEMA))).schema == SCHEMA


@pytest.mark.parametrize("row", [{"id": "a", "x": 0.1}, {**ROWS[0], "y": 1}])
def test_a_row_with_other_columns_is_refused(row):
    with pytest.raises(RunError, match="columns"):
        encode_rows([row], SCHEMA)


def test_a_value_of_another_type_is_refused():
    with pytest.raises(RunError, match="does not fit"):
        encode_rows([{**ROWS[0], "x": "much"}], SCHEMA)
