"""How many failures and how much time a run may take, and how work ends that takes longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TypeVar

from medground.errors import LimitError
from medground.running.chunks import Failure

T = TypeVar("T")
PATIENCE = 5.0
"""Seconds that work has after the deadline to end by itself: to store what is complete."""


@dataclass
class Allowance:
    """How many failures and how much time a run may take.

    Attributes:
        failures: at most this many; None: any number.
        deadline: monotonic time at which the run ends; None: never.
    """

    failures: int | None = None
    deadline: float | None = None
    failed: int = 0
    stopped: bool = False

    def count(self, failure: Failure) -> None:
        """Count one failure.

        Raises:
            LimitError: it is one too many.
        """
        self.failed += 1
        if self.failures is not None and self.failed > self.failures:
            raise LimitError(
                "more items failed than max_failures allows",
                where=failure.item,
                expected=f"at most {self.failures}",
                got=f"{self.failed}, the last: {failure.detail}",
                fix="correct the cause (failures.jsonl lists them), or raise engine.max_failures",
            )

    def left(self) -> float | None:
        """Return the seconds that are left, 0 at least; None: any number."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check_time(self) -> None:
        """Raise a LimitError once the deadline has passed or the work was given up."""
        if self.stopped or self.left() == 0.0:
            raise self._passed()

    def _passed(self) -> LimitError:
        return LimitError(
            "the run's deadline has passed",
            where="engine.deadline",
            fix="the same command goes on from the finished chunks; a larger engine.deadline lets it end",
        )

    def within(self, work: Callable[[], T], patience: float | None = None) -> T:
        """Do some work, and leave it to itself where it has not ended soon after the deadline.

        With a deadline the work is done in a thread of its own, because nothing can end a model that hangs; the thread
        does not keep the process alive.

        Args:
            work: what to do.
            patience: seconds after the deadline in which it may end by itself, ``PATIENCE`` by default.

        Raises:
            LimitError: the deadline has passed.
            BaseException: whatever the work raised.
        """
        if self.deadline is None:
            return work()
        patience = PATIENCE if patience is None else patience
        result: Future[T] = Future()
        threading.Thread(target=_into, args=(result, work), name="medground-engine", daemon=True).start()
        try:
            wait([result], (self.left() or 0.0) + patience)
        except BaseException:  # Ctrl-C is raised here, not in the thread: what is complete is stored all the same
            self.stopped = True
            wait([result], patience)
            raise
        if not result.done():
            self.stopped = True
            raise self._passed()
        return result.result()


def _into(result: Future[T], work: Callable[[], T]) -> None:
    try:
        result.set_result(work())
    except BaseException as error:
        result.set_exception(error)
