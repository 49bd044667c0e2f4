"""Files that are either whole or not there, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

_PREFIX, _SUFFIX = ".partial-", ".tmp"
_count = itertools.count()


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader, a kill or a power cut sees the old file or the new one.

    The bytes go to a file beside it, reach the disk, and take the name in one step, which reaches the disk as well.

    Raises:
        OSError: the disk is full or the folder cannot be written; the old file still stands, nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{_PREFIX}{os.getpid()}-{next(_count)}{_SUFFIX}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path) -> int:
    """Remove what a killed process left half written below ``folder``; return how many files that were."""
    leftovers = [path for path in folder.rglob(f"{_PREFIX}*{_SUFFIX}") if path.is_file()]
    for path in leftovers:
        path.unlink()
    return len(leftovers)
