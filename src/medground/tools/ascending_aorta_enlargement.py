"""Does the ascending aorta pass its border line?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.rules import NONE, RULES, Decision

LEAST_HEIGHT = 0.15


class AscendingAortaEnlargement:
    """Share of the mask beyond the line from the heart's right extreme to the trachea's bottom."""

    name: ClassVar[str] = "ascending_aorta_enlargement"
    rule = RULES["ascending_aorta_enlargement"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Count the pixels strictly on the image-left side of the line."""
        aorta = anatomy.box("ascending_aorta")
        heart, trachea = anatomy.point("heart_right_extreme"), anatomy.point("trachea_bottom")
        if aorta is None or heart is None or trachea is None or heart[1] == trachea[1]:
            return dropped(self.name, "empty_ascending_aorta" if aorta is None else "no_border_line")
        height = aorta.height / anatomy.height
        if height < LEAST_HEIGHT:
            return dropped(self.name, "height", height_fraction=height)
        rows = np.arange(aorta.y0, aorta.y1 + 1)
        line = heart[0] + (rows - heart[1]) * (trachea[0] - heart[0]) / (trachea[1] - heart[1])
        columns = np.arange(aorta.x0, aorta.x1 + 1)
        area = int(aorta.mask.sum())
        beyond = int((aorta.mask & (columns[None, :] < line[:, None])).sum())
        share = beyond / area
        decision = self.decide(share)
        marks = (
            Mark("mask", "ascending_aorta"),
            Mark("point", "heart_point", (heart,)),
            Mark("point", "trachea_point", (trachea,)),
            Mark("line", "border_line", (heart, trachea), "reference"),
        )
        return Measurement(
            self.name,
            "ok" if decision.label is not None else "unlabelled",
            None if decision.label is not None else "share_between_classes",
            share,
            None,
            decision,
            {"area": area, "area_beyond": beyond, "height_fraction": height},
            marks,
        )

    def decide(self, share: float) -> Decision:
        """None beyond the line: not enlarged; from 0.1 up to 0.3: enlarged; otherwise no label."""
        low, high = self.rule.thresholds["yes"]
        if share == self.rule.thresholds["no"]:
            return self.rule.labelled(0)
        return self.rule.labelled(1) if low <= share < high else NONE
