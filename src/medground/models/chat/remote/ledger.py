"""What a run asked of a server: requests, tokens, cache hits, waits, money by a dated price file of the user's."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medground.errors import ConfigError


@dataclass(frozen=True)
class Prices:
    """What a model costs.

    Attributes:
        prompt: a million tokens of prompt.
        completion: a million tokens of completion.
        currency: of both.
        date: of the price list.
    """

    prompt: float
    completion: float
    currency: str
    date: str

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the money for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def read_prices(path: Path, model: str) -> Prices:
    """Return a model's prices from a YAML or JSON file.

    ``{date: 2026-11-01, currency: USD, models: {some-model: {prompt: 0.15, completion: 0.6}}}``, a million tokens each.

    Raises:
        ConfigError: the file does not say so.
    """
    import yaml

    try:
        stated = yaml.safe_load(path.read_text(encoding="utf-8"))
        entry = stated["models"][model]
        return Prices(float(entry["prompt"]), float(entry["completion"]), str(stated["currency"]), str(stated["date"]))
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            "the price file does not say what the model costs",
            where=path.name,
            expected=f"date, currency, and models.{model} with prompt and completion, a million tokens each",
            got=f"{type(error).__name__}: {error}".splitlines()[0],
        ) from error


class RequestLedger:
    """Counts what was asked of a server. Thread-safe."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.prices = prices
        self._counts: Counter[str] = Counter()
        self._sums = {"waited_s": 0.0, "money": 0.0}
        self._lock = threading.Lock()

    def count(self, what: str, by: int = 1) -> None:
        """Count ``requests``, ``retries``, ``cache_hits``, ``refusals``, ``timeouts``, ``errors``, ``re_asks`` ..."""
        with self._lock:
            self._counts[what] += by

    def wait(self, seconds: float) -> None:
        """Add to the time that requests waited before they were sent or sent again."""
        with self._lock:
            self._sums["waited_s"] += seconds

    def use(self, usage: Mapping[str, int]) -> float:
        """Add a reply's tokens; return its money (0 without prices). A reply without a count is counted as such."""
        if not usage:
            self.count("replies_without_usage")
            return 0.0
        prompt, completion = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        money = self.prices.cost(prompt, completion) if self.prices else 0.0
        with self._lock:
            self._counts["prompt_tokens"] += prompt
            self._counts["completion_tokens"] += completion
            self._sums["money"] += money
        return money

    def record(self) -> dict[str, Any]:
        """Return the counts as JSON-like data; money only where there are prices, with their date and currency."""
        with self._lock:
            counts = {**dict(sorted(self._counts.items())), "waited_s": round(self._sums["waited_s"], 3)}
            if self.prices is None:
                return counts
            money = {"money": self._sums["money"], "currency": self.prices.currency, "price_date": self.prices.date}
            return {**counts, **money}
