"""Where the time of a run went."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STAGES = ("open", "load", "infer", "measure", "write", "wait")


class Profile:
    """Seconds a stage of one task, summed over threads; ``wait`` is the model waiting for decoded items.

    With two workers ``load`` may exceed the time on the clock. The stage to make faster is ``infer`` where ``wait`` is
    small, and otherwise ``load`` and ``measure``, or their number of workers.
    """

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path
        self.items = 0
        self.clock = 0.0
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._lock = threading.Lock()

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage. Safe in any thread."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            with self._lock:
                self.seconds[stage] += spent

    @contextmanager
    def on_the_clock(self) -> Iterator[None]:
        """Add the time of the block to the time on the clock."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.clock += time.perf_counter() - start

    def as_dict(self) -> dict[str, Any]:
        """Return the profile, JSON-like."""
        return {
            "task": list(self.path),
            "items": self.items,
            "items_per_second": self.items / self.clock if self.clock else None,
            "clock": self.clock,
            "seconds": self.seconds,
        }


def total(profiles: list[Profile]) -> Profile:
    """Return the sum of the profiles of tasks that ran one after another."""
    result = Profile()
    for profile in profiles:
        result.items += profile.items
        result.clock += profile.clock
        for stage, seconds in profile.seconds.items():
            result.seconds[stage] += seconds
    return result
