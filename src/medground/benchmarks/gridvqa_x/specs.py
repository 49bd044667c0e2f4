"""What the metrics of GridVQA-X are; which modality and which measure each is stands here, not in its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from medground.metrics.spec import MetricSpec

Modality = Literal["image", "text"]

TITLES: Mapping[str, str] = {
    "mass": "mass on the cause",
    "rank": "rank on the cause",
    "iou": "IoU with the cause",
    "area": "area of the cause",
    "mass_shortcut": "mass on what fits the target's words",
    "iou_shortcut": "IoU with what fits the target's words",
    "anchors": "mass on anchors",
    "lures": "mass on lures",
    "directions": "mass on directions",
    "mass_released": "mass on the published mask",
    "iou_released": "IoU with the published mask",
}
_WHERE: Mapping[Modality, str] = {"image": "Picture", "text": "Words"}
_DESCRIPTIVE = {"area", "anchors", "lures", "directions", "mass_shortcut", "iou_shortcut"}
_SHARED = ("mass", "rank", "iou", "area", "mass_shortcut", "iou_shortcut", "anchors")
_OWN: Mapping[Modality, tuple[str, ...]] = {
    "image": (*_SHARED, "lures"),
    "text": (*_SHARED, "directions", "mass_released", "iou_released"),
}


@dataclass(frozen=True)
class MapFigure:
    """A figure of a local explanation.

    Attributes:
        column: of the rows, and the metric of the cells.
        modality: the picture or the words.
        measure: a key of ``TITLES``.
    """

    column: str
    modality: Modality
    measure: str


FIGURES: tuple[MapFigure, ...] = tuple(
    MapFigure(f"{modality}_{measure}", modality, measure) for modality, measures in _OWN.items() for measure in measures
)

EVIDENCE: Mapping[Modality, tuple[str, ...]] = {
    "image": ("image_anchors",),
    "text": ("text_directions", "text_anchors"),
}
"""What the reasoning model needs and the shortcut model does not: columns whose sum is compared between the two."""


def figure(modality: Modality, measure: str) -> str:
    """Return the metric of a modality and measure."""
    return next(f.column for f in FIGURES if (f.modality, f.measure) == (modality, measure))


def specs() -> tuple[MetricSpec, ...]:
    """Return every metric, in the order of tables."""
    return (
        MetricSpec("accuracy", "Accuracy"),
        *(_local(f) for f in FIGURES),
        *(_evidence(modality) for modality in EVIDENCE),
        *(_gain(modality) for modality in EVIDENCE),
        MetricSpec("score", "Synergy of a scene", unit="none", family="score", bounds=None, digits=1),
        MetricSpec("pool_score", "Synergy of a bucket", unit="none", family="score", bounds=None, digits=1),
    )


def _local(f: MapFigure) -> MetricSpec:
    return MetricSpec(
        f.column,
        f"{_WHERE[f.modality]}: {TITLES[f.measure]}",
        direction="neither" if f.measure in _DESCRIPTIVE else "higher",
        family="mass",
        floor="base rate" if f.measure == "mass" else None,
        floor_metric=figure(f.modality, "area") if f.measure == "mass" else None,
    )


def _evidence(modality: Modality) -> MetricSpec:
    spot = {"image": "anchors", "text": "directions and anchors"}[modality]
    return MetricSpec(
        f"{modality}_evidence", f"{_WHERE[modality]}: mass on {spot}, scenes with relations", family="mass"
    )


def _gain(modality: Modality) -> MetricSpec:
    title = f"{_WHERE[modality]}: that mass, reasoning minus shortcut model"
    return MetricSpec(f"{modality}_evidence_gain", title, unit="points", family="mass", bounds=(-1.0, 1.0))
