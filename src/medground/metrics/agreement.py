"""Agreement of readers or judges on the same items: raw, and beyond chance.

Cohen, Educ. Psychol. Meas. 1960 (kappa); Byrt et al., J. Clin. Epidemiol. 1993 (prevalence and bias); Krippendorff,
Content Analysis, 2004 (alpha).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters
from medground.metrics.inference import SHARE, Estimate, estimate
from medground.metrics.influence import of_statistic

Word = TypeVar("Word", bound=Hashable)


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
        bias: by how much the first says each category more often than the second.
        reason: why kappa is undefined; None where it is not.
    """

    n: int
    n_undefined: int
    raw: float | None
    kappa: float | None
    pabak: float | None
    prevalence: dict[str, float]
    bias: dict[str, float]
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
        return Agreement(0, left_out, None, None, None, {}, {}, "no item was read by both")
    raw = sum(a == b for a, b in pairs) / n
    shares = [(sum(a == c for a, _ in pairs) / n, sum(b == c for _, b in pairs) / n) for c in known]
    chance = sum(a * b for a, b in shares)
    number = max(2, len(known))
    pabak = (number * raw - 1) / (number - 1)
    prevalence = {str(category): (a + b) / 2 for category, (a, b) in zip(known, shares, strict=True)}
    bias = {str(category): a - b for category, (a, b) in zip(known, shares, strict=True)}
    # Both said one and the same thing throughout: chance agreement is 1, and nothing lies beyond it.
    if any(a == 1 and b == 1 for a, b in shares):
        return Agreement(n, left_out, raw, None, pabak, prevalence, bias, "both always say the same")
    return Agreement(n, left_out, raw, (raw - chance) / (1 - chance), pabak, prevalence, bias)


def estimate_kappa(first: Sequence[int | None], second: Sequence[int | None], by: Clusters) -> Estimate:
    """Return Cohen's kappa of two lists of 0 and 1 with its interval by clusters; None is an item that was not read.

    Args:
        first: (N,) of one.
        second: (N,) of the other.
        by: (N,) which items move together.
    """
    told = agreement(first, second, [0, 1])
    if told.kappa is None:
        return Estimate(None, n=told.n, n_undefined=told.n_undefined, reason=told.reason)
    tables = np.zeros((by.count, 2, 2))
    for code, a, b in zip(by.codes, first, second, strict=True):
        if a is not None and b is not None:
            tables[code, a, b] += 1
    items = tables.sum(axis=(1, 2))
    kept = tables[items > 0]
    part = of_statistic(lambda weight: _kappa(np.tensordot(weight, kept, 1)), items[items > 0] / told.n, told.n)
    return estimate(part, SHARE, bounds=(-1.0, 1.0))


def _kappa(table: NDArray[np.float64]) -> float:
    share = table / table.sum()
    chance = float(share.sum(axis=1) @ share.sum(axis=0))
    return (float(np.trace(share)) - chance) / (1 - chance)


def alpha(readers: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's nominal alpha of two readers or more; items that fewer than two read are left out.

    >>> round(alpha([[1, 1, 0, None], [1, 1, 0, 1], [1, 0, 0, 1]]), 3)
    0.643
    """
    read = [[word for word in item if word is not None] for item in zip(*readers, strict=True)]
    read = [item for item in read if len(item) > 1]
    totals = Counter(word for item in read for word in item)
    n = sum(totals.values())
    unlike = sum(_unlike(Counter(item)) / (len(item) - 1) for item in read)
    expected = _unlike(totals) / (n - 1) if n > 1 else 0.0
    return 1 - unlike / expected if expected else None


def _unlike(counts: Counter[Hashable]) -> int:
    """Ordered pairs of different words."""
    total = sum(counts.values())
    return total * total - sum(count * count for count in counts.values())


def majority(words: Sequence[Word | None]) -> Word | None:
    """What more readers say than anything else; None where two lead, or nobody read.

    >>> majority([1, 1, 0]), majority([1, 0]), majority([None])
    (1, None, None)
    """
    ranked = Counter(word for word in words if word is not None).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]
