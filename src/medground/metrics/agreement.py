"""Agreement of two readers or judges on the same items: raw, and beyond chance (Cohen 1960; Byrt et al. 1993)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from medground.errors import MetricError


@dataclass(frozen=True)
class Agreement:
    """How far two agree.

    Attributes:
        n: items that both read.
        n_undefined: items that one of them did not.
        raw: share of items read alike; None without items.
        kappa: Cohen's, agreement beyond that of chance; None without items, or where both always say the same word.
        pabak: kappa adjusted for prevalence and bias: (k raw - 1) / (k - 1) over k categories; None without items.
        prevalence: share of each category, over both readers.
        reason: why kappa is undefined; None where it is not.
    """

    n: int
    n_undefined: int
    raw: float | None
    kappa: float | None
    pabak: float | None
    prevalence: dict[str, float]
    reason: str | None = None


def agreement(
    first: Sequence[Hashable | None], second: Sequence[Hashable | None], categories: Sequence[Hashable] | None = None
) -> Agreement:
    """Return the agreement of two lists of categories; None is an item that was not read.

    Args:
        first: (N,) of one.
        second: (N,) of the other.
        categories: all that there are; by default those that occur, at least two.

    Raises:
        MetricError: the lists differ in length.
    """
    if len(first) != len(second):
        raise MetricError("two readers are compared on the same items", expected=len(first), got=len(second))
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    n, left_out = len(pairs), len(first) - len(pairs)
    known = list(dict.fromkeys(categories or [value for pair in pairs for value in pair]))
    if not n:
        return Agreement(0, left_out, None, None, None, {}, "no item was read by both")
    raw = sum(a == b for a, b in pairs) / n
    shares = [(sum(a == c for a, _ in pairs) / n, sum(b == c for _, b in pairs) / n) for c in known]
    chance = sum(a * b for a, b in shares)
    number = max(2, len(known))
    pabak = (number * raw - 1) / (number - 1)
    prevalence = {str(category): (a + b) / 2 for category, (a, b) in zip(known, shares, strict=True)}
    # Both said one and the same thing throughout: chance agreement is 1, and nothing lies beyond it.
    if any(a == 1 and b == 1 for a, b in shares):
        return Agreement(n, left_out, raw, None, pabak, prevalence, "both always say the same")
    return Agreement(n, left_out, raw, (raw - chance) / (1 - chance), pabak, prevalence)
