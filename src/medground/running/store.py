"""A run folder opened for writing: what is finished, and where new results go.

::

    run.yaml  manifest.json  profile.json  failures.jsonl  ledger.jsonl  report.html
    predictions/<task>/<chunk>.*            what was said; <chunk>.journal while an expensive chunk is under way
    readings/current                        name of the run file's own reading
    readings/<reading>/rows/<task>/<chunk>.*  replies/<task>/<chunk>.*  summary.json  tables/*

``summary.json`` is there exactly when its reading is complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from medground.benchmarks.base import Measured
from medground.benchmarks.requests import Transcript
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running import predictions
from medground.running.arrays import pack_arrays
from medground.running.chunks import (
    ITEMS,
    PREDICTIONS,
    READINGS,
    ChunkFiles,
    DamagedChunkError,
    Failure,
    Picture,
    Receipt,
    chunk_files,
    encode_rows,
    read_content,
    read_receipt,
    to_parquet,
    write_chunk,
)
from medground.running.files import remove_leftovers, write_atomic
from medground.running.fsck import SUMS, sums_of
from medground.running.identity import refuse_another_run
from medground.running.journal import Journal
from medground.running.jsonable import to_json, to_yaml
from medground.running.lock import LOCK_FILE, FolderLock
from medground.running.manifest import FORMAT
from medground.running.names import folder_name
from medground.running.pictures import changed
from medground.running.plan import Chunk, Plan, TaskPlan
from medground.running.tables import table_files

_OURS = (
    *("run.yaml", "manifest.json", "profile.json", "failures.jsonl", "ledger.jsonl", "report.html", "report.json"),
    *(PREDICTIONS, READINGS, "costs"),
)
_OLD = ("rows", "maps", "scores", "summary.json", "tables")
"""What format 1 kept at the top of the folder."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a chunk's predictions: transcripts by item id, failures, and the seal of the receipt."""

    transcripts: Mapping[str, Transcript]
    failures: Mapping[str, Failure]
    seal: str


class Store:
    """An opened run folder; use it as a context manager, which holds the lock.

    Args:
        folder: made where it does not exist.
        config: the resolved configuration, JSON-like and without secrets.
        reading: name of the reading's folder.
        fresh: remove an earlier run from the folder first, whatever it was.
        own: whether the reading is the run file's own; another one leaves ``run.yaml`` as it is.
        say: takes messages for the user.

    Raises:
        RunError: on entering: the folder is in use, holds something else, or cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        reading: str,
        fresh: bool = False,
        own: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self.reading = folder / READINGS / reading
        self._config, self._fresh, self._own, self._say = config, fresh, own, say
        self._lock = FolderLock(folder)
        self._receipts: dict[Path, Receipt] = {}
        self._written: set[Path] = set()
        self._closed = False

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
        self._closed = True
        self._lock.release()

    def _take_over(self) -> None:
        if self._fresh:
            for name in (*_OURS, *_OLD):
                _remove(self.folder / name)
        remove_leftovers(self.folder)
        if not self._own:
            return
        if (self.folder / "run.yaml").exists():
            self._refuse_old_format()
            self._refuse_other_format()
            refuse_another_run(self.folder / "run.yaml", self._config, self._say)
        else:
            self._refuse_foreign_files()
        self.put("run.yaml", to_yaml(self._config))

    def _refuse_other_format(self) -> None:
        """Raise RunError where another version wrote the manifest; one that cannot be read is rewritten."""
        try:
            stated = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))["format"]
        except (OSError, ValueError, TypeError, LookupError):
            return
        if stated != FORMAT:
            raise RunError(
                "the run folder was written by another version of medground",
                where=self.folder / "manifest.json",
                expected=f"format {FORMAT}",
                got=f"format {stated}",
                fix="run the same run file in another folder, or afresh in this one: medground run FILE --fresh",
            )

    def _refuse_old_format(self) -> None:
        if (self.folder / "rows").is_dir() and not (self.folder / READINGS).exists():
            raise RunError(
                "the folder holds a run of an older format, which kept rows and no predictions",
                where=self.folder,
                expected="predictions/ and readings/",
                got="rows/",
                fix="run it in another folder, or start afresh in this one: medground run FILE --fresh",
            )

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

    # What is finished.

    def finished(self, chunk: Chunk) -> Receipt | None:
        """Return the receipt of a chunk's rows where they and what they were made from stand as written, or None."""
        predictions = self._receipt(self._said_files(chunk), chunk)
        rows = self._receipt(self._row_files(chunk), chunk)
        if predictions is None or rows is None or rows.made_from != predictions.seal:
            return None
        if not self._pictures_stand(predictions, chunk):
            return None
        return rows

    def kept(self, chunk: Chunk) -> Kept | None:
        """Return the predictions of a chunk that stand as written, or None."""
        files = self._said_files(chunk)
        receipt = self._receipt(files, chunk)
        if receipt is None or not self._pictures_stand(receipt, chunk):
            return None
        self._remove_journal(files)  # a kill may have come between the receipt and this
        transcripts = predictions.decode(*read_content(files, receipt))
        return Kept({t.item_id: t for t in transcripts}, {f.item: f for f in receipt.failures}, receipt.seal)

    def _pictures_stand(self, receipt: Receipt, chunk: Chunk) -> bool:
        item = changed(receipt, chunk.items)
        if item is not None:
            self._say(f"a file of item {item!r} of {'/'.join(chunk.path)} has changed: its chunk is computed again")
        return item is None

    def _receipt(self, files: ChunkFiles, chunk: Chunk) -> Receipt | None:
        try:
            receipt = read_receipt(files)
        except DamagedChunkError as error:
            where = "/".join(chunk.path)
            self._say(f"chunk {chunk.index} of {where} is damaged and will be computed again: {error}")
            return None
        if receipt is not None:
            self._receipts[files.receipt] = receipt
        return receipt

    def _said_files(self, chunk: Chunk) -> ChunkFiles:
        return chunk_files(self.folder / PREDICTIONS, chunk.path, chunk.name)

    def _row_files(self, chunk: Chunk) -> ChunkFiles:
        return chunk_files(self.reading / "rows", chunk.path, chunk.rows_name)

    # New results.

    def journal(self, chunk: Chunk) -> Journal:
        """Return the journal of a chunk under way."""
        return Journal(self._journal_file(self._said_files(chunk)), f"{chunk.name}")

    @staticmethod
    def _journal_file(files: ChunkFiles) -> Path:
        return files.table.with_suffix(".journal")

    def _remove_journal(self, files: ChunkFiles) -> None:
        if self._own:
            self._journal_file(files).unlink(missing_ok=True)

    def write_predictions(
        self,
        chunk: Chunk,
        transcripts: Sequence[Transcript],
        failures: Sequence[Failure],
        pictures: Sequence[Picture],
    ) -> str:
        """Store what was said about a chunk; return the seal of its receipt. Called from several threads.

        Raises:
            RunError: the disk is full or the folder cannot be written; the chunk then does not count.
        """
        self._refuse_when_closed(chunk)
        files = self._said_files(chunk)
        table, arrays = predictions.encode(transcripts)
        try:
            receipt = write_chunk(files, table, arrays, len(chunk.items), failures, pictures)
            self._remove_journal(files)
        except OSError as error:
            raise self._cannot_write(files.table, error) from error
        self._receipts[files.receipt] = receipt
        return receipt.seal

    def write_rows(
        self,
        chunk: Chunk,
        schema: pl.Schema,
        measured: Sequence[tuple[str, Measured]],
        failures: Sequence[Failure],
        made_from: str,
        replies: Sequence[Transcript] = (),
    ) -> None:
        """Store the rows of a chunk, and what a judge said for them. Called from several threads.

        Raises:
            RunError: the disk is full or the folder cannot be written; the chunk then does not count.
        """
        self._refuse_when_closed(chunk)
        files = self._row_files(chunk)
        rows = encode_rows([row for _, part in measured for row in part.rows], schema)
        arrays = pack_arrays((item_id, part.arrays) for item_id, part in measured)
        try:
            if replies:
                judged = chunk_files(self.reading / "replies", chunk.path, chunk.rows_name)
                write_chunk(judged, *predictions.encode(replies), items=len(replies), made_from=made_from)
            receipt = write_chunk(files, rows, arrays, len(measured), failures, made_from=made_from)
        except OSError as error:
            raise self._cannot_write(files.table, error) from error
        self._receipts[files.receipt] = receipt
        self._written.add(files.receipt)

    def _refuse_when_closed(self, chunk: Chunk) -> None:
        """A model that hung and came back after the run was given up must not write into another's folder."""
        if self._closed:
            raise RunError("the run folder is closed", where="/".join(chunk.path))

    @property
    def n_finished(self) -> int:
        """How many chunks are known to have their rows."""
        return sum(self.reading in path.parents for path in self._receipts)

    @property
    def n_written(self) -> int:
        """How many chunks of rows were written since the folder was opened."""
        return len(self._written)

    def rows(self, planned: TaskPlan) -> pl.DataFrame:
        """Return the rows of a task whose chunks are all finished, in the order of its items."""
        files = [self._row_files(chunk) for chunk in planned.chunks]
        return pl.concat([planned.task.schema.to_frame(), *(pl.read_parquet(f.table) for f in files)])

    def failures(self, chunk: Chunk) -> tuple[Failure, ...]:
        """Return the failures of a chunk whose rows ``finished`` has seen or ``write_rows`` has stored."""
        receipt = self._receipts.get(self._row_files(chunk).receipt)
        return () if receipt is None else receipt.failures

    def put_failures(self, plan: Plan) -> int:
        """Write ``failures.jsonl`` from the finished chunks, in the order of the items; return how many there are."""
        lines = [
            json.dumps({"task": list(chunk.path), **vars(failure)}, ensure_ascii=False)
            for chunk in plan.chunks
            for failure in self.failures(chunk)
        ]
        self.put("failures.jsonl", "".join(f"{line}\n" for line in lines).encode())
        return len(lines)

    def remove_summary(self) -> None:
        """Take away what was made of the rows: the reading is not complete."""
        self._remove_summary_files()
        self._remove_report()

    def _remove_summary_files(self) -> None:
        for name in ("summary.json", "tables", ITEMS):
            _remove(self.reading / name)

    def put_summary(self, summary: Summary) -> None:
        """Write tables and items, then ``summary.json``; a report that was made of another summary is taken away.

        Raises:
            RunError: a number is not finite, or the folder cannot be written.
        """
        data = to_json(summary.to_json(), "summary")
        files = table_files(summary.tables)
        target = self.reading / "summary.json"
        if target.exists() and target.read_bytes() != data:
            self._remove_report()
        self._remove_summary_files()
        where = self.reading.relative_to(self.folder)
        derived = {f"tables/{name}": content for name, content in files.items()}
        derived |= {f"{ITEMS}/{folder_name(name)}.parquet": to_parquet(table) for name, table in summary.items.items()}
        for name, content in derived.items():
            self.put(f"{where}/{name}", content)
        self.put(f"{where}/{SUMS}", sums_of(derived | {"summary.json": data}))
        self.put(f"{where}/summary.json", data)
        if self._own:
            self.put(f"{READINGS}/current", f"{self.reading.name}\n".encode())

    def _remove_report(self) -> None:
        report = (self.folder if self._own else self.reading) / "report.html"
        if report.exists():
            self._say("report.html was made of other numbers and is removed: medground report makes it anew")
            _remove(report)

    def _cannot_write(self, path: Path, error: OSError) -> RunError:
        return RunError(
            "the run folder cannot be written",
            where=path,
            got=f"{error.strerror or error}",
            fix="make room on the disk (or correct what is named above) and run the same command again: "
            f"finished chunks are safe and are not computed again, {self.n_finished} so far",
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
