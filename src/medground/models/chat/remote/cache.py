"""Successful replies on disk, so that none is paid for twice: SQLite in WAL mode, one row a request.

The key is the SHA-256 of everything that was sent, so no key, path or text of a request stands in the file; a reply
stands in it as it came. Several runs share a file; shards of a run have one each, joined by :func:`merge`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from medground.errors import RunError

FOLDER_VARIABLE = "MEDGROUND_REPLIES"
"""Environment variable: a folder for the files of this process alone."""
_DEFAULT = "default.sqlite3"
_TABLES = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS served (asked TEXT PRIMARY KEY, named TEXT NOT NULL) WITHOUT ROWID;
"""


class ReplyCache:
    """Replies by key. Thread-safe; safe for several processes on a local disk.

    Args:
        path: of the file; it and its folder are made.

    Raises:
        RunError: the file cannot be opened, or is no such cache.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise RunError(
                "the cache of replies cannot be opened",
                where=path.name,
                expected="an SQLite file of medground on a local disk",
                got=str(error).splitlines()[0],
                fix="name another file as the model's cache",
            ) from error

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the reply to a request, as it was put."""
        with self._lock:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def put(self, key: str, reply: dict[str, Any]) -> None:
        """Keep a reply; it is on disk when this returns. The first reply to a request stays."""
        text = json.dumps(reply, sort_keys=True)
        with self._lock:
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, text))

    def served(self, asked: str, named: str) -> str:
        """Return by which name the server of ``asked`` was first known; it becomes ``named`` where it had none."""
        with self._lock:
            self._db.execute("INSERT OR IGNORE INTO served VALUES (?, ?)", (asked, named))
            row = self._db.execute("SELECT named FROM served WHERE asked = ?", (asked,)).fetchone()
        return str(row[0])

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def cache_file(named: Path | None) -> Path:
    """Return the file of a cache: the one named, or the user's; where a folder is set for this process, one in it."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        return named or _users_file()
    return Path(folder) / (_DEFAULT if named is None else quote(str(named.resolve()), safe=""))


def plain_file(name: str) -> Path:
    """Return the file that stands for ``name``, the name of a file that :func:`cache_file` put into a folder."""
    return _users_file() if name == _DEFAULT else Path(unquote(name))


def _users_file() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "medground" / "replies.sqlite3"


def settle(path: Path) -> None:
    """Bring what stands in the log beside a cache into the file itself, so that the file alone can be copied."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def merge(target: Path, sources: Sequence[Path]) -> int:
    """Join caches into one; the first reply to a request stays. Returns how many replies were new.

    Raises:
        RunError: a source is no such cache.
    """
    cache = ReplyCache(target)
    before = len(cache)
    for source in sources:
        if not source.is_file():
            raise RunError("there is no cache of replies to join", where=source.name)
        other = ReplyCache(source)
        with other._lock, cache._lock:
            for table in ("replies", "served"):
                rows = other._db.execute(f"SELECT * FROM {table}")  # noqa: S608  (names of a literal tuple)
                cache._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows)  # noqa: S608
        other.close()
    added = len(cache) - before
    cache.close()
    return added
