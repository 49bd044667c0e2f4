"""Replies of chat models that are kept: one file a shard, because SQLite must not be shared between machines.

A shard is told its folder by the environment variable ``MEDGROUND_REPLIES``; a merge joins what the shards kept into
the file that a run without shards would have used.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medground.models.chat.remote.cache import FOLDER_VARIABLE, merge, plain_file, settle
from medground.running.shards import SHARDS, Shard
from medground.storage import FolderStorage, Storage

_REPLIES = "replies"


@contextmanager
def replies_of_shard(storage: Storage, shard: Shard) -> Iterator[None]:
    """Have chat models keep their replies in files of this shard while the context lasts."""
    key = f"{shard.folder}/{_REPLIES}"
    if isinstance(storage, FolderStorage):
        with _told(storage.path(key).resolve()):
            yield
        return
    with tempfile.TemporaryDirectory(prefix="medground-") as name:
        folder = Path(name)
        for stored in storage.list(f"{key}/"):
            (folder / stored.key.rpartition("/")[2]).write_bytes(storage.get(stored.key))
        try:
            with _told(folder):
                yield
        finally:
            for file in sorted(path for path in folder.iterdir() if _is_cache(path.name)):
                settle(file)
                storage.put(f"{key}/{file.name}", file.read_bytes())


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    before = os.environ.get(FOLDER_VARIABLE)
    os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(FOLDER_VARIABLE, None)
        if before is not None:
            os.environ[FOLDER_VARIABLE] = before


def _is_cache(name: str) -> bool:
    return not name.endswith(("-wal", "-shm", ".jsonl"))


def join_replies(storage: Storage) -> int:
    """Join the replies that shards kept into the files of runs without shards; return how many were new."""
    added = 0
    with tempfile.TemporaryDirectory(prefix="medground-") as name:
        for number, stored in enumerate(list(storage.list(f"{SHARDS}/"))):
            *_, folder, file = stored.key.split("/")
            if folder != _REPLIES or not _is_cache(file):
                continue
            if isinstance(storage, FolderStorage):
                source = storage.path(stored.key)
            else:
                source = Path(name) / f"{number}.sqlite3"
                source.write_bytes(storage.get(stored.key))
            added += merge(plain_file(file), [source])
    return added
