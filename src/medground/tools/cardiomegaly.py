"""Is the heart enlarged?"""

from __future__ import annotations

from typing import ClassVar

from medground.tools.anatomy import Anatomy, Box
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.geometry import lung_ratio
from medground.tools.rules import RULES

#: Below this ratio of the two lungs' extents neither width can be trusted.
LEAST_LUNG_RATIO = 0.7


class Cardiomegaly:
    """Cardiothoracic ratio: width of the heart over width of the chest."""

    name: ClassVar[str] = "cardiomegaly"
    rule = RULES["cardiomegaly"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure the widest extents of heart and lungs."""
        heart, right, left = anatomy.box("heart"), anatomy.box("right_lung"), anatomy.box("left_lung")
        if heart is None or right is None or left is None:
            return dropped(self.name, "empty_heart" if heart is None else "empty_lung")
        chest = left.x1 - right.x0
        parts = {
            "heart_xmin": heart.x0,
            "heart_xmax": heart.x1,
            "lung_xmin": right.x0,
            "lung_xmax": left.x1,
            "heart_width": heart.width,
            "thoracic_width": chest,
            "lung_width_ratio": lung_ratio(right, left),
        }
        if parts["lung_width_ratio"] < LEAST_LUNG_RATIO:
            return dropped(self.name, "lung_width_ratio", **parts)
        if chest <= 0:
            return dropped(self.name, "non_positive_width", **parts)
        value = heart.width / chest
        rounded = self.rule.rounded(value)
        ends = (_end(heart, 0), _end(heart, -1))
        row = (right.y0 + right.y1) / 2
        marks = (
            Mark("mask", "heart"),
            Mark("point", "heart_right_end", (ends[0],)),
            Mark("point", "heart_left_end", (ends[1],)),
            Mark("line", "heart_width", ((heart.x0, ends[0][1]), (heart.x1, ends[0][1]))),
            Mark("line", "thoracic_width", ((right.x0, row), (left.x1, row)), "reference"),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded, anatomy.view), parts, marks)


def _end(box: Box, column: int) -> tuple[float, float]:
    rows = box.mask[:, column].nonzero()[0]
    return float(box.x0 if column == 0 else box.x1), float(box.y0 + rows[len(rows) // 2])
