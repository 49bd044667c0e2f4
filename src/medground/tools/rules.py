"""Thresholds, rounding and tolerances of the twelve diagnostic tasks, as data with their source.

The task ids are those of CXReasonBench (arXiv 2505.18087). Thresholds, rounding and tolerances come from an unofficial
copy of its CheXStruct pipeline that was adapted to NIH ChestX-ray14: a secondary source, to be confirmed against the
paper. Where it is silent, the choice is medground's and ``note`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

SECONDARY = "CheXStruct pipeline, unofficial copy (secondary source)"


@dataclass(frozen=True)
class Decision:
    """What a rule makes of a value.

    Attributes:
        label: 1 or 0 in the polarity of the task; None where the rule gives none.
        conclusion: the label in words.
        acceptable: every conclusion that counts as right (both, inside the tolerance band).
        near: the value lies inside the tolerance band.
    """

    label: int | None
    conclusion: str | None
    acceptable: tuple[str, ...]
    near: bool


#: No label: the rule does not say, or the case was dropped.
NONE = Decision(None, None, (), near=False)


@dataclass(frozen=True)
class Rule:
    """How a task's value becomes a label.

    Attributes:
        group: ``quality`` of the film, or ``finding``.
        kind: ``measurement`` or ``perception``, as the paper sorts them.
        quantity: what is measured, in words.
        formula: how.
        decimals: digits that the value is rounded to *before* it is compared; None where it is not rounded.
        tolerance: half-width of the band in which both answers count, and of the judge's tolerance for a value; 0
            asks for the exact value and has no band.
        words: the conclusion for label 0 and for label 1.
        op: ``>=`` (label 1 from the threshold on), ``<`` (label 1 below it), ``outside`` (of an interval),
            or the name of a rule that its tool applies itself.
        thresholds: by view (``PA``, ``AP``), or one under ``all``, or named parts.
    """

    task: str
    group: Literal["quality", "finding"]
    kind: Literal["measurement", "perception"]
    quantity: str
    formula: str
    unit: str
    decimals: int | None
    tolerance: float | None
    words: tuple[str, str]
    op: str
    thresholds: Mapping[str, Any]
    note: str = ""
    source: str = SECONDARY

    @property
    def by_view(self) -> bool:
        """Whether the threshold hangs on the view."""
        return "PA" in self.thresholds

    def threshold(self, view: str | None) -> Any:
        """The threshold for a view, or None where it hangs on a view that is not known."""
        return self.thresholds.get(view or "") if self.by_view else self.thresholds.get("all")

    def rounded(self, value: float) -> float:
        """Round as the task rounds, half up, on the decimal digits that would be printed."""
        return value if self.decimals is None else round_half_up(value, self.decimals)

    def decide(self, rounded: float, view: str | None = None) -> Decision:
        """Compare a rounded value with the threshold.

        >>> RULES["cardiomegaly"].decide(0.51, "PA").acceptable
        ('no cardiomegaly', 'cardiomegaly')
        """
        limit = self.threshold(view)
        if limit is None:
            return NONE
        value = Decimal(str(rounded))
        if self.op == "outside":
            return self._outside(value, [Decimal(str(end)) for end in limit])
        at_or_above = value >= Decimal(str(limit))
        near = bool(self.tolerance) and abs(value - Decimal(str(limit))) <= Decimal(str(self.tolerance))
        return self.labelled(int(at_or_above == (self.op == ">=")), near=near)

    def _outside(self, value: Decimal, ends: list[Decimal]) -> Decision:
        low, high = ends
        beyond = max(low - value, value - high)
        near = 0 < beyond <= Decimal(str(self.tolerance))
        return self.labelled(int(beyond > 0), near=near)

    def labelled(self, label: int, *, near: bool = False) -> Decision:
        """Return the decision for a known label; ``near`` accepts both conclusions."""
        return Decision(label, self.words[label], self.words if near else (self.words[label],), near=near)


def round_half_up(value: float, decimals: int) -> float:
    """Round on the decimal digits of the value: 0.4975 becomes 0.50, and 2.5 becomes 3."""
    return float(Decimal(str(value)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP))


_ALL = (
    Rule(
        "inclusion", "quality", "perception",
        "margins between the lungs and the edge of the picture, as fractions of the picture",
        "empty rows above each apex and below each costophrenic point / height; empty columns beside each lung / width",
        "fraction", None, None, ("not included", "included"), "margins",
        {"apex": 0.01, "side": 0.005, "bottom": 0.09, "bottom_ambiguous_from": 0.03},
        "any margin out: not included; none out and bottom 0.03 to 0.09: no label (ours). Label 1 is the good one.",
    ),
    Rule(
        "inspiration", "quality", "measurement",
        "number of the right posterior rib that crosses the right hemidiaphragm on the mid-clavicular line",
        "the one rib whose mask holds the first diaphragm pixel of the mid-clavicular column",
        "rib", 0, 0.0, ("good inspiration", "poor inspiration"), "<", {"all": 9},
        "no rib, or more than one, on that pixel: dropped (ours)",
    ),
    Rule(
        "rotation", "quality", "measurement",
        "shorter over longer horizontal distance of the medial clavicle ends from the spinous line",
        "min(dR, dL) / max(dR, dL); x = m y + b fitted through the spinous points",
        "ratio", 2, 0.1, ("not rotated", "rotated"), "<", {"all": 0.4},
    ),
    Rule(
        "projection", "quality", "measurement",
        "share of each scapula that overlaps the lung of its side",
        "area(scapula and lung) / area(scapula), right and left",
        "ratio", 2, 0.1, ("PA", "AP"), "both_sides", {"all": 0.3},
        "sides that disagree: dropped; both answers only if both sides lie in the band (ours)",
    ),
    Rule(
        "cardiomegaly", "finding", "measurement",
        "cardiothoracic ratio",
        "(heart xmax - heart xmin) / (left lung xmax - right lung xmin)",
        "ratio", 2, 0.01, ("no cardiomegaly", "cardiomegaly"), ">=", {"PA": 0.5, "AP": 0.55},
        "view unknown: the value stands, no label",
    ),
    Rule(
        "mediastinal_widening", "finding", "measurement",
        "widest upper mediastinum over the lung-to-lung width on the same row",
        "(mediastinum xmax - xmin) / (left lung xmax - right lung xmin), on the mediastinum's widest row",
        "ratio", 2, 0.015, ("no mediastinal widening", "mediastinal widening"), ">=", {"PA": 0.25, "AP": 0.33},
        "conflict: the source's constants say 0.25 for PA, the text of its last question says 0.28; default 0.25",
    ),
    Rule(
        "carina_angle", "finding", "measurement",
        "angle between the main bronchi at the carina, in degrees",
        "angle at the carina between the means of three points on either side, 10, 20 and 30 % below",
        "degree", 0, 10.0, ("normal carina angle", "abnormal carina angle"), "outside", {"all": (40, 80)},
        "inside 40 to 80 only normal, outside by at most 10 both, further out only abnormal",
    ),
    Rule(
        "trachea_deviation", "finding", "perception",
        "side of the trachea against the vertebral midline",
        "nine rows; a row counts for a side only if the whole trachea lies beyond the line; majority",
        "side", None, None, ("not deviated", "deviated"), "all_beyond", {"rows": 9},
        "a tie sets 'flat' aside; a tie of the sides is the ordered pair from the top",
    ),
    Rule(
        "aortic_knob_enlargement", "finding", "measurement",
        "width of the aortic knob in tracheal widths",
        "(outermost edge of the arch or upper descending aorta - mean left tracheal border) / median trachea width",
        "ratio", 2, 0.1, ("aortic knob not enlarged", "aortic knob enlarged"), ">=", {"all": 2.5},
    ),
    Rule(
        "ascending_aorta_enlargement", "finding", "perception",
        "share of the ascending aorta beyond the line from the heart's right extreme to the trachea's bottom",
        "pixels strictly on the patient's right of the line / all pixels",
        "ratio", None, None, ("ascending aorta not enlarged", "ascending aorta enlarged"), "share",
        {"no": 0, "yes": (0.1, 0.3)},
        "shares above 0 and below 0.1, or from 0.3, carry no label",
    ),
    Rule(
        "descending_aorta_enlargement", "finding", "measurement",
        "widest descending aorta in tracheal widths",
        "max of six widths of the descending aorta / median trachea width",
        "ratio", 2, 0.1, ("descending aorta not enlarged", "descending aorta enlarged"), ">=", {"all": 2.5},
    ),
    Rule(
        "descending_aorta_tortuous", "finding", "measurement",
        "mean curvature of the descending aorta's left edge at six points, per pixel",
        "mean of |x'y'' - y'x''| / (x'^2 + y'^2)^1.5 by finite differences over the six points",
        "1/px", 4, 0.00015, ("descending aorta not tortuous", "descending aorta tortuous"), ">=", {"all": 0.0009},
        "per pixel: the label hangs on the size of the picture, so nothing is resized before measuring",
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = {rule.task: rule for rule in _ALL}
TASKS: tuple[str, ...] = tuple(RULES)
