"""What a run may cost: budgets of tokens and money that stop before they are passed, of one model and of a whole run.

A run lays its budget over everybody whom it builds; a model that costs something takes it when it is made, and asks it
before every request, beside its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from medground.errors import ConfigError, ModelError


class StopRunError(ModelError):
    """Every further request would fail in the same way: the run stops."""


@dataclass
class Budget:
    """What a run may cost. A request's greatest cost is set aside before it is sent, so no bound is ever passed.

    Attributes:
        tokens: most tokens, prompt and completion; None: no bound.
        money: most money, in the currency of the prices; None: no bound.
        where: what is named where it ends a run: ``budget``, or ``engine.budget`` for one of the whole run.
    """

    tokens: int | None = None
    money: float | None = None
    where: str = "budget"
    _currency: str | None = field(default=None, repr=False)
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
                        where=f"{self.where}.{name}" if self.where == "budget" else f"{self.where}_{name}",
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

    def spend(self, tokens: float, money: float) -> None:
        """Count what was spent before: an earlier session of the run, say."""
        with self._lock:
            self._tokens += tokens
            self._money += money

    def in_currency(self, currency: str | None, model: str) -> None:
        """Take note of what a model is paid in.

        Raises:
            ConfigError: there is a bound on money, and the model has no prices, or others are paid in another currency.
        """
        if self.money is None:
            return
        with self._lock:
            if currency is None:
                raise ConfigError(
                    "a budget of money needs the prices of every model behind a server",
                    where=f"{self.where}_money",
                    got=f"{model} without prices",
                    fix="prices: FILE for this model",
                )
            if self._currency not in (None, currency):
                raise ConfigError(
                    "one budget of money cannot hold two currencies",
                    where=f"{self.where}_money",
                    expected=self._currency,
                    got=f"{currency} for {model}",
                )
            self._currency = currency


_RUN: ContextVar[Budget | None] = ContextVar("budget of the run", default=None)


@contextmanager
def within(budget: Budget | None) -> Iterator[None]:
    """Have everything that is made inside the block take from a budget."""
    token = _RUN.set(budget)
    try:
        yield
    finally:
        _RUN.reset(token)


def budget_of_the_run() -> Budget | None:
    """Return the budget that holds where this is called; None: there is none."""
    return _RUN.get()
