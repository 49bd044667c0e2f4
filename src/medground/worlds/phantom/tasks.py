"""The twelve diagnostic tasks: their criteria, and what a value means under them.

Thresholds, rounding and tolerances are those published with CheXStruct. A value inside the tolerance of its threshold
may be called either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from medground.worlds.phantom.streams import TASKS

Value = float | int | str | tuple[float, float] | Mapping[str, float]
"""A number; a direction; right and left; six margins."""

MARGINS: Final = ("apex_right", "apex_left", "side_right", "side_left", "bottom_right", "bottom_left")
"""Free margins around the lungs, shares of the picture's side."""

LEAST: Final = {"apex": 0.01, "side": 0.005, "bottom": 0.09}
"""Least margins of a lung that is included."""

AMBIGUOUS_BOTTOM: Final = 0.03
"""From here to the least margin a bottom is called neither way."""

ASCENDING: Final = (0.1, 0.3)
"""Share of the ascending aorta beyond the line that is called enlarged; 0 is not, anything else is left open."""

REFERENCE_WIDTH: Final = 2800
"""Width of the pictures, in pixels, that the threshold of tortuosity belongs to: curvature is per pixel."""


@dataclass(frozen=True)
class Criterion:
    """How a value becomes a label.

    Attributes:
        thresholds: by view, or one for both ("").
        tolerance: half width of the band in which both labels are accepted.
        decimals: of the rounding before the comparison.
        high: the label at or above the threshold; the other one below.
        words: of label 0 and label 1.
    """

    thresholds: Mapping[str, float]
    tolerance: float
    decimals: int
    high: int
    words: tuple[str, str]

    def threshold(self, view: str) -> float:
        """Return the threshold for a view."""
        return self.thresholds.get("", self.thresholds.get(view, float("nan")))


CRITERIA: Final[Mapping[str, Criterion]] = {
    "inspiration": Criterion({"": 9}, 0, 0, 0, ("good inspiration", "poor inspiration")),
    "rotation": Criterion({"": 0.4}, 0.1, 2, 0, ("not rotated", "rotated")),
    "projection": Criterion({"": 0.3}, 0.1, 2, 1, ("PA", "AP")),
    "cardiomegaly": Criterion({"PA": 0.50, "AP": 0.55}, 0.01, 2, 1, ("no cardiomegaly", "cardiomegaly")),
    "mediastinal_widening": Criterion(
        {"PA": 0.25, "AP": 0.33}, 0.015, 2, 1, ("no mediastinal widening", "mediastinal widening")
    ),
    "aortic_knob_enlargement": Criterion({"": 2.5}, 0.1, 2, 1, ("aortic knob not enlarged", "aortic knob enlarged")),
    "descending_aorta_enlargement": Criterion(
        {"": 2.5}, 0.1, 2, 1, ("descending aorta not enlarged", "descending aorta enlarged")
    ),
    "descending_aorta_tortuous": Criterion(
        {"": 0.0009}, 0.00015, 4, 1, ("descending aorta not tortuous", "descending aorta tortuous")
    ),
}
"""The tasks with one threshold; the other four are judged by rules of their own."""

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    **{task: criterion.words for task, criterion in CRITERIA.items()},
    "inclusion": ("not included", "included"),
    "carina_angle": ("normal carina angle", "abnormal carina angle"),
    "trachea_deviation": ("not deviated", "deviated"),
    "ascending_aorta_enlargement": ("ascending aorta not enlarged", "ascending aorta enlarged"),
}


@dataclass(frozen=True)
class TaskFact:
    """What is true of one task in one case.

    Attributes:
        task: a member of ``TASKS``.
        value: as drawn, unrounded.
        rounded: as it is compared.
        label: 0 or 1; None where nothing can be said, for the reason given.
        word: of the label.
        accepted: labels that count as right; both near the threshold.
        near: inside the tolerance of the threshold.
        reason: why there is no label.
    """

    task: str
    value: Value
    rounded: Value
    label: int | None
    word: str = ""
    accepted: tuple[int, ...] = ()
    near: bool = False
    reason: str = ""


def judge(task: str, value: Value, view: str) -> TaskFact:
    """Return what a value means.

    Args:
        task: a member of ``TASKS``.
        value: inclusion: six margins; projection: right and left; trachea_deviation: a direction; else a number.
        view: PA or AP.

    Example:
        >>> judge("cardiomegaly", 0.497, "PA").word, judge("cardiomegaly", 0.497, "AP").word
        ('cardiomegaly', 'no cardiomegaly')
    """
    if task not in TASKS:
        raise KeyError(task)
    if isinstance(value, Mapping):
        return _inclusion(value)
    if isinstance(value, tuple):
        return _projection(value)
    if isinstance(value, str):
        return _labelled(task, value, value, int(value != "flat"))
    if task == "carina_angle":
        return _carina(value)
    if task == "ascending_aorta_enlargement":
        return _ascending(value)
    criterion = CRITERIA[task]
    rounded, threshold = round(value, criterion.decimals), criterion.threshold(view)
    label = criterion.high if rounded >= threshold - _SLACK else 1 - criterion.high
    near = criterion.tolerance > 0 and abs(rounded - threshold) <= criterion.tolerance + _SLACK
    return _labelled(task, value, rounded, label, near)


_SLACK: Final = 1e-9
"""0.51 - 0.50 exceeds 0.01 in binary floating point."""


def _labelled(task: str, value: Value, rounded: Value, label: int, near: bool = False) -> TaskFact:
    return TaskFact(task, value, rounded, label, WORDS[task][label], (0, 1) if near else (label,), near)


def _inclusion(margins: Mapping[str, float]) -> TaskFact:
    short = [name for name in MARGINS if margins[name] < LEAST[name.partition("_")[0]]]
    if not short:
        return _labelled("inclusion", margins, margins, 1)
    if all(name.startswith("bottom") and margins[name] >= AMBIGUOUS_BOTTOM for name in short):
        return TaskFact("inclusion", margins, margins, None, reason="a lower margin is neither cut nor wide enough")
    return _labelled("inclusion", margins, margins, 0)


def _projection(shares: tuple[float, float]) -> TaskFact:
    criterion = CRITERIA["projection"]
    rounded = (round(shares[0], criterion.decimals), round(shares[1], criterion.decimals))
    threshold, reach = criterion.threshold(""), criterion.tolerance + _SLACK
    labels = {int(share >= threshold - _SLACK) for share in rounded}
    if len(labels) == 2:
        return TaskFact("projection", shares, rounded, None, reason="one shoulder blade says AP, the other PA")
    near = all(abs(share - threshold) <= reach for share in rounded)
    return _labelled("projection", shares, rounded, labels.pop(), near)


def _carina(angle: float) -> TaskFact:
    rounded = round(angle)
    if 40 <= rounded <= 80:
        return _labelled("carina_angle", angle, rounded, 0)
    return _labelled("carina_angle", angle, rounded, 1, near=30 <= rounded <= 90)


def _ascending(share: float) -> TaskFact:
    task = "ascending_aorta_enlargement"
    if share == 0 or ASCENDING[0] <= share < ASCENDING[1]:
        return _labelled(task, share, share, int(share > 0))
    return TaskFact(task, share, share, None, reason="the share beyond the line lies in no class")
