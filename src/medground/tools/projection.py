"""AP or PA, by the shoulder blades?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy, Box
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.rules import RULES, Decision


class Projection:
    """Share of each scapula that overlaps the lung of its side."""

    name: ClassVar[str] = "projection"
    rule = RULES["projection"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure both sides; sides that disagree are dropped."""
        parts: dict[str, int] = {}
        marks = []
        for side in ("right", "left"):
            scapula = anatomy.box(f"{side}_scapula")
            if scapula is None:
                return dropped(self.name, f"empty_scapula_{side}")
            if anatomy.box(f"{side}_lung") is None:
                return dropped(self.name, f"empty_{side}_lung")
            lung = anatomy.masks[f"{side}_lung"][scapula.y0 : scapula.y1 + 1, scapula.x0 : scapula.x1 + 1]
            parts[f"scapula_area_{side}"] = int(scapula.mask.sum())
            parts[f"overlap_area_{side}"] = int((scapula.mask & lung).sum())
            marks += [Mark("mask", f"{side}_scapula"), Mark("mask", f"{side}_lung", role="reference")]
            marks.append(Mark("point", f"scapula_{side}_tip", (_tip(scapula),)))
        value = [parts[f"overlap_area_{side}"] / parts[f"scapula_area_{side}"] for side in ("right", "left")]
        rounded = [self.rule.rounded(share) for share in value]
        decision = self.decide(rounded)
        if decision is None:
            return dropped(self.name, "mixed_sides", **parts)
        return Measurement(self.name, "ok", None, value, rounded, decision, parts, tuple(marks))

    def decide(self, rounded: list[float]) -> Decision | None:
        """Both sides at the limit or above: AP; both below: PA; otherwise None."""
        limit, tolerance = self.rule.thresholds["all"], self.rule.tolerance or 0.0
        above = [share >= limit for share in rounded]
        if above[0] != above[1]:
            return None
        near = all(round(abs(share - limit), 6) <= tolerance for share in rounded)
        return self.rule.labelled(int(above[0]), near=near)


def _tip(box: Box) -> tuple[float, float]:
    columns = np.flatnonzero(box.mask[-1])
    return float(box.x0 + columns[len(columns) // 2]), float(box.y1)
