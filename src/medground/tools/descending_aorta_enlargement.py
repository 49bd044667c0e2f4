"""Is the descending aorta wide?"""

from __future__ import annotations

from typing import ClassVar

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.descending import sections
from medground.tools.geometry import median_width
from medground.tools.rules import RULES


class DescendingAortaEnlargement:
    """Widest of six rows of the descending aorta, in tracheal widths."""

    name: ClassVar[str] = "descending_aorta_enlargement"
    rule = RULES["descending_aorta_enlargement"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure the six rows and the median width of the trachea."""
        cut = sections(anatomy)
        if cut.reason is not None:
            return dropped(self.name, cut.reason, **cut.parts)
        trachea = anatomy.box("trachea")
        width = median_width(trachea) if trachea is not None else 0.0
        if trachea is None or width <= 0:
            return dropped(self.name, "empty_trachea", **cut.parts)
        row, first, last = cut.widest
        parts = {**cut.parts, "trachea_width": width, "aorta_width": last - first}
        value = (last - first) / width
        rounded = self.rule.rounded(value)
        middle = ((trachea.y0 + trachea.y1) / 2, (trachea.x0 + trachea.x1) / 2)
        marks = (
            Mark("mask", "descending_aorta"),
            Mark("mask", "trachea", role="reference"),
            Mark("point", "aorta_right_edge", ((first, row),)),
            Mark("point", "aorta_left_edge", ((last, row),)),
            Mark("line", "aorta_width", ((first, row), (last, row))),
            Mark(
                "line",
                "trachea_width",
                ((middle[1] - width / 2, middle[0]), (middle[1] + width / 2, middle[0])),
                "reference",
            ),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded), parts, marks)
