"""How many requests may be on their way, how many a minute, and when a budget ends a run. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from medground.errors import ModelError


class StopRunError(ModelError):
    """Every further request would fail in the same way: the run stops."""


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


class Rate:
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
class Budget:
    """What a run may cost. A request's greatest cost is set aside before it is sent, so no bound is ever passed.

    Attributes:
        tokens: most tokens, prompt and completion; None: no bound.
        money: most money, in the currency of the prices; None: no bound.
    """

    tokens: int | None = None
    money: float | None = None
    _tokens: float = field(default=0.0, repr=False)
    _money: float = field(default=0.0, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reserve(self, tokens: float, money: float) -> None:
        """Set aside what a request may cost at most.

        Raises:
            StopRunError: the budget could be passed.
        """
        with self._lock:
            for name, bound, spent, more in (
                ("tokens", self.tokens, self._tokens, tokens),
                ("money", self.money, self._money, money),
            ):
                if bound is not None and spent + more > bound:
                    raise StopRunError(
                        f"the budget of {name} could be passed by the next request",
                        where=f"budget.{name}",
                        expected=f"at most {bound:g}",
                        got=f"{spent:g} spent or on its way, {more:g} more at most",
                        fix="replies so far are kept; raise the budget and run again",
                    )
            self._tokens += tokens
            self._money += money

    def settle(self, reserved: tuple[float, float], spent: tuple[float, float]) -> None:
        """Put what a request really cost in the place of what was set aside."""
        with self._lock:
            self._tokens += spent[0] - reserved[0]
            self._money += spent[1] - reserved[1]


@dataclass
class Cost:
    """What one request takes from a budget: its greatest cost while it is on its way, then what it really cost.

    Attributes:
        budget: of the run.
        most: tokens and money that it may cost.
    """

    budget: Budget
    most: tuple[float, float]
    _held: bool = False

    def reserve(self) -> None:
        """Set the greatest cost aside.

        Raises:
            StopRunError: the budget could be passed.
        """
        self.budget.reserve(*self.most)
        self._held = True

    def settle(self, spent: tuple[float, float] | None) -> None:
        """Put what was spent in its place; None: the server does not say, and the greatest cost stays."""
        if spent is not None:
            self.budget.settle(self.most, spent)
        self._held = False

    def release(self) -> None:
        """Give back what is still set aside: nothing was answered."""
        if self._held:
            self.budget.settle(self.most, (0.0, 0.0))
            self._held = False
