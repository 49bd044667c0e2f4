"""Is the patient turned?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.geometry import vertical_line
from medground.tools.rules import RULES


class Rotation:
    """Shorter over longer distance of the medial clavicle ends from the spinous line."""

    name: ClassVar[str] = "rotation"
    rule = RULES["rotation"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Fit the spinous line and measure both ends at their own row."""
        spine = np.asarray(anatomy.landmarks.get("spinous_points", ()), dtype=np.float64).reshape(-1, 2)
        right, left = anatomy.point("medial_end_right"), anatomy.point("medial_end_left")
        if len(spine) < 2 or right is None or left is None:
            return dropped(self.name, "too_few_spinous_points" if len(spine) < 2 else "no_medial_end")
        m, b = vertical_line(spine)
        distances = (m * right[1] + b - right[0], left[0] - (m * left[1] + b))
        parts = {"distance_right": distances[0], "distance_left": distances[1], "line": {"m": m, "b": b}}
        if min(distances) < 0 or max(distances) == 0:
            return dropped(self.name, "medial_end_across_midline", **parts)
        value = min(distances) / max(distances)
        rounded = self.rule.rounded(value)
        top, bottom = float(spine[:, 1].min()), float(spine[:, 1].max())
        marks = (
            Mark("line", "spinous_line", ((m * top + b, top), (m * bottom + b, bottom)), "reference"),
            Mark("point", "medial_end_right", (right,)),
            Mark("point", "medial_end_left", (left,)),
            Mark("line", "distance_right", (right, (m * right[1] + b, right[1]))),
            Mark("line", "distance_left", (left, (m * left[1] + b, left[1]))),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded), parts, marks)
