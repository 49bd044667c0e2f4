"""Reading a run folder: for reports, other protocols and comparisons. Takes no lock and changes nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.requests import Transcript
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.arrays import unpack_arrays
from medground.running.chunks import (
    ITEMS,
    PREDICTIONS,
    READINGS,
    ChunkFiles,
    DamagedChunkError,
    Receipt,
    chunk_files,
    read_content,
    read_receipt,
    read_table,
)
from medground.running.manifest import FORMAT
from medground.running.names import folder_name
from medground.running.predictions import decode
from medground.storage import FolderStorage, Storage
from medground.storage.opening import joined


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run.

    Raises:
        RunError: the folder holds no run, or its manifest is damaged.
    """
    return stored_manifest(FolderStorage(folder))


def stored_manifest(storage: Storage) -> dict[str, Any]:
    """Return the manifest of a run in any storage; see :func:`read_manifest`."""
    path = joined(storage.where, "manifest.json")
    try:
        manifest: dict[str, Any] = json.loads(storage.get("manifest.json"))
        if manifest["format"] != FORMAT:
            raise RunError(
                "the run folder was written by another version of medground",
                where=path,
                expected=f"format {FORMAT}",
                got=f"format {manifest['format']}",
                fix="run the same run file in another folder, or afresh in this one: medground run FILE --fresh",
            )
        manifest["settings"]["torch_threads"], manifest["plan"], manifest["reading"]
    except FileNotFoundError:
        raise RunError("this is not a run folder", where=storage.where, expected="a manifest.json") from None
    except (ValueError, TypeError, LookupError) as error:
        raise RunError(
            "the manifest cannot be read", where=path, got=error, fix="run the same run file again: it is rewritten"
        ) from error
    return manifest


def task_paths(folder: Path) -> list[tuple[str, ...]]:
    """Return the paths of a run's tasks, in order."""
    return [tuple(entry["path"]) for entry in read_manifest(folder)["plan"]]


def readings(folder: Path) -> list[str]:
    """Return the names of the readings that are complete, the run file's own first."""
    names = sorted(path.parent.name for path in (folder / READINGS).glob("*/summary.json"))
    own = read_manifest(folder)["reading"]
    return sorted(names, key=lambda name: (name != own, name))


def reading_path(folder: Path, reading: str | None = None) -> Path:
    """Return the folder of a reading (``summary.json`` and ``tables`` lie in it); None: the run file's own.

    Raises:
        RunError: there is no such reading, or it is not finished.
    """
    path = folder / READINGS / (reading or read_manifest(folder)["reading"])
    if not (path / "summary.json").is_file():
        raise RunError(
            "the run is not finished" if reading is None else "the run has no such reading",
            where=folder,
            expected="a summary.json" if reading is None else ", ".join(readings(folder)) or "a finished reading",
            got=reading,
            fix="run the same run file again: it goes on where it stopped",
        )
    return path


def read_summary(folder: Path, reading: str | None = None) -> Summary:
    """Return the summary of a reading, without its tables.

    Raises:
        RunError: there is none, it is damaged, or another version wrote it.
    """
    path = reading_path(folder, reading) / "summary.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError("the summary is damaged", where=path, got=error, fix="run the same run file again") from error
    return Summary.from_json(content, path)


def read_items(folder: Path, name: str, reading: str | None = None) -> pl.LazyFrame:
    """Return what single items came to under a reading, as its summary was made; nothing is measured again.

    Args:
        folder: the run folder.
        name: of the table, as the benchmark calls it.
        reading: folder of the reading; None: the run file's own.

    Raises:
        RunError: there is none.
    """
    path = reading_path(folder, reading) / ITEMS / f"{folder_name(name)}.parquet"
    if not path.is_file():
        raise RunError(
            "the summary was written without its items",
            where=path,
            expected="one row an item",
            fix="run the same run file again (or score it so again): what was said is kept, and summarised anew",
        )
    return pl.scan_parquet(path)


def read_rows(folder: Path, path: Sequence[str], reading: str | None = None) -> pl.DataFrame:
    """Return the rows of a finished task under a reading, in the order of its items.

    Raises:
        RunError: the task is unknown, not finished or damaged.
    """
    parts = [read_table(one) for one in _files_of_rows(folder, path, reading)]
    return pl.concat(parts) if parts else pl.DataFrame()


def read_arrays(
    folder: Path, path: Sequence[str], reading: str | None = None, only: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Yield item id and the arrays that a reading keeps beside its rows; nothing where it keeps none.

    Args:
        folder: the run folder.
        path: the task's path.
        reading: folder of the reading; None: the run file's own.
        only: the item ids that are wanted.
    """
    for files in _files_of_rows(folder, path, reading):
        if files.storage.exists(files.arrays):
            yield from unpack_arrays(io.BytesIO(files.storage.get(files.arrays)), only)


def _files_of_rows(folder: Path, path: Sequence[str], reading: str | None) -> list[ChunkFiles]:
    own = read_manifest(folder)["reading"]
    root = f"{READINGS}/{reading or own}/rows"
    return _row_files(root, folder, path) if reading in (None, own) else _all_rows(root, folder, path)


def read_transcripts(folder: Path, path: Sequence[str], only: Collection[str] | None = None) -> Iterator[Transcript]:
    """Yield what was said about the items of a finished task, chunk after chunk, arrays included.

    Args:
        folder: the run folder.
        path: the task's path.
        only: the item ids that are wanted.

    Raises:
        RunError: the task is unknown, not finished or damaged.
    """
    for files, receipt in _finished(PREDICTIONS, folder, path, "chunks"):
        for transcript in decode(*read_content(files, receipt)):
            if only is None or transcript.item_id in only:
                yield transcript


def _row_files(root: str, folder: Path, path: Sequence[str]) -> list[ChunkFiles]:
    return [files for files, _ in _finished(root, folder, path, "rows")]


def _all_rows(root: str, folder: Path, path: Sequence[str]) -> list[ChunkFiles]:
    """Return the chunks of another reading; it is complete where its summary stands."""
    storage = FolderStorage(folder)
    task = storage.path(chunk_files(storage, root, path, "x").table).parent
    names = sorted(receipt.stem for receipt in task.glob("*.json"))
    return [chunk_files(storage, root, path, name) for name in names]


def _finished(root: str, folder: Path, path: Sequence[str], key: str) -> list[tuple[ChunkFiles, Receipt]]:
    entries = {tuple(entry["path"]): entry for entry in read_manifest(folder)["plan"]}
    if tuple(path) not in entries:
        known = ", ".join("/".join(known) for known in entries)
        raise RunError("the run has no such task", where=folder, expected=f"one of {known}", got="/".join(path))
    storage = FolderStorage(folder)
    chunks = [chunk_files(storage, root, path, name) for name in entries[tuple(path)][key]]
    try:
        receipts = [(files, read_receipt(files)) for files in chunks]
    except DamagedChunkError as error:
        raise RunError(
            "a chunk of the run is damaged", where=folder, got=error, fix="run the same run file again: it is repaired"
        ) from error
    finished = [(files, receipt) for files, receipt in receipts if receipt is not None]
    if len(finished) < len(chunks):
        raise RunError(
            "the run is not finished",
            where=f"{folder}: {'/'.join(path)}",
            got=f"{len(finished)} of {len(chunks)} chunks",
            fix="run the same run file again: it goes on where it stopped",
        )
    return finished
