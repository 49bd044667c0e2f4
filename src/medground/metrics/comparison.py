"""Is one model better than another? Paired bootstrap, McNemar's test, Holm's correction; intervals of a share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters, bootstrap_mean, bootstrap_ranking, percentile_interval
from medground.metrics.classification import auc, table
from medground.metrics.values import Value, as_numbers, mean_defined


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """First model minus second, on the items that both have.

    Attributes:
        value: the difference; None where undefined.
        reason: why it is undefined; None where it is defined.
        low: lower limit of the bootstrap interval.
        high: upper limit.
        p: two-sided p value, see `bootstrap_p`.
        n: items used.
        n_undefined: items left out because one model or both have no value there.
        skipped: replicates without a value.
    """

    value: float | None
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    n_undefined: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test in its four usual forms; the chi-square forms are None without a discordant pair.

    Attributes:
        exact_p: two-sided binomial.
        mid_p: the same with half the weight on the observed table (Fagerland et al., 2013).
        chi2: (b - c)^2 / (b + c), one degree of freedom.
        chi2_p: its p value.
        chi2_continuity: (|b - c| - 1)^2 / (b + c), 0 for b = c (Edwards).
        chi2_continuity_p: its p value.
    """

    exact_p: float
    mid_p: float
    chi2: float | None
    chi2_p: float | None
    chi2_continuity: float | None
    chi2_continuity_p: float | None


def paired_means(
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> ModelDifference:
    """Compare the means of two models (pointing, Dice, correctness) over the items where both are defined.

    Args:
        first: (N,) values of the first model, NaN (None) where undefined.
        second: (N,) values of the second on the same items.
        by: clusters of the N items.
        replicates: number of draws; each draws the same patients for both models.
        seed: another seed, other draws.
        level: of the interval.
    """
    a, b = as_numbers(first), as_numbers(second)
    if a.ndim != 1 or a.shape != b.shape:
        raise MetricError("Two models need the same items.", expected=f"shape {a.shape}", got=b.shape)
    differences = a - b
    observed = mean_defined(differences, reason="no item where both models have a value")
    drawn = bootstrap_mean(differences, by, replicates, seed)
    return paired_difference(observed, Value(0.0), drawn, np.zeros(replicates), level)


def paired_aucs(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> list[ModelDifference]:
    """Compare the AUC of two models class by class, on the same cases and the same draws.

    Args:
        labels: (N, C); 0, 1 or NaN (not annotated).
        first: (N, C) scores of the first model.
        second: (N, C) scores of the second.
        by: clusters of the N cases.
        replicates: number of draws.
        seed: another seed, other draws.
        level: of the intervals.

    Returns:
        One difference a class; correct their p values with `holm`.
    """
    (truth, a), (_, b) = table(labels, first), table(labels, second)
    drawn = [bootstrap_ranking(truth, scores, by, replicates, seed).auc for scores in (a, b)]
    return [
        paired_difference(auc(truth[:, c], a[:, c]), auc(truth[:, c], b[:, c]), drawn[0][:, c], drawn[1][:, c], level)
        for c in range(truth.shape[1])
    ]


def paired_difference(
    first: Value, second: Value, first_drawn: ArrayLike, second_drawn: ArrayLike, level: float = 0.95
) -> ModelDifference:
    """Compare any statistic of two models from replicates with the same draws (same items, clusters and seed).

    Args:
        first: what was observed for the first model.
        second: for the second, on the same items.
        first_drawn: (B,) replicates of the first, NaN where undefined.
        second_drawn: (B,) of the second.
        level: of the interval.
    """
    if first.value is None or second.value is None:
        reason = first.reason or second.reason
        return ModelDifference(None, reason, n=first.n, n_undefined=first.n_undefined)
    drawn = np.asarray(first_drawn, dtype=np.float64) - np.asarray(second_drawn, dtype=np.float64)
    interval = percentile_interval(drawn, level)
    return ModelDifference(
        first.value - second.value,
        None,
        interval.low,
        interval.high,
        bootstrap_p(drawn),
        first.n,
        first.n_undefined,
        interval.skipped,
    )


def bootstrap_p(differences: ArrayLike) -> float | None:
    """Two-sided p value of "no difference", by turning the percentile interval round.

    p = 2 min(#{d <= 0} + 1, #{d >= 0} + 1) / (B + 1), at most 1, over the B replicates with a value: the level at
    which 0 would just leave the interval. It is never 0.

    Args:
        differences: (B,) replicates of the difference, NaN where undefined.

    Returns:
        The p value, or None where no replicate has a value.

    Example:
        >>> bootstrap_p([0.1, 0.2, -0.1])
        1.0
        >>> bootstrap_p([0.1] * 99)
        0.02
    """
    array = np.asarray(differences, dtype=np.float64)
    defined = array[~np.isnan(array)]
    if not defined.size:
        return None
    tail = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
    return float(min(1.0, 2 * (tail + 1) / (defined.size + 1)))


def discordant(first_right: ArrayLike, second_right: ArrayLike) -> tuple[int, int]:
    """Count pairs on which the models disagree: (first right and second wrong, the reverse).

    Args:
        first_right: (N,) 1 where the first model is right, 0 where wrong, NaN (None) where undefined.
        second_right: (N,) the same of the second; items undefined in either are left out.

    Example:
        >>> discordant([1, 1, 0, None], [0, 1, 1, 1])
        (1, 1)
    """
    a, b = as_numbers(first_right), as_numbers(second_right)
    both = ~np.isnan(a - b) if a.shape == b.shape else None
    if both is None or not np.isin((a[both], b[both]), (0, 1)).all():
        raise MetricError("McNemar's test needs right or wrong on the same items.", expected="0, 1 or NaN, one shape")
    return int(np.count_nonzero(a[both] > b[both])), int(np.count_nonzero(a[both] < b[both]))


def mcnemar(b: int, c: int) -> McNemar:
    """Test whether two models are right equally often, from the pairs on which they disagree.

    Args:
        b: items that the first has right and the second wrong.
        c: the reverse.

    Raises:
        MetricError: a negative count.

    Example:
        >>> round(mcnemar(10, 2).exact_p, 4)
        0.0386
    """
    if b < 0 or c < 0:
        raise MetricError("A count is negative.", expected="0 or more", got=(b, c))
    n, fewer = b + c, min(b, c)
    if not n:
        return McNemar(1.0, 1.0, None, None, None, None)
    at_most, below = _coin(fewer, n), _coin(fewer - 1, n)
    plain = (b - c) ** 2 / n
    corrected = max(abs(b - c) - 1, 0) ** 2 / n
    return McNemar(
        exact_p=min(1.0, 2 * at_most),
        mid_p=min(1.0, at_most + below),
        chi2=plain,
        chi2_p=_chi2_tail(plain),
        chi2_continuity=corrected,
        chi2_continuity_p=_chi2_tail(corrected),
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p values of one family of tests so that the chance of any false alarm is bounded (Holm, 1979).

    Args:
        p_values: None where a test could not be made; it stays None and does not count.

    Example:
        >>> holm([0.01, None, 0.04, 0.03])
        [0.03, None, 0.06, 0.06]
    """
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, i) in enumerate(ranked):
        if not 0 <= p <= 1:
            raise MetricError("A p value lies outside [0, 1].", where=f"entry {i}", got=p)
        running = max(running, min(1.0, p * (len(ranked) - rank)))
        adjusted[i] = running
    return adjusted


def wilson(k: int, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of the share k / n; None for n = 0.

    For independent items; where patients have several, `bootstrap.bootstrap_mean` is the honest one.

    Example:
        >>> [round(limit, 4) for limit in wilson(5, 10)]
        [0.2366, 0.7634]
    """
    from scipy.special import ndtri

    _check_share(k, n, level)
    if not n:
        return None
    z = float(ndtri((1 + level) / 2))
    share, spread = k / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    # The ends are exact by algebra, which rounding would miss.
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def clopper_pearson(k: int, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Clopper and Pearson's exact interval of the share k / n; None for n = 0.

    Example:
        >>> [round(limit, 4) for limit in clopper_pearson(0, 10)]
        [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    _check_share(k, n, level)
    if not n:
        return None
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def _check_share(k: int, n: int, level: float) -> None:
    if not 0 <= k <= n or not 0 < level < 1:
        raise MetricError("Not a share.", expected="0 <= k <= n and a level between 0 and 1", got=(k, n, level))


def _coin(k: int, n: int) -> float:
    """Chance of at most k heads in n throws of a fair coin."""
    from scipy.special import bdtr

    return float(bdtr(k, n, 0.5)) if k >= 0 else 0.0


def _chi2_tail(x: float) -> float:
    """Upper tail of the chi-square distribution with one degree of freedom."""
    return math.erfc(math.sqrt(x / 2))
