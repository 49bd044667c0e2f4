"""Files that are either whole or not there, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

from medground.storage.base import Safety

_PREFIX, _SUFFIX = ".partial-", ".tmp"
_count = itertools.count()


def write_atomic(path: Path, data: bytes, *, safe: Safety = "name") -> None:
    """Write ``data`` to ``path`` so that a reader, a kill or a power cut sees the old file or the new one.

    The bytes go to a file beside it, reach the disk, and take the name in one step, which reaches the disk as well.

    Args:
        path: the file.
        data: its content.
        safe: what to wait for. After a power cut a file that is less than ``content`` safe may be empty or cut, which
            is enough where its hash stands elsewhere.

    Raises:
        OSError: the disk is full or the folder cannot be written; the old file still stands, nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{_PREFIX}{os.getpid()}-{next(_count)}{_SUFFIX}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            if safe != "process":
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    if safe == "name":
        _sync_folder(path.parent)


def create_atomic(path: Path, data: bytes) -> bool:
    """Write ``data`` to ``path`` where there is no such file; return whether this call did.

    Raises:
        OSError: the disk is full, or the folder cannot be written or is on a file system without hard links.
    """
    partial = path.with_name(f"{_PREFIX}{os.getpid()}-{next(_count)}{_SUFFIX}")
    try:
        partial.write_bytes(data)
        os.link(partial, path)
    except FileExistsError:
        return False
    finally:
        partial.unlink(missing_ok=True)
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_leftover(path: Path) -> bool:
    """Return whether a file is one that is being written, or that a killed process left half written."""
    return path.name.startswith(_PREFIX) and path.name.endswith(_SUFFIX)


def remove_leftovers(folder: Path) -> int:
    """Remove what a killed process left half written below ``folder``; return how many files that were."""
    leftovers = [path for path in folder.rglob(f"{_PREFIX}*{_SUFFIX}") if path.is_file()]
    for path in leftovers:
        path.unlink()
    return len(leftovers)
