"""How many requests may be on their way, how many a minute, and what one takes from a budget. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from medground.spending import Budget, StopRunError


class Concurrency:
    """Grows by one a window of answers without trouble, halves when the server says that it is too much.

    Args:
        most: upper bound.
        start: at first.
    """

    def __init__(self, most: int, start: int | None = None) -> None:
        self.most = most
        self._allowed = float(min(most, start or most))
        self._going = 0
        self._changed = threading.Condition()

    @property
    def allowed(self) -> int:
        """Requests that may be on their way now."""
        return max(1, int(self._allowed))

    def __enter__(self) -> Concurrency:
        with self._changed:
            self._changed.wait_for(lambda: self._going < self.allowed)
            self._going += 1
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._going -= 1
            self._changed.notify()

    def grow(self) -> None:
        """Take note of an answer."""
        with self._changed:
            self._allowed = min(float(self.most), self._allowed + 1 / self._allowed)
            self._changed.notify()

    def shrink(self) -> None:
        """Take note of a refusal for want of capacity."""
        with self._changed:
            self._allowed = max(1.0, self._allowed / 2)


class Turns:
    """Lets equal requests wait for each other, so that the same one is never on its way twice."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[threading.Lock, int]] = {}
        self._changing = threading.Lock()

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        """Hold the turn of a request; nothing of it is kept once nobody wants it."""
        with self._changing:
            lock, wanted = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = lock, wanted + 1
        try:
            with lock:
                yield
        finally:
            with self._changing:
                lock, wanted = self._held.pop(key)
                if wanted > 1:
                    self._held[key] = lock, wanted - 1


class RateLimit:
    """At most so much a minute, after an idle minute all at once; what is asked for beyond is waited for.

    Args:
        per_minute: None: no limit.
        clock: seconds.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock, self._sleep = clock, sleep
        self._level = float(per_minute or 0)
        self._at = clock()
        self._lock = threading.Lock()

    def take(self, amount: float = 1) -> float:
        """Wait until there is room for ``amount`` and take it; return the seconds waited."""
        if self.per_minute is None:
            return 0.0
        with self._lock:
            now = self._clock()
            self._level = min(float(self.per_minute), self._level + (now - self._at) * self.per_minute / 60)
            self._at = now
            # A level below nothing is a debt that those who come later wait for too.
            self._level -= amount
            wait = max(0.0, -self._level * 60 / self.per_minute)
        if wait:
            self._sleep(wait)
        return wait


@dataclass
class Cost:
    """What one request takes from every budget: its greatest cost while it is on its way, then what it really cost.

    Attributes:
        budgets: of the model's entry and of the run.
        most: tokens and money that it may cost.
    """

    budgets: Sequence[Budget]
    most: tuple[float, float]
    _held: bool = False

    def reserve(self) -> None:
        """Set the greatest cost aside, in all budgets or in none.

        Raises:
            StopRunError: a budget could be passed.
        """
        held: list[Budget] = []
        try:
            for budget in self.budgets:
                budget.reserve(*self.most)
                held.append(budget)
        except StopRunError:
            for budget in held:
                budget.settle(self.most, (0.0, 0.0))
            raise
        self._held = True

    def settle(self, spent: tuple[float, float] | None) -> None:
        """Put what was spent in its place; None: the server does not say, and the greatest cost stays."""
        if spent is not None:
            self._put(spent)
        self._held = False

    def release(self) -> None:
        """Give back what is still set aside: nothing was answered."""
        if self._held:
            self._put((0.0, 0.0))
            self._held = False

    def _put(self, spent: tuple[float, float]) -> None:
        for budget in self.budgets:
            budget.settle(self.most, spent)
