"""The additive fallacy check by the rule of decision: what rises, what is flat, what is low, and what cannot be told.

A score of synergy follows a model that intersects relations if it rises with every depth; it follows a model that only
adds up words if it stays flat and low. Each of the three is *yes*, *no* or *cannot be told*, from intervals of Welch's
t over scenes (other scenes at every depth and for every model):

* rises: every step lies above 0; *no* where a step is shown to fall, or the whole slope not to rise.
* flat: the 90 % interval of the shortcut model's slope lies inside a share of the reasoning model's slope (two
  one-sided tests against an estimated bound); *no* where the 95 % interval lies outside.
* low: at every depth the mean lies below the first mean of the reasoning model.

The check passes where all three hold, fails where one is shown not to, and else cannot be told. The rules by means
alone are in :mod:`medground.metrics.fallacy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.metrics.values import as_numbers

Answer = Literal["yes", "no", "cannot be told"]
FLAT_SHARE = 0.25
"""A slope within a quarter of the reasoning model's is none."""

LEAST = 30
"""Scenes a depth, of either model, below which nothing is claimed."""


@dataclass(frozen=True, slots=True)
class Additive:
    """What can be told of one score.

    Attributes:
        rises: whether it rises with every depth for the model that reasons.
        flat: whether it does not change with depth for the model that takes the shortcut.
        low: whether it stays below the first for the model that takes the shortcut.
        answer: all three.
        because: one sentence.
        scenes: the fewest scenes of a depth.
    """

    rises: Answer
    flat: Answer
    low: Answer
    answer: Answer
    because: str
    scenes: int


@dataclass(frozen=True, slots=True)
class _Means:
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]  # of each mean
    freedom: NDArray[np.float64]

    def limits(self, weights: ArrayLike, level: float) -> tuple[float, float]:
        """Interval of a linear combination of the means (Welch and Satterthwaite); without variation, everything."""
        from scipy.special import stdtrit

        w = np.asarray(weights, dtype=np.float64)
        value, parts = float(w @ self.mean), w * w * self.variance
        total = float(parts.sum())
        if total <= 0:
            return -math.inf, math.inf
        freedom = total**2 / float((parts**2 / self.freedom)[parts > 0].sum())
        half = float(stdtrit(freedom, (1 + level) / 2)) * float(np.sqrt(total))
        return value - half, value + half


def decide_additive(
    pure: Sequence[ArrayLike],
    spurious: Sequence[ArrayLike],
    *,
    least: int = LEAST,
    flat_share: float = FLAT_SHARE,
    level: float = 0.95,
) -> Additive:
    """Say what can be told.

    Args:
        pure: one array of per-scene scores a depth, in order, of the model that reasons; NaN where undefined.
        spurious: the same of the model that takes the shortcut.
        least: scenes a depth that a claim needs.
        flat_share: of the reasoning model's slope, within which another slope is none.
        level: of the intervals.
    """
    kept = [[x[~np.isnan(x)] for x in map(as_numbers, series)] for series in (pure, spurious)]
    scenes = min((x.size for series in kept for x in series), default=0)
    depths = len(kept[0])
    if scenes < max(2, least) or depths < 2 or len(kept[1]) != depths:
        why = f"{scenes} scenes at a depth, of the {least} that a claim needs"
        if depths < 2 or len(kept[1]) != depths:
            why = "fewer than two depths, or not the same for both models"
        unknown: Answer = "cannot be told"
        return Additive(unknown, unknown, unknown, unknown, why, scenes)
    means = _means([*kept[0], *kept[1]])
    rises, flat, low = _rises(means, depths, level), _flat(means, depths, level, flat_share), _low(means, depths, level)
    answers: dict[str, Answer] = {
        "rises with depth for the reasoning model": rises,
        "is flat for the shortcut model": flat,
        "is low for the shortcut model": low,
    }
    shown = set(answers.values())
    answer: Answer = "no" if "no" in shown else "yes" if shown == {"yes"} else "cannot be told"
    return Additive(rises, flat, low, answer, _sentence(answers), scenes)


def _means(series: Sequence[NDArray[np.float64]]) -> _Means:
    n = np.array([x.size for x in series], dtype=np.float64)
    mean, spread = np.array([x.mean() for x in series]), np.array([x.var(ddof=1) for x in series])
    return _Means(mean, spread / n, n - 1)


def _slope(depths: int, offset: int) -> NDArray[np.float64]:
    """Weights of the least squares slope over equally spaced depths."""
    x = np.arange(depths) - (depths - 1) / 2
    weights = np.zeros(2 * depths)
    weights[offset : offset + depths] = x / (x**2).sum()
    return weights


def _rises(means: _Means, depths: int, level: float) -> Answer:
    steps = []
    for d in range(depths - 1):
        weights = np.zeros(2 * depths)
        weights[d], weights[d + 1] = -1.0, 1.0
        steps.append(means.limits(weights, level))
    if all(low > 0 for low, _ in steps):
        return "yes"
    whole = means.limits(_slope(depths, 0), level)
    return "no" if any(high < 0 for _, high in steps) or whole[1] <= 0 else "cannot be told"


def _flat(means: _Means, depths: int, level: float, share: float) -> Answer:
    own, bound = _slope(depths, depths), share * _slope(depths, 0)
    inner = 2 * level - 1
    if means.limits(own - bound, inner)[1] < 0 < means.limits(own + bound, inner)[0]:
        return "yes"
    # Outside the bound on either side, whatever the sign of the bound.
    above, below = means.limits(own - bound, level)[0] > 0, means.limits(own + bound, level)[1] < 0
    bounded = means.limits(bound, level)[0] > 0
    return "no" if bounded and (above or below) else "cannot be told"


def _low(means: _Means, depths: int, level: float) -> Answer:
    limits = []
    for d in range(depths):
        weights = np.zeros(2 * depths)
        weights[0], weights[depths + d] = -1.0, 1.0
        limits.append(means.limits(weights, level))
    if all(high < 0 for _, high in limits):
        return "yes"
    return "no" if any(low > 0 for low, _ in limits) else "cannot be told"


def _sentence(answers: dict[str, Answer]) -> str:
    told = {word: [name for name, answer in answers.items() if answer == word] for word in ("no", "cannot be told")}
    if told["no"]:
        return "it is shown not to hold that it " + ", nor that it ".join(told["no"])
    if told["cannot be told"]:
        return "it cannot be told whether it " + " and ".join(told["cannot be told"])
    return "it rises at every step for the reasoning model, and is flat and low for the shortcut"
