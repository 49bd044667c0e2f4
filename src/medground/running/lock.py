"""One process a run folder.

The operating system holds the lock and lets go of it when the process ends, however it ends: there is no stale lock.
The text in the file is only for people.
"""

from __future__ import annotations

import fcntl
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from medground.errors import RunError

LOCK_FILE = ".lock"


class FolderLock:
    """An exclusive lock on a folder, held from ``acquire`` to ``release``."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_FILE
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            RunError: another process, or another run in this process, holds it; or the file system has no locks.
        """
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
            raise RunError(
                "the run folder cannot be locked",
                where=self._path,
                expected="a file system with locks",
                got=error.strerror,
                fix="choose a folder on a local disk",
            ) from error
        self._handle = handle
        note = f"process {os.getpid()} on {platform.node()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n"
        _overwrite(handle, note.encode())

    def release(self) -> None:
        """Let go of the lock. The empty file stays: removing it could take away the lock of the next process."""
        if self._handle is not None:
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
