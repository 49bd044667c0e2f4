"""Is the course of the descending aorta winding?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.descending import sections
from medground.tools.geometry import mean_curvature
from medground.tools.rules import RULES


class DescendingAortaTortuous:
    """Mean curvature at six points of the descending aorta's image-right edge, per pixel."""

    name: ClassVar[str] = "descending_aorta_tortuous"
    rule = RULES["descending_aorta_tortuous"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure on the picture's own pixels: the threshold is per pixel, so nothing may be resized before.

        A source that knows the edge on the pixels that the threshold was made for gives it as the landmark
        ``descending_edge_points`` (a phantom does); otherwise the edge of the mask is taken.
        """
        cut = sections(anatomy)
        if cut.reason is not None:
            return dropped(self.name, cut.reason, **cut.parts)
        given = anatomy.landmarks.get("descending_edge_points")
        edge = cut.edge if given is None else np.asarray(given, dtype=np.float64).reshape(-1, 2)
        value, each = mean_curvature(edge)
        rounded = self.rule.rounded(value)
        points = [(float(x), float(y)) for x, y in cut.parts["points"]]
        marks = (
            Mark("mask", "descending_aorta"),
            *(Mark("point", f"edge_{i}", (point,)) for i, point in enumerate(points, 1)),
            *(Mark("line", f"edge_{i}_{i + 1}", (points[i - 1], points[i])) for i in range(1, len(points))),
        )
        parts = {**cut.parts, "curvatures": each}
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded), parts, marks)
