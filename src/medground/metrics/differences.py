"""Two models on the same items: difference, interval and p, for few cases and for patients with several items each.

A difference of two means is a gain minus a loss, each with the interval of `inference`, joined by square-and-add
(Newcombe 1998, Zou and Donner 2008): it holds where one model is never worse than the other. Other differences use the
interval of (1 + d) / 2. p values are those of `permutation`: sign flips of whole patients, for
rankings swaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from medground.errors import MetricError
from medground.metrics import permutation
from medground.metrics.bootstrap import Clusters
from medground.metrics.inference import (
    ONE_PATIENT,
    SHARE,
    Estimate,
    Limits,
    beta_limits,
    bounded,
    check_level,
    inner_level,
    macro_effective,
)
from medground.metrics.influence import (
    Floats,
    Influence,
    minus,
    of_auc,
    of_average_precision,
    of_f1,
    of_mean,
    over_classes,
)
from medground.metrics.permutation import DRAWS
from medground.metrics.values import as_numbers

# Pseudo-patients of the largest possible variance: of a gain or a loss, of other differences, a class of a macro mean.
GAIN, DIFFERENCE, MACRO_DIFFERENCE = 1.0, 0.25, 0.5
REACHED = 0.05  # a family whose smallest possible p lies above it says so


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """First model minus second on the items that both have, and its test.

    Attributes:
        p: two-sided p of "no difference"; 1 where no two patients differ.
        p_family: the same, corrected over its family; None where it stands alone.
        family: the family in words, such as ``14 classes, max-T over sign flips``; None where it stands alone.
        finest: the smallest p that can be reached: with few patients that differ, or few draws, it is large.
        differing: patients in whom the two models differ; p is never below 2 ** (1 - differing).
        gain: mean of what the first gains where it is better (differences of means).
        loss: mean of what it loses where it is worse.
        contribution: (P,) what each patient adds to the value, for a family's common flips; None where a ranking is
            tested by swaps.
    """

    p: float | None = None
    p_family: float | None = None
    family: str | None = None
    finest: float | None = None
    differing: int = 0
    gain: float | None = None
    loss: float | None = None
    contribution: Floats | None = field(default=None, repr=False, compare=False)

    @property
    def p_claim(self) -> float | None:
        """The p value that a claim rests on: the family's, else its own."""
        return self.p if self.family is None else self.p_family


def compare_means(
    first: ArrayLike, second: ArrayLike, by: Clusters, level: float = 0.95, seed: int = 0, draws: int = DRAWS
) -> Difference:
    """Compare the means of two models over the items where both have a value.

    Args:
        first: (N,) values in [0, 1] of the first model, NaN where undefined.
        second: (N,) of the second on the same items.
        by: patients of the N items.
        level: of the interval.
        seed: of the flips, where there are too many to enumerate.
        draws: how many flips then; 0: no test, p stays None.

    Example:
        >>> by = Clusters(np.arange(3), 3)
        >>> found = compare_means([1, 1, 1], [0, 0, 0], by)
        >>> found.value, found.p, round(found.low, 6), found.high
        (1.0, 0.25, -0.000695, 1.0)
    """
    check_level(level)
    a, b = as_numbers(first), as_numbers(second)
    if a.shape != b.shape:
        raise MetricError("Two models need the same items.", expected=f"shape {a.shape}", got=b.shape)
    d = a - b
    part = of_mean(d, by)
    if part.value is None:
        return _undefined(part, level, "no item where both models have a value")
    gain, loss = of_mean(np.maximum(d, 0), by), of_mean(np.maximum(-d, 0), by)
    difference = _tested(part, _gain_and_loss(gain, loss, part.value), level, (seed, draws), part.contribution)
    return replace(difference, gain=gain.value, loss=loss.value)


def apart(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two estimates that share no item, by square-and-add of their own intervals.

    Where a patient stands in both (a picture at 59 and one at 61 years), he is taken for two; the interval is then
    wider than it need be, for what one patient has in common cancels.

    Args:
        first: with its interval.
        second: of the same metric and level.

    Example:
        >>> d = apart(Estimate(0.8, 0.7, 0.9, evidence=(40,)), Estimate(0.6, 0.5, 0.7, evidence=(50,)))
        >>> round(d.value, 3), round(d.low, 3), round(d.high, 3), d.evidence
        (0.2, 0.059, 0.341, (40,))
    """
    evidence = (min(first.evidence, default=0), min(second.evidence, default=0))
    n, fewest = min(first.n, second.n), (min(evidence),)
    if first.value is None or second.value is None:
        reason = first.reason or second.reason
        return Estimate(None, n=n, evidence=fewest, level=first.level, reason=reason)
    d = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(d, n=n, evidence=fewest, level=first.level, reason="no interval")
    low = d - math.hypot(first.value - first.low, second.high - second.value)
    high = d + math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(d, low, high, n=n, evidence=fewest, level=first.level)


def difference_of_groups(
    first: ArrayLike, second: ArrayLike, one: Clusters, two: Clusters, level: float = 0.95
) -> Estimate:
    """Compare the means of two groups that share no patient (other scenes, other datasets), by square-and-add.

    Args:
        first: (N,) values in [0, 1] of the first group, NaN where undefined.
        second: (M,) of the second.
        one: patients of the first.
        two: patients of the second.
        level: of the interval.

    Returns:
        The difference with its intervals; there is no paired test.
    """
    parts = of_mean(first, one), of_mean(second, two)
    a, b = parts
    n, undefined = min(a.n, b.n), a.n_undefined + b.n_undefined
    if a.value is None or b.value is None:
        return Estimate(None, n=n, n_undefined=undefined, evidence=(0,), level=level, reason=a.reason or b.reason)
    d, fewest = a.value - b.value, min(a.patients, b.patients)
    if fewest < 2:
        return Estimate(d, n=n, n_undefined=undefined, evidence=(fewest,), level=level, reason=ONE_PATIENT)

    def limits(at: float) -> Limits:
        (a_low, a_high), (b_low, b_high) = (
            bounded(p.value or 0.0, p.patients, p.effective, p.variance, SHARE, at) for p in parts
        )
        down, up = (
            math.hypot((a.value or 0.0) - a_low, b_high - (b.value or 0.0)),
            math.hypot(a_high - (a.value or 0.0), (b.value or 0.0) - b_low),
        )
        return max(-1.0, d - down), min(1.0, d + up)

    return Estimate(d, *limits(level), *limits(inner_level(level)), n, undefined, (fewest,), level)


def compare_aucs(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference:
    """Compare the AUC of two models on the same cases; p by swapping their mid-ranks within patients."""
    pair = of_auc(labels, first, by), of_auc(labels, second, by)
    return _ranked(pair, labels, first, second, by, level, (seed, draws), permutation.AUC)


def compare_average_precisions(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference:
    """Compare average precision of two models on the same cases; p by swapping their mid-ranks within patients."""
    pair = of_average_precision(labels, first, by), of_average_precision(labels, second, by)
    return _ranked(pair, labels, first, second, by, level, (seed, draws), permutation.AVERAGE_PRECISION)


def compare_f1s(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference:
    """Compare F1 of two models at calls already made; p by swapping the calls within patients."""
    part = minus(of_f1(labels, first, by), of_f1(labels, second, by))
    if part.value is None:
        return _undefined(part, level, part.reason)
    p, differing = permutation.swap_calls(labels, first, second, by, seed, draws) if draws else (None, 0)
    return _with_p(part, _half(part, DIFFERENCE), level, p, differing, draws)


def compare_macros(
    pairs: Sequence[tuple[Influence, Influence]],
    c: float = MACRO_DIFFERENCE,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference:
    """Compare two models' means over the classes that both have; p by flipping whole patients.

    Args:
        pairs: one pair a class, first and second model, over the same items and P patients.
        c: pseudo-patients a class.
        level: of the interval.
        seed: of the flips.
        draws: as in `compare_means`.
    """
    check_level(level)
    classes = [minus(a, b) for a, b in pairs]
    known = [part for part in classes if part.value is not None]
    if not known:
        return Difference(None, n_undefined=len(classes), level=level, reason="no class is defined in both")
    part = over_classes(known)
    halves = [replace(p, value=(1 + (p.value or 0.0)) / 2, influence=p.influence / 2) for p in known]
    whole = over_classes(halves)

    def limits(at: float) -> Limits:
        low, high = beta_limits(whole.value or 0.0, macro_effective(halves, c, whole), at)
        return 2 * low - 1, 2 * high - 1

    # A patient adds to each class what he adds to its mean: not the same as his weight times the macro mean.
    difference = _tested(
        part, limits, level, (seed, draws), np.sum([p.contribution for p in known], axis=0) / len(known)
    )
    evidence = tuple(p.patients for p in known)
    return replace(difference, n=len(known), n_undefined=len(classes) - len(known), evidence=evidence)


def compare_macro_rankings(
    classes: Sequence[permutation.Ranked],
    by: Clusters,
    metric: permutation.Ranking = permutation.AUC,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference:
    """Compare the mean over classes of a ranking metric; p by swapping a patient's mid-ranks in all classes at once.

    Args:
        classes: (labels, scores of the first, scores of the second) of every class, each (N,).
        by: patients of the N cases.
        metric: AUC or average precision.
        level: of the interval.
        seed: of the swaps.
        draws: as in `compare_means`.
    """
    of = of_auc if metric == permutation.AUC else of_average_precision
    pairs = [(of(labels, first, by), of(labels, second, by)) for labels, first, second in classes]
    difference = compare_macros(pairs, level=level, draws=0)
    defined = [c for c, (a, b) in zip(classes, pairs, strict=True) if a.value is not None and b.value is not None]
    if difference.value is None or not draws:
        return difference
    p, differing = permutation.swap_macro_ranks(defined, by, metric, seed, draws)
    least = permutation.finest(differing, permutation.affordable(difference.n, draws))
    p = p if difference.low is not None else 1.0
    return replace(difference, p=p, differing=differing, finest=least, contribution=None)


def correct(differences: Sequence[Difference], what: str, seed: int = 0) -> list[Difference]:
    """Correct the p values of one family so that the chance of any false claim in it is bounded.

    Differences of means share their flips (step-down max-T: Westfall and Young 1993). Where one of them is a ranking,
    tested by swaps, Holm's rule is used on all.

    Args:
        differences: the family; those without a value stay as they are and do not count.
        what: what its members are, such as ``classes``.
        seed: of the flips.
    """
    tested = [i for i, d in enumerate(differences) if d.p is not None]
    if len(tested) < 2:
        return list(differences)
    columns = [differences[i].contribution for i in tested]
    kept = [column for column in columns if column is not None]
    if len(kept) == len(columns) and len({column.size for column in kept}) == 1:
        corrected = permutation.max_t(np.stack(kept, axis=1), seed).p_family.tolist()
        how = "max-T over sign flips"
    else:
        corrected = permutation.holm_all([differences[i].p or 0.0 for i in tested])
        # The smallest p of the family is multiplied by its size.
        reachable = len(tested) * min(differences[i].finest or 0.0 for i in tested)
        how = "Holm" if reachable <= REACHED else f"Holm: no p can fall below {min(1.0, reachable):.2g}"
    in_family = list(differences)
    for i, p in zip(tested, corrected, strict=True):
        # Drawn flips waver a little: a corrected p is never below its own.
        in_family[i] = replace(
            in_family[i], p_family=max(float(p), in_family[i].p or 0.0), family=f"{len(tested)} {what}, {how}"
        )
    return in_family


def _gain_and_loss(gain: Influence, loss: Influence, value: float) -> Callable[[float], Limits]:
    """Return the limits of gain minus loss at any level, by square-and-add."""
    scale = math.sqrt(gain.variance * loss.variance)
    r = float(gain.influence @ loss.influence) / scale if scale > 0 else 0.0

    def one(part: Influence, level: float) -> tuple[float, float, float]:
        t = part.value or 0.0
        return t, *bounded(t, part.patients, part.effective, part.variance, GAIN, level)

    def joined(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a + b * b - 2 * r * a * b))

    def limits(level: float) -> Limits:
        (won, won_low, won_high), (lost, lost_low, lost_high) = one(gain, level), one(loss, level)
        below, above = joined(won - won_low, lost_high - lost), joined(won_high - won, lost - lost_low)
        return max(-1.0, value - below), min(1.0, value + above)

    return limits


def _half(part: Influence, c: float) -> Callable[[float], Limits]:
    """Return the limits of a difference in [-1, 1] at any level, by way of (1 + d) / 2."""
    x = (1 + (part.value or 0.0)) / 2

    def limits(level: float) -> Limits:
        low, high = bounded(x, part.patients, part.effective, part.variance / 4, c, level)
        return 2 * low - 1, 2 * high - 1

    return limits


def _tested(
    part: Influence, limits: Callable[[float], Limits], level: float, flips: tuple[int, int], contribution: Floats
) -> Difference:
    """Add the p of flipping whole patients."""
    p, differing = permutation.sign_flip(contribution, *flips) if flips[1] else (None, 0)
    difference = _with_p(part, limits, level, p, differing, flips[1])
    return replace(difference, contribution=contribution)


def _with_p(
    part: Influence, limits: Callable[[float], Limits], level: float, p: float | None, differing: int, draws: int
) -> Difference:
    several = part.patients >= 2
    low, high = limits(level) if several else (None, None)
    inner_low, inner_high = limits(inner_level(level)) if several else (None, None)
    return Difference(
        part.value,
        low,
        high,
        inner_low,
        inner_high,
        part.n,
        part.n_undefined,
        (part.patients,),
        level,
        None if several else ONE_PATIENT,
        p=p if several or p is None else 1.0,
        finest=None if p is None else permutation.finest(differing, draws),
        differing=differing,
    )


def _ranked(
    pair: tuple[Influence, Influence],
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    by: Clusters,
    level: float,
    flips: tuple[int, int],
    metric: permutation.Ranking,
) -> Difference:
    check_level(level)
    part = minus(*pair)
    if part.value is None:
        return _undefined(part, level, part.reason)
    draws = permutation.affordable(part.n, flips[1])
    p, differing = permutation.swap_ranks(labels, first, second, by, metric, *flips) if flips[1] else (None, 0)
    return _with_p(part, _half(part, DIFFERENCE), level, p, differing, draws)


def _undefined(part: Influence, level: float, reason: str | None) -> Difference:
    return Difference(None, n=part.n, n_undefined=part.n_undefined, evidence=(0,), level=level, reason=reason)
