"""How far judges agree: kappa, raw agreement, prevalence and bias, and alpha for several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Verdicts = Sequence[int | None]


@dataclass(frozen=True)
class Agreement:
    """Two judges on the turns that both decided.

    Attributes:
        both_one: both say 1.
        first_only: the first alone says 1.
        second_only: the second alone says 1.
        both_zero: both say 0.
        missing: turns that either did not decide.
        reason: why kappa is undefined.
    """

    both_one: int
    first_only: int
    second_only: int
    both_zero: int
    missing: int
    reason: str | None = None

    @property
    def n(self) -> int:
        """Turns that both decided."""
        return self.both_one + self.first_only + self.second_only + self.both_zero

    @property
    def raw(self) -> float | None:
        """Share of equal verdicts."""
        return (self.both_one + self.both_zero) / self.n if self.n else None

    @property
    def expected(self) -> float | None:
        """Agreement by chance, from each judge's own rate."""
        if not self.n:
            return None
        first, second = self.rates
        return first * second + (1 - first) * (1 - second)

    @property
    def rates(self) -> tuple[float, float]:
        """Each judge's share of ones."""
        return (self.both_one + self.first_only) / self.n, (self.both_one + self.second_only) / self.n

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where both judges are constant."""
        raw, expected = self.raw, self.expected
        if raw is None or expected is None or expected >= 1.0:
            return None
        return (raw - expected) / (1 - expected)

    @property
    def pabak(self) -> float | None:
        """Kappa adjusted for prevalence and bias: 2 raw - 1."""
        return None if self.raw is None else 2 * self.raw - 1

    @property
    def prevalence(self) -> float | None:
        """(both one - both zero) / n."""
        return (self.both_one - self.both_zero) / self.n if self.n else None

    @property
    def bias(self) -> float | None:
        """(first alone - second alone) / n."""
        return (self.first_only - self.second_only) / self.n if self.n else None


def agreement(first: Verdicts, second: Verdicts) -> Agreement:
    """Compare two judges, turn by turn; a missing verdict of either leaves the turn out.

    >>> agreement([1, 1, 0, None], [1, 0, 0, 1]).raw
    0.6666666666666666
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    counts = Counter(pairs)
    constant = len({a for a, _ in pairs}) == 1 and {a for a, _ in pairs} == {b for _, b in pairs}
    reason = "no turn that both judged" if not pairs else "both judges are constant" if constant else None
    missing = len(first) - len(pairs)
    return Agreement(counts[1, 1], counts[1, 0], counts[0, 1], counts[0, 0], missing, reason)


def majority(verdicts: Sequence[int | None]) -> int | None:
    """The verdict of more than half of those that decided; a tie, or nobody, is undefined."""
    known = Counter(v for v in verdicts if v is not None)
    ranked = known.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def alpha(judges: Sequence[Verdicts]) -> float | None:
    """Krippendorff's nominal alpha; turns with fewer than two verdicts are left out."""
    units = [[v for v in unit if v is not None] for unit in zip(*judges, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    totals = Counter(v for unit in units for v in unit)
    n = sum(totals.values())
    if n < 2:
        return None
    observed = 0.0
    for unit in units:
        counts = Counter(unit)
        observed += sum(counts[a] * counts[b] for a in counts for b in counts if a != b) / (len(unit) - 1)
    expected = sum(totals[a] * totals[b] for a in totals for b in totals if a != b) / (n - 1)
    return 1 - observed / expected if expected else None
