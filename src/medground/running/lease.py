"""A lease in place of a lock: where a run lies on a file system without locks, or behind an address.

A lease is a value that names its holder and the second until which it holds; the holder renews it while it works. Who
is killed leaves one that runs out. Clocks of machines that share a run may differ by less than ``SKEW``.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from medground.errors import RunError
from medground.storage import Storage

LEASES = "leases"
TERM = 120.0
"""Seconds that a lease holds unless it is renewed."""
SKEW = 30.0
"""Seconds by which the clocks of two machines may differ."""
_RENEWALS = 4


class Lease:
    """Holds a name in a storage, from ``acquire`` to ``release``.

    Args:
        storage: of the run.
        name: what is held: ``run``, or a shard.
        excluded: given the name of another live lease, whether it forbids this one.
        term: seconds that it holds unless it is renewed.
        clock: tells the time.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        excluded: Callable[[str], bool] = lambda _: False,
        *,
        term: float = TERM,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._storage, self._name, self._excluded = storage, name, excluded
        self._term, self._clock = term, clock
        self._token = uuid.uuid4().hex
        self._ended = threading.Event()
        self._renewing: threading.Thread | None = None
        self.lost = False

    @property
    def _key(self) -> str:
        return f"{LEASES}/{self._name}.json"

    def acquire(self) -> None:
        """Take the lease.

        Raises:
            RunError: another process holds it, or one that excludes it.
            OSError: the storage cannot be reached or written.
        """
        if not self._storage.create(self._key, self._record()):
            self._take_over()
        if self._holder(self._key).get("token") != self._token:  # two took over the same lease: one of them stays
            raise self._refused(self._key)
        for stored in self._storage.list(f"{LEASES}/"):
            other = stored.key.rpartition("/")[2].removesuffix(".json")
            if other != self._name and self._excluded(other) and self._lives(stored.key):
                self._storage.delete(self._key)
                raise self._refused(stored.key)
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()

    def release(self) -> None:
        """Give the lease back, unless another process has taken it over."""
        if self._renewing is None:
            return
        self._ended.set()
        self._renewing.join()
        self._renewing = None
        if self._holder(self._key).get("token") == self._token:
            self._storage.delete(self._key)

    def _take_over(self) -> None:
        if self._lives(self._key):
            raise self._refused(self._key)
        self._storage.delete(self._key)
        if not self._storage.create(self._key, self._record()):
            raise self._refused(self._key)

    def _lives(self, key: str) -> bool:
        return float(self._holder(key).get("until", 0.0)) + SKEW > self._clock()

    def _holder(self, key: str) -> dict[str, Any]:
        """Return what a lease says; nothing where there is none, or where it was cut while it was written."""
        try:
            record = json.loads(self._storage.get(key))
        except (FileNotFoundError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _record(self) -> bytes:
        holder = f"process {os.getpid()} on {platform.node()}"
        record = {"token": self._token, "holder": holder, "until": self._clock() + self._term}
        return json.dumps(record).encode()

    def _renew(self) -> None:
        while not self._ended.wait(self._term / _RENEWALS):
            try:
                if self._holder(self._key).get("token") != self._token:
                    self.lost = True
                    return
                self._storage.put(self._key, self._record(), safe="process")
            except OSError:
                continue  # a storage that is out of reach for a moment; the lease may run out meanwhile

    def _refused(self, key: str) -> RunError:
        held = self._holder(key)
        seconds = max(0.0, float(held.get("until", 0.0)) + SKEW - self._clock())
        return RunError(
            "another process is working in this run",
            where=f"{self._storage.where}/{key}",
            got=held.get("holder", "a process that has only just started"),
            fix=f"wait until it has ended; if it was killed, its lease runs out in {seconds:.0f} s",
        )
