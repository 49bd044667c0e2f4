"""Is the angle of the main bronchi normal?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.geometry import angle
from medground.tools.rules import RULES

#: Depths below the carina, in percent, at which the two sides are marked.
DEPTHS = (10, 20, 30)
MOST_SPREAD = 20.0


class CarinaAngle:
    """Angle at the carina; the three points of each side are averaged, not the three angles."""

    name: ClassVar[str] = "carina_angle"
    rule = RULES["carina_angle"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure one angle; three that disagree by more than 20 degrees (standard deviation) are dropped."""
        carina = anatomy.point("carina")
        sides = {s: [anatomy.point(f"{s}_{depth}") for depth in DEPTHS] for s in ("right", "left")}
        if carina is None or any(point is None for points in sides.values() for point in points):
            return dropped(self.name, "no_carina_points")
        apex = np.array(carina)
        right, left = (np.array([p for p in sides[s] if p is not None]) for s in ("right", "left"))
        if (right == apex).all(axis=1).any() or (left == apex).all(axis=1).any():
            return dropped(self.name, "points_coincide")
        angles = [angle(apex, *pair) for pair in zip(right, left, strict=True)]
        parts = {
            "angles": angles,
            "angles_std": float(np.std(angles)),
            "mean_right": right.mean(axis=0).tolist(),
            "mean_left": left.mean(axis=0).tolist(),
        }
        if parts["angles_std"] > MOST_SPREAD:
            return dropped(self.name, "angles_disagree", **parts)
        value = angle(apex, right.mean(axis=0), left.mean(axis=0))
        rounded = int(self.rule.rounded(value))
        ends = {"right_point": tuple(parts["mean_right"]), "left_point": tuple(parts["mean_left"])}
        marks = (
            Mark("point", "carina", (carina,)),
            *(Mark("point", name, (end,)) for name, end in ends.items()),
            *(Mark("line", f"{name}_arm", (carina, end)) for name, end in ends.items()),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded), parts, marks)
