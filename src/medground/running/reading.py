"""Reading a run folder: for reports, other protocols and comparisons. Takes no lock and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from medground.errors import RunError
from medground.running.arrays import unpack_arrays
from medground.running.chunks import ChunkFiles, DamagedChunkError, chunk_files, read_receipt


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run.

    Raises:
        RunError: the folder holds no run, or its manifest is damaged.
    """
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        manifest["settings"]["torch_threads"], manifest["plan"]
    except FileNotFoundError:
        raise RunError("this is not a run folder", where=folder, expected="a manifest.json") from None
    except (ValueError, TypeError, LookupError) as error:
        raise RunError(
            "the manifest cannot be read", where=path, got=error, fix="run the same run file again: it is rewritten"
        ) from error
    return manifest


def task_paths(folder: Path) -> list[tuple[str, ...]]:
    """Return the paths of a run's tasks, in order."""
    return [tuple(entry["path"]) for entry in read_manifest(folder)["plan"]]


def read_rows(folder: Path, path: Sequence[str]) -> pl.DataFrame:
    """Return the rows of a finished task, in the order of its items.

    Raises:
        RunError: the task is unknown, not finished or damaged.
    """
    parts = [pl.read_parquet(files.rows) for files in _finished(folder, path)]
    return pl.concat(parts) if parts else pl.DataFrame()


def read_arrays(
    folder: Path, path: Sequence[str], only: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Yield ``(item id, name -> array)`` of a finished task in the order of its items, chunk after chunk.

    Args:
        folder: the run folder.
        path: the task's path.
        only: the item ids that are wanted; the arrays of others are not read.

    Raises:
        RunError: the task is unknown, not finished or damaged.
    """
    for files in _finished(folder, path):
        if files.arrays.exists():
            with files.arrays.open("rb") as data:
                yield from unpack_arrays(data, only)


def _finished(folder: Path, path: Sequence[str]) -> list[ChunkFiles]:
    entries = {tuple(entry["path"]): entry for entry in read_manifest(folder)["plan"]}
    if tuple(path) not in entries:
        known = ", ".join("/".join(known) for known in entries)
        raise RunError("the run has no such task", where=folder, expected=f"one of {known}", got="/".join(path))
    chunks = [chunk_files(folder, path, name) for name in entries[tuple(path)]["chunks"]]
    try:
        missing = [files.rows.stem for files in chunks if read_receipt(files) is None]
    except DamagedChunkError as error:
        raise RunError(
            "a chunk of the run is damaged", where=folder, got=error, fix="run the same run file again: it is mended"
        ) from error
    if missing:
        raise RunError(
            "the run is not finished",
            where=f"{folder}: {'/'.join(path)}",
            got=f"{len(chunks) - len(missing)} of {len(chunks)} chunks",
            fix="run the same run file again: it goes on where it stopped",
        )
    return chunks
