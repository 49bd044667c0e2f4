"""One process a run folder.

The operating system holds the lock and lets go of it when the process ends, however it ends: there is no stale lock.
The text in the file is only for people. Processes that each work on a shard share the lock of the folder.
"""

from __future__ import annotations

import fcntl
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from medground.errors import RunError

LOCK_FILE = ".lock"


class NoLocksError(Exception):
    """The file system has no locks."""


class FolderLock:
    """A lock on a folder, held from ``acquire`` to ``release``.

    Args:
        folder: made where it does not exist.
        shared: whether others may hold it too who share it.
    """

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self._path, self._shared = folder / LOCK_FILE, shared
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            RunError: another process, or another run in this process, holds it.
            NoLocksError: the file system has no locks.
            OSError: the folder cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 500).decode(errors="replace").strip()
            os.close(handle)
            raise RunError(
                "another process is working in this run folder",
                where=self._path.parent,
                got=holder or "a process that has only just started",
                fix="wait until it has ended, or choose another folder",
            ) from None
        except OSError as error:
            os.close(handle)
            raise NoLocksError(error.strerror) from error
        self._handle = handle
        if self._shared:
            return
        note = f"process {os.getpid()} on {platform.node()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n"
        _overwrite(handle, note.encode())

    def release(self) -> None:
        """Let go of the lock. The empty file stays: removing it could take away the lock of the next process."""
        if self._handle is not None:
            if not self._shared:
                _overwrite(self._handle, b"")
            os.close(self._handle)
            self._handle = None


def _overwrite(handle: int, text: bytes) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)
    except OSError:
        # The note is a courtesy; on a full disk the lock holds without it.
        return
