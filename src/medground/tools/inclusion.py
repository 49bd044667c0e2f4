"""Are both lungs wholly on the film?"""

from __future__ import annotations

from typing import ClassVar

from medground.tools.anatomy import Anatomy, Box
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.rules import NONE, RULES, Decision


class Inclusion:
    """Margins of the apices, lateral ribs and costophrenic angles to the edge of the content."""

    name: ClassVar[str] = "inclusion"
    rule = RULES["inclusion"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure six margins and hold each against its limit."""
        right, left = anatomy.box("right_lung"), anatomy.box("left_lung")
        if right is None or left is None:
            return dropped(self.name, "empty_right_lung" if right is None else "empty_left_lung")
        angles = [anatomy.point(f"costophrenic_{side}") for side in ("right", "left")]
        if angles[0] is None or angles[1] is None:
            return dropped(self.name, "no_costophrenic_point")
        pixels = self._margins(anatomy, right, left, (angles[0][1], angles[1][1]))
        value = {
            name: margin / (anatomy.width if name.startswith("side") else anatomy.height)
            for name, margin in pixels.items()
        }
        parts = {name: self._state(name.split("_")[0], margin) for name, margin in value.items()}
        decision = self._decide(list(parts.values()))
        marks = [Mark("mask", "right_lung"), Mark("mask", "left_lung")]
        marks += [Mark("point", f"apex_{side}", (_apex(box),)) for side, box in (("right", right), ("left", left))]
        marks += [Mark("point", f"costophrenic_{s}", (p,)) for s, p in zip(("right", "left"), angles, strict=True) if p]
        return Measurement(
            self.name,
            "ok" if decision.label is not None else "unlabelled",
            None if decision.label is not None else "ambiguous_bottom",
            value,
            None,
            decision,
            {"margins_px": pixels, "parts": parts},
            tuple(marks),
        )

    @staticmethod
    def _margins(anatomy: Anatomy, right: Box, left: Box, bottoms: tuple[float, float]) -> dict[str, float]:
        box = anatomy.landmarks.get("content_box") or (0, 0, anatomy.width, anatomy.height)
        x0, y0, x1, y1 = (int(edge) for edge in box)
        return {
            "apex_right": right.y0 - y0,
            "apex_left": left.y0 - y0,
            "side_right": right.x0 - x0,
            "side_left": x1 - 1 - left.x1,
            "bottom_right": int(y1 - 1 - bottoms[0]),
            "bottom_left": int(y1 - 1 - bottoms[1]),
        }

    def _state(self, part: str, margin: float) -> str:
        limits = self.rule.thresholds
        if margin >= limits[part]:
            return "in"
        return "ambiguous" if part == "bottom" and margin >= limits["bottom_ambiguous_from"] else "out"

    def _decide(self, states: list[str]) -> Decision:
        if "out" in states:
            return self.rule.labelled(0)
        return NONE if "ambiguous" in states else self.rule.labelled(1)


def _apex(box: Box) -> tuple[float, float]:
    columns = box.mask[0].nonzero()[0]
    return float(box.x0 + columns[len(columns) // 2]), float(box.y0)
