"""Was the breath deep enough?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.rules import RULES


class Inspiration:
    """The right posterior rib that crosses the right hemidiaphragm on the mid-clavicular line."""

    name: ClassVar[str] = "inspiration"
    rule = RULES["inspiration"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Find the first diaphragm pixel of the mid-clavicular column and the one rib that holds it."""
        middle = anatomy.landmarks.get("mid_clavicular_x")
        if middle is None:
            return dropped(self.name, "no_mid_clavicular_line")
        column = int(middle)
        dome = anatomy.box("right_hemidiaphragm")
        if dome is None or not dome.x0 <= column <= dome.x1:
            return dropped(self.name, "no_diaphragm_on_line")
        rows = np.flatnonzero(dome.mask[:, column - dome.x0])
        if rows.size == 0:
            return dropped(self.name, "no_diaphragm_on_line")
        row = int(rows[0]) + dome.y0
        ribs = [
            name.removeprefix("rib_")
            for name, mask in anatomy.masks.items()
            if name.startswith("rib_") and mask[row, column]
        ]
        if len(ribs) != 1 or not ribs[0].isdecimal():
            return dropped(self.name, "no_single_rib_on_dome", dome_row=row)
        rib = int(ribs[0])
        marks = (
            Mark("mask", f"rib_{rib}"),
            Mark("mask", "right_hemidiaphragm", role="reference"),
            Mark("point", "rib_on_diaphragm", ((column, row),)),
            Mark("line", "mid_clavicular_line", ((column, 0), (column, anatomy.height - 1)), "reference"),
        )
        return Measurement(self.name, "ok", None, rib, rib, self.rule.decide(rib), {"dome_row": row}, marks)
