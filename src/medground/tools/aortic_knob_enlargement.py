"""Is the aortic knob enlarged?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.geometry import median_width
from medground.tools.rules import RULES


class AorticKnobEnlargement:
    """Width of the knob, from the left tracheal border to its outermost edge, in tracheal widths."""

    name: ClassVar[str] = "aortic_knob_enlargement"
    rule = RULES["aortic_knob_enlargement"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure from the mean image-right tracheal border over the rows of the arch."""
        arch, trachea = anatomy.box("aortic_arch"), anatomy.box("trachea")
        if arch is None or trachea is None:
            return dropped(self.name, "empty_aortic_arch" if arch is None else "empty_trachea")
        rows, _, border = trachea.rows()
        beside = (rows >= arch.y0) & (rows <= arch.y1)
        if not beside.any():
            return dropped(self.name, "no_trachea_beside_arch")
        inner = float(border[beside].mean())
        descending = anatomy.box("descending_aorta_upper")
        outer = max(arch.x1, descending.x1 if descending is not None else arch.x1)
        width = median_width(trachea)
        parts = {"inner_x": inner, "outer_x": outer, "knob_width": outer - inner, "trachea_width": width}
        if outer <= inner or width <= 0:
            return dropped(self.name, "non_positive_width", **parts)
        value = (outer - inner) / width
        rounded = self.rule.rounded(value)
        row = float(np.mean([arch.y0, arch.y1]))
        left = float(border[beside].mean() - width)
        marks = (
            Mark("mask", "aortic_arch"),
            Mark("mask", "trachea", role="reference"),
            Mark("point", "knob_inner", ((inner, row),)),
            Mark("point", "knob_outer", ((outer, row),)),
            Mark("line", "knob_width", ((inner, row), (outer, row))),
            Mark("line", "trachea_width", ((left, row), (inner, row)), "reference"),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded), parts, marks)
