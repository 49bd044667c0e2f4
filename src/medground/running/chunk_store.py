"""The chunks of a run in its storage: which are finished, what is kept of them, and where new ones go.

Several processes may write chunks of one run side by side: a chunk is named by what made it, so that two who compute
the same one write the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from medground.benchmarks.base import Measured
from medground.benchmarks.requests import Transcript
from medground.errors import RunError
from medground.running import predictions
from medground.running.arrays import pack_arrays
from medground.running.chunks import (
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
    read_table,
    write_chunk,
)
from medground.running.journal import Journal
from medground.running.pictures import changed
from medground.running.plan import Chunk, TaskPlan
from medground.storage import FolderStorage, Storage
from medground.storage.base import Safety


@dataclass(frozen=True)
class KeptChunk:
    """What is kept of a chunk's predictions: transcripts by item id, failures, and the seal of the receipt."""

    transcripts: Mapping[str, Transcript]
    failures: Mapping[str, Failure]
    seal: str


@dataclass(frozen=True)
class _Known:
    """What is remembered of a finished chunk."""

    seal: str
    failures: tuple[Failure, ...]


class ChunkStore:
    """The chunks of a run under one reading.

    Args:
        storage: of the run.
        reading: name of the reading's folder.
        own: whether the reading is the run file's own; another one leaves journals to it.
        say: takes messages for the user.
    """

    def __init__(
        self, storage: Storage, *, reading: str, own: bool = True, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.storage, self.reading_name = storage, reading
        self._own, self._say = own, say
        self._known: dict[str, _Known] = {}
        self._written: set[str] = set()

    def closed(self) -> bool:
        """Return whether the run was given up: nothing more may be written."""
        return False

    # What is finished.

    def finished(self, chunk: Chunk) -> Receipt | None:
        """Return the receipt of a chunk's rows where they and what they were made from stand as written, or None."""
        predicted = self._receipt(self._said_files(chunk), chunk)
        rows = self._receipt(self._row_files(chunk), chunk)
        if predicted is None or rows is None or rows.made_from != predicted.seal:
            return None
        if not self._pictures_stand(predicted, chunk):
            return None
        return rows

    def kept(self, chunk: Chunk) -> KeptChunk | None:
        """Return the predictions of a chunk that stand as written, or None."""
        files = self._said_files(chunk)
        receipt = self._receipt(files, chunk)
        if receipt is None or not self._pictures_stand(receipt, chunk):
            return None
        self._remove_journal(files)  # a kill may have come between the receipt and this
        transcripts = predictions.decode(*read_content(files, receipt))
        return KeptChunk({t.item_id: t for t in transcripts}, {f.item: f for f in receipt.failures}, receipt.seal)

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
            self._note(files, receipt)
        return receipt

    def _said_files(self, chunk: Chunk) -> ChunkFiles:
        return chunk_files(self.storage, PREDICTIONS, chunk.path, chunk.name)

    def _row_files(self, chunk: Chunk) -> ChunkFiles:
        return chunk_files(self.storage, f"{READINGS}/{self.reading_name}/rows", chunk.path, chunk.rows_name)

    # New results.

    def journal(self, chunk: Chunk) -> Journal:
        """Return the journal of a chunk under way."""
        return Journal(self._journal_file(self._said_files(chunk)), f"{chunk.name}")

    def _journal_file(self, files: ChunkFiles) -> Path | None:
        """Return where a journal lies; None behind an address, to which nothing can be appended."""
        if not isinstance(self.storage, FolderStorage):
            return None
        return self.storage.path(files.table).with_suffix(".journal")

    def _remove_journal(self, files: ChunkFiles) -> None:
        path = self._journal_file(files)
        if self._own and path is not None:
            path.unlink(missing_ok=True)

    def write_predictions(
        self,
        chunk: Chunk,
        transcripts: Sequence[Transcript],
        failures: Sequence[Failure],
        pictures: Sequence[Picture],
        *,
        durable: bool = False,
    ) -> str:
        """Store what was said about a chunk; return the seal of its receipt. Called from several threads.

        Args:
            chunk: which.
            transcripts: what was said, in order.
            failures: of items about which nothing was said.
            pictures: the files that were read.
            durable: whether to wait for the disk: where a journal goes that holds the same.

        Raises:
            RunError: the disk is full or the folder cannot be written; the chunk then does not count.
        """
        self._refuse_when_closed(chunk)
        files = self._said_files(chunk)
        table, arrays = predictions.encode(transcripts)
        try:
            n = len(chunk.items)
            safe: Safety = "name" if durable else "process"
            receipt = write_chunk(files, table, arrays, n, failures, pictures, safe=safe, receipt_safe=safe)
            self._remove_journal(files)
        except OSError as error:
            raise self._cannot_write(files.table, error) from error
        self._note(files, receipt)
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
                root = f"{READINGS}/{self.reading_name}/replies"
                judged = chunk_files(self.storage, root, chunk.path, chunk.rows_name)
                write_chunk(judged, *predictions.encode(replies), items=len(replies), made_from=made_from)
            # One wait a chunk: what a power cut leaves of the files before it is held against this receipt.
            n = len(measured)
            receipt = write_chunk(files, rows, arrays, n, failures, made_from=made_from, safe="process")
        except OSError as error:
            raise self._cannot_write(files.table, error) from error
        self._note(files, receipt)
        self._written.add(files.receipt)

    def _refuse_when_closed(self, chunk: Chunk) -> None:
        """A model that hung and came back after the run was given up must not write into another's folder."""
        if self.closed():
            raise RunError("the run folder is closed", where="/".join(chunk.path))

    @property
    def n_finished(self) -> int:
        """How many chunks are known to have their rows."""
        return sum(key.startswith(f"{READINGS}/") for key in self._known)

    @property
    def n_written(self) -> int:
        """How many chunks of rows were written since the folder was opened."""
        return len(self._written)

    def rows(self, planned: TaskPlan) -> pl.DataFrame:
        """Return the rows of a task whose chunks are all finished, in the order of its items."""
        files = [self._row_files(chunk) for chunk in planned.chunks]
        return pl.concat([planned.task.schema.to_frame(), *map(read_table, files)])

    def failures(self, chunk: Chunk) -> tuple[Failure, ...]:
        """Return the failures of a chunk whose rows ``finished`` has seen or ``write_rows`` has stored."""
        known = self._known.get(self._row_files(chunk).receipt)
        return () if known is None else known.failures

    def seal(self, chunk: Chunk) -> str | None:
        """Return the seal of a chunk's rows, where they are known to be finished."""
        known = self._known.get(self._row_files(chunk).receipt)
        return None if known is None else known.seal

    def note(self, chunk: Chunk, seal: str, failures: Sequence[Failure]) -> None:
        """Take note of a chunk whose rows another process has written."""
        key = self._row_files(chunk).receipt
        self._known[key] = _Known(seal, tuple(failures))
        self._written.add(key)

    def _note(self, files: ChunkFiles, receipt: Receipt) -> None:
        # The pictures stay on the disk: a run of a million cases would hold a million of them.
        self._known[files.receipt] = _Known(receipt.seal, receipt.failures)

    def _cannot_write(self, key: str, error: OSError) -> RunError:
        return RunError(
            "the run folder cannot be written",
            where=f"{self.storage.where}/{key}".rstrip("/"),
            got=f"{error.strerror or error}",
            fix="make room on the disk (or correct what is named above) and run the same command again: "
            f"finished chunks are safe and are not computed again, {self.n_finished} so far",
        )
