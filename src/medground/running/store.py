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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.chunk_store import ChunkStore
from medground.running.chunks import ITEMS, PREDICTIONS, READINGS, to_parquet
from medground.running.fsck import SUMS, sums_hold, sums_of
from medground.running.holding import Holding
from medground.running.identity import refuse_another_run
from medground.running.jsonable import to_json, to_yaml
from medground.running.lease import LEASES
from medground.running.lock import LOCK_FILE
from medground.running.made_of import NAME as MADE_OF
from medground.running.manifest import FORMAT
from medground.running.names import folder_name
from medground.running.plan import Plan
from medground.running.shards import SHARDS, Shard
from medground.running.tables import from_csv, table_files
from medground.storage import FolderStorage, is_address, open_storage
from medground.storage.files import remove_leftovers
from medground.storage.opening import joined

_OURS = (
    *("run.yaml", "manifest.json", "profile.json", "failures.jsonl", "ledger.jsonl", "report.html", "report.json"),
    *(PREDICTIONS, READINGS, "costs", SHARDS, LEASES),
)
_OLD = ("rows", "maps", "scores", "summary.json", "tables")
"""What format 1 kept at the top of the folder."""


class Store(ChunkStore):
    """An opened run; use it as a context manager, which holds the lock.

    Args:
        place: a folder, made where it does not exist, or the address of an object store.
        config: the resolved configuration, JSON-like and without secrets.
        reading: name of the reading's folder.
        fresh: remove an earlier run from the folder first, whatever it was.
        own: whether the reading is the run file's own; another one leaves ``run.yaml`` as it is.
        shard: which part of the run is worked on; None: all of it.
        say: takes messages for the user.

    Raises:
        RunError: on entering: the folder is in use, holds something else, or cannot be written.
    """

    def __init__(
        self,
        place: Path | str,
        config: Mapping[str, Any],
        *,
        reading: str,
        fresh: bool = False,
        own: bool = True,
        shard: Shard | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(open_storage(place), reading=reading, own=own, say=say)
        self.folder: Path | str = place if is_address(place) else Path(place)
        self._config, self._fresh, self._shard = config, fresh, shard
        self._holding = Holding(self.storage, shard)
        self._closed = False

    @property
    def reading(self) -> Path | str:
        """Where the reading lies."""
        return joined(self.folder, f"{READINGS}/{self.reading_name}")

    def __enter__(self) -> Store:
        try:
            if isinstance(self.storage, FolderStorage):
                self.storage.root.mkdir(parents=True, exist_ok=True)
            self._holding.acquire()
        except OSError as error:
            raise self._cannot_write("", error) from error
        try:
            self._take_over()
        except OSError as error:
            self._holding.release()
            raise self._cannot_write("", error) from error
        except BaseException:
            self._holding.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._holding.release()

    def closed(self) -> bool:
        """Return whether nothing more may be written: the run was given up, or another process has taken it."""
        return self._closed or self._holding.lost

    def _take_over(self) -> None:
        if self._fresh:
            for name in (*_OURS, *_OLD):
                self.storage.delete(name)
        if isinstance(self.storage, FolderStorage) and self._shard is None:
            remove_leftovers(self.storage.root)
        if not self._own:
            return
        if self.storage.exists("run.yaml"):
            self._refuse_old_format()
            self._refuse_other_format()
            strict = self._shard is not None
            text = self.storage.get("run.yaml")
            changed = refuse_another_run(text, self._config, self._say, where=self.storage.where, strict=strict)
            if strict or not changed:
                return
        else:
            self._refuse_foreign_files()
        self.put("run.yaml", to_yaml(self._config))

    def _refuse_other_format(self) -> None:
        """Raise RunError where another version wrote the manifest; one that cannot be read is rewritten."""
        try:
            stated = json.loads(self.storage.get("manifest.json"))["format"]
        except (OSError, ValueError, TypeError, LookupError):
            return
        if stated != FORMAT:
            raise RunError(
                "the run folder was written by another version of medground",
                where=joined(self.folder, "manifest.json"),
                expected=f"format {FORMAT}",
                got=f"format {stated}",
                fix="run the same run file in another folder, or afresh in this one: medground run FILE --fresh",
            )

    def _refuse_old_format(self) -> None:
        if self._any("rows") and not self._any(READINGS):
            raise RunError(
                "the folder holds a run of an older format, which kept rows and no predictions",
                where=self.folder,
                expected="predictions/ and readings/",
                got="rows/",
                fix="run it in another folder, or start afresh in this one: medground run FILE --fresh",
            )

    def _any(self, name: str) -> bool:
        return next(iter(self.storage.list(f"{name}/")), None) is not None

    def _refuse_foreign_files(self) -> None:
        if not isinstance(self.storage, FolderStorage):
            return
        foreign = sorted(p.name for p in self.storage.root.iterdir() if p.name not in (LOCK_FILE, *_OURS))
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
            self.storage.put(name, data)
        except OSError as error:
            raise self._cannot_write(name, error) from error

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
        for name in (MADE_OF, "summary.json", "tables", ITEMS):
            self.storage.delete(self._in_reading(name))

    def summary_made_of(self, key: str) -> Summary | None:
        """Return the summary that stands where it was made of ``key`` and no file of it has changed, or None.

        Its tables are read from their CSV files; its items stay on the disk.
        """
        try:
            if self.storage.get(self._in_reading(MADE_OF)) != key.encode():
                return None
            sums = json.loads(self.storage.get(self._in_reading(SUMS)))
            if not sums_hold(sums, lambda name: self.storage.get(self._in_reading(name))):
                return None
            summary = Summary.from_json(json.loads(self.storage.get(self._in_reading("summary.json"))))
        except (OSError, ValueError, RunError, AttributeError):
            return None
        names = [name for name in sums if name.startswith("tables/") and name.endswith(".csv")]
        tables = {unquote(n[7:-4]): from_csv(self.storage.get(self._in_reading(n))) for n in names}
        return replace(summary, tables=tables)

    def put_summary(self, summary: Summary, key: str) -> None:
        """Write tables and items, then ``summary.json``; a report that was made of another summary is taken away.

        Args:
            summary: of the reading.
            key: what it was made of.

        Raises:
            RunError: a number is not finite, or the folder cannot be written.
        """
        data = to_json(summary.to_json(), "summary")
        files = table_files(summary.tables)
        target = self._in_reading("summary.json")
        if self.storage.exists(target) and self.storage.get(target) != data:
            self._remove_report()
        self._remove_summary_files()
        derived = {f"tables/{name}": content for name, content in files.items()}
        derived |= {f"{ITEMS}/{folder_name(name)}.parquet": to_parquet(table) for name, table in summary.items.items()}
        # What it was made of names the code that ran: it is no part of the result, and a wrong one has it made anew.
        for name, content in (derived | {MADE_OF: key.encode()}).items():
            self.put(self._in_reading(name), content)
        self.put(self._in_reading(SUMS), sums_of(derived | {"summary.json": data}))
        self.put(target, data)
        if self._own:
            self.put(f"{READINGS}/current", f"{self.reading_name}\n".encode())

    def _in_reading(self, name: str) -> str:
        return f"{READINGS}/{self.reading_name}/{name}"

    def _remove_report(self) -> None:
        report = "report.html" if self._own else self._in_reading("report.html")
        if self.storage.exists(report):
            self._say("report.html was made of other numbers and is removed: medground report makes it anew")
            self.storage.delete(report)
