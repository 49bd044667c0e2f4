"""Who may work in a run at one time: one session, or any number of shards that each do another part.

In a folder the operating system's locks decide (:mod:`medground.running.lock`); a file system without locks and an
address have leases (:mod:`medground.running.lease`).
"""

from __future__ import annotations

from medground.errors import RunError
from medground.running.lease import Lease
from medground.running.lock import FolderLock, NoLocksError
from medground.running.shards import Shard
from medground.storage import FolderStorage, Storage

_RUN = "run"


class Holding:
    """Holds a run, or one shard of it.

    Args:
        storage: of the run.
        shard: which; None: the whole run.
    """

    def __init__(self, storage: Storage, shard: Shard | None = None) -> None:
        self._storage, self._shard = storage, shard
        self._locks: list[FolderLock] = []
        self._lease: Lease | None = None

    @property
    def lost(self) -> bool:
        """Whether a lease has run out and another process has taken it."""
        return self._lease is not None and self._lease.lost

    def acquire(self) -> None:
        """Take hold.

        Raises:
            RunError: another process holds the run, or this shard.
            OSError: the storage cannot be reached or written.
        """
        if not isinstance(self._storage, FolderStorage):
            self._acquire_lease()
            return
        try:
            self._acquire_locks(self._storage)
        except NoLocksError:
            self.release()
            self._acquire_lease()

    def _acquire_locks(self, storage: FolderStorage) -> None:
        wanted = [FolderLock(storage.root, shared=self._shard is not None)]
        if self._shard is not None:
            wanted.append(FolderLock(storage.root / self._shard.folder))
        for lock in wanted:
            try:
                lock.acquire()
            except BaseException:
                self.release()
                raise
            self._locks.append(lock)

    def _acquire_lease(self) -> None:
        name = _RUN if self._shard is None else self._shard.name
        whole = self._shard is None
        lease = Lease(self._storage, name, excluded=lambda other: whole or other == _RUN)
        lease.acquire()
        self._lease = lease

    def release(self) -> None:
        """Let go."""
        for lock in reversed(self._locks):
            lock.release()
        self._locks.clear()
        if self._lease is not None:
            self._lease.release()
            self._lease = None


def refuse_lost(holding: Holding, where: str) -> None:
    """Raise RunError where another process has taken a lease over."""
    if holding.lost:
        raise RunError(
            "the lease of this run has run out and another process has taken it",
            where=where,
            fix="leave the other one to it; finished chunks are safe",
        )
