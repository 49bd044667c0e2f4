"""A run folder while it is written: one owner, whole files, and only what the plan asks for counts.

::

    run.yaml  manifest.json  profile.json  failures.jsonl  summary.json  tables/*
    rows/<task>/<chunk>.parquet  rows/<task>/<chunk>.json  maps/<task>/<chunk>.npz  scores/<protocol>/*

``summary.json`` is there exactly when the run is complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from medground.benchmarks.base import Measured
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.chunks import (
    DamagedChunkError,
    Failure,
    Receipt,
    chunk_files,
    read_receipt,
    write_chunk,
)
from medground.running.files import remove_leftovers, write_atomic
from medground.running.identity import refuse_another_run
from medground.running.jsonable import to_json, to_yaml
from medground.running.lock import LOCK_FILE, FolderLock
from medground.running.plan import Chunk, Plan, TaskPlan
from medground.running.tables import table_files

_SUMMARY = ("summary.json", "tables")
_OURS = (
    *("run.yaml", "manifest.json", "profile.json", "failures.jsonl", "report.html"),
    *(*_SUMMARY, "rows", "maps", "scores"),
)


class Store:
    """An opened run folder; use it as a context manager, which holds the lock.

    Args:
        folder: made where it does not exist.
        config: the resolved configuration, JSON-like and without secrets.
        fresh: remove an earlier run from the folder first, whatever it was.
        say: takes messages for the user.

    Raises:
        RunError: on entering: the folder is in use, holds something else, or cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        fresh: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._config, self._fresh, self._say = config, fresh, say
        self._lock = FolderLock(folder)
        self._receipts: dict[Path, Receipt] = {}
        self._written: set[Path] = set()

    def __enter__(self) -> Store:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except OSError as error:
            raise self._cannot_write(self.folder, error) from error
        try:
            self._take_over()
        except OSError as error:
            self._lock.release()
            raise self._cannot_write(self.folder, error) from error
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def _take_over(self) -> None:
        if self._fresh:
            for name in _OURS:
                _remove(self.folder / name)
        remove_leftovers(self.folder)
        if (self.folder / "run.yaml").exists():
            refuse_another_run(self.folder / "run.yaml", self._config, self._say)
        else:
            self._refuse_foreign_files()
        self.put("run.yaml", to_yaml(self._config))

    def _refuse_foreign_files(self) -> None:
        foreign = sorted(p.name for p in self.folder.iterdir() if p.name not in (LOCK_FILE, *_OURS))
        if foreign:
            raise RunError(
                "the folder holds files that are not of a run",
                where=self.folder,
                expected="an empty folder, or one with a run.yaml",
                got=", ".join(foreign[:5]) + (" ..." if len(foreign) > 5 else ""),
                fix="choose another folder for the run",
            )

    def put(self, name: str, data: bytes) -> None:
        """Write the file ``name`` of the folder, whole or not at all.

        Raises:
            RunError: the disk is full or the folder cannot be written.
        """
        try:
            write_atomic(self.folder / name, data)
        except OSError as error:
            raise self._cannot_write(self.folder / name, error) from error

    def finished(self, chunk: Chunk) -> Receipt | None:
        """Return the receipt of a finished chunk, or None; a damaged chunk is announced and not finished."""
        files = chunk_files(self.folder, chunk.path, chunk.name)
        try:
            receipt = read_receipt(files)
        except DamagedChunkError as error:
            where = "/".join(chunk.path)
            self._say(f"chunk {chunk.index} of {where} is damaged and will be computed again: {error}")
            return None
        if receipt is not None:
            self._receipts[files.receipt] = receipt
        return receipt

    def write(
        self,
        chunk: Chunk,
        schema: pl.Schema,
        measured: Sequence[tuple[str, Measured]],
        failures: Sequence[Failure],
    ) -> None:
        """Store a finished chunk. Called from several threads, each with a chunk of its own.

        Raises:
            RunError: the disk is full or the folder cannot be written; the chunk then does not count.
        """
        files = chunk_files(self.folder, chunk.path, chunk.name)
        try:
            self._receipts[files.receipt] = write_chunk(files, schema, measured, failures)
        except OSError as error:
            raise self._cannot_write(files.rows, error) from error
        self._written.add(files.receipt)

    @property
    def n_finished(self) -> int:
        """How many chunks are known to be finished."""
        return len(self._receipts)

    @property
    def n_written(self) -> int:
        """How many chunks were written since the folder was opened."""
        return len(self._written)

    def rows(self, planned: TaskPlan) -> pl.DataFrame:
        """Return the rows of a task whose chunks are all finished, in the order of its items."""
        files = [chunk_files(self.folder, chunk.path, chunk.name) for chunk in planned.chunks]
        return pl.concat([planned.task.schema.to_frame(), *(pl.read_parquet(f.rows) for f in files)])

    def put_failures(self, plan: Plan) -> int:
        """Write ``failures.jsonl`` from the finished chunks, in the order of the items; return how many there are.

        A chunk counts once ``finished`` has seen it or ``write`` has stored it.
        """
        receipts = (
            (chunk, self._receipts.get(chunk_files(self.folder, chunk.path, chunk.name).receipt))
            for chunk in plan.chunks
        )
        lines = [
            json.dumps({"task": list(chunk.path), **vars(failure)}, ensure_ascii=False)
            for chunk, receipt in receipts
            if receipt is not None
            for failure in receipt.failures
        ]
        self.put("failures.jsonl", "".join(f"{line}\n" for line in lines).encode())
        return len(lines)

    def remove_summary(self) -> None:
        """Take away what was made of the rows: the run is not complete."""
        for name in (*_SUMMARY, "scores"):
            _remove(self.folder / name)

    def put_summary(self, summary: Summary) -> None:
        """Write the tables, then ``summary.json``.

        Raises:
            RunError: a number is not finite, or the folder cannot be written.
        """
        data = to_json(summary.to_json(), "summary")
        files = table_files(summary.tables)
        for name in _SUMMARY:
            _remove(self.folder / name)
        for name, content in files.items():
            self.put(f"tables/{name}", content)
        self.put("summary.json", data)

    def _cannot_write(self, path: Path, error: OSError) -> RunError:
        return RunError(
            "the run folder cannot be written",
            where=path,
            got=f"{error.strerror or error}",
            fix="make room on the disk (or mend what is named above) and run the same command again: "
            f"finished chunks are safe and are not computed again, {len(self._receipts)} so far",
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
