"""What the population ``tasks`` wants of each case: a label by coin, then a value, before anything is drawn.

Every task draws from a stream of its own. Labels are balanced within each view; where a threshold has a tolerance, 15 %
of the cases of each label lie inside it, and nothing is left out between the two labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from medground.errors import ConfigError, did_you_mean
from medground.worlds.phantom.streams import TASKS, chance, stream, uniform
from medground.worlds.phantom.tasks import ASCENDING, CRITERIA, Value

NEAR: Final = 0.15
"""Share of the cases of a label that lie inside the tolerance: a larger one would reward saying the threshold."""

Rng = np.random.Generator


class Span(NamedTuple):
    """Lowest and highest value of a task in this population."""

    low: float
    high: float


SPANS: Final[Mapping[str, Span]] = {
    "rotation": Span(0.05, 1.0),
    "projection": Span(0.02, 0.88),
    "cardiomegaly": Span(0.38, 0.70),
    "mediastinal_widening": Span(0.20, 0.45),
    "aortic_knob_enlargement": Span(1.35, 3.3),
    "descending_aorta_enlargement": Span(1.1, 3.1),
    "descending_aorta_tortuous": Span(0.0004, 0.0017),
}

INCLUSIONS: Final = ("included", "apex", "right", "left", "bottom")
"""Nothing cut, or the border that cuts the lungs."""

DIRECTIONS: Final = ("flat", "right", "left", "right&left", "left&right")
"""Sides of the trachea; on both, from above downwards, by wish alone: populations hold the first three."""

RIBS: Final = {0: (9, 10), 1: (7, 8)}
"""Ribs that cross the right dome, by label."""

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {"inclusion": INCLUSIONS, "trachea_deviation": DIRECTIONS}


def wish(seed: int, case: int, task: str, view: str, label: int | None = None) -> Value:
    """Return the value that one task shall have in a case.

    Args:
        seed: of the dataset.
        case: number of the case.
        task: a member of ``TASKS``.
        view: PA or AP.
        label: 0 or 1; by default a coin's, for the projection the view's.
    """
    coin = int(chance(stream(seed, case, task), 0.5))
    if task == "projection":
        coin = int(view == "AP")
    chosen = coin if label is None else label
    # Each label has numbers of its own: asking for the other one leaves this one as it was.
    rng = stream(seed, case, task, "side", chosen)
    if task in CRITERIA and task != "inspiration":
        near = chance(rng, NEAR)
        if task == "projection":  # both answers are accepted only where both sides lie near
            return _graded(rng, task, view, chosen, near), _graded(rng, task, view, chosen, near)
        return _graded(rng, task, view, chosen, near)
    return _OTHERS[task](rng, chosen)


def _graded(rng: Rng, task: str, view: str, label: int, near: bool) -> float:
    """Return a value of a task with one threshold; both sides of the threshold reach up to it."""
    criterion, span = CRITERIA[task], SPANS[task]
    grain = 10.0**-criterion.decimals
    threshold = criterion.threshold(view) - 0.5 * grain
    # Bands of whole rounded values: those that round to the threshold belong above it.
    band = int(criterion.tolerance / grain + 1e-6)
    if label == criterion.high:
        edge = threshold + (band + 1) * grain
        low, high = (threshold, edge) if near else (edge, span.high)
    else:
        edge = threshold - band * grain
        low, high = (edge, threshold) if near else (span.low, edge)
    value = uniform(rng, low, high)
    # A value that sits on a rounding tie would be decided by the last bit.
    cell = np.floor(value / grain - 0.5)
    return float(np.clip(value, (cell + 0.6) * grain, (cell + 1.4) * grain))


def _included(rng: Rng, label: int) -> str:
    if label:
        return "included"
    return ("apex", "bottom", "left" if chance(rng, 0.5) else "right")[int(rng.integers(3))]


def _rib(rng: Rng, label: int) -> int:
    return RIBS[label][int(rng.integers(2))]


def _angle(rng: Rng, label: int) -> float:
    """Inside 40 to 80 only "normal" is accepted, so the whole near share lies outside."""
    if not label:
        return uniform(rng, 40.2, 79.8)
    near, wide = chance(rng, 2 * NEAR), chance(rng, 0.6)
    if near:
        return uniform(rng, 80.8, 90.2) if wide else uniform(rng, 29.8, 39.2)
    return uniform(rng, 90.8, 120.0) if wide else uniform(rng, 20.0, 29.2)


def _direction(rng: Rng, label: int) -> str:
    side = "left" if chance(rng, 0.5) else "right"
    return side if label else "flat"


def _share(rng: Rng, label: int) -> float:
    spare = 0.02
    value = uniform(rng, ASCENDING[0] + spare, ASCENDING[1] - spare)
    return value if label else 0.0


_OTHERS: Final[Mapping[str, Callable[[Rng, int], Value]]] = {
    "inclusion": _included,
    "inspiration": _rib,
    "carina_angle": _angle,
    "trachea_deviation": _direction,
    "ascending_aorta_enlargement": _share,
}


def check_wishes(wanted: Mapping[str, Value]) -> None:
    """Raise ConfigError for an unknown task, or a value that cannot be drawn."""
    for task, value in wanted.items():
        if task not in TASKS:
            fix = did_you_mean(task, TASKS)
            raise ConfigError(f"a phantom has no task {task!r}", expected=", ".join(TASKS), fix=fix)
        if task in _KINDS:
            good, expected = value in _KINDS[task], ", ".join(_KINDS[task])
        elif task == "projection":
            good = isinstance(value, tuple) and len(value) == 2 and all(0 <= share <= 0.9 for share in value)
            expected = "two shares of 0 to 0.9, right and left"
        else:
            low, high = _LIMITS.get(task) or SPANS[task]
            good = isinstance(value, int | float) and low <= value <= high
            expected = f"a number of {low:g} to {high:g}"
        if not good:
            raise ConfigError(f"a phantom cannot be drawn with this {task}", expected=expected, got=value)


_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "inspiration": (7, 10),
    "carina_angle": (20, 120),
    "ascending_aorta_enlargement": (0, 0.5),
}
