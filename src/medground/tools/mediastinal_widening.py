"""Is the upper mediastinum wide?"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy, Box
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.cardiomegaly import LEAST_LUNG_RATIO
from medground.tools.geometry import lung_ratio
from medground.tools.rules import RULES, Rule

LEAST_ROW_OVER_BOX = 0.5
MOST_CENTRE_SHIFT = 0.1


class MediastinalWidening:
    """Widest upper mediastinum over the lung-to-lung width of the same row.

    Args:
        pa_cutoff: the PA threshold; the source gives 0.25 in its constants and 0.28 in a question's text.
    """

    name: ClassVar[str] = "mediastinal_widening"

    def __init__(self, pa_cutoff: float = 0.25) -> None:
        rule = RULES["mediastinal_widening"]
        self.rule: Rule = replace(rule, thresholds={**rule.thresholds, "PA": pa_cutoff})

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure the widest row; masks that are no single strip, or lungs too unlike, are dropped."""
        box, right, left = anatomy.box("upper_mediastinum"), anatomy.box("right_lung"), anatomy.box("left_lung")
        if box is None or right is None or left is None:
            return dropped(self.name, "empty_mediastinum" if box is None else "empty_lung")
        rows, first, last = box.rows()
        widest = int(np.argmax(last - first))
        row, xmin, xmax = int(rows[widest]), int(first[widest]), int(last[widest])
        shift = abs((xmin + xmax) / 2 - (box.x0 + box.x1) / 2)
        parts = {
            "row": row,
            "mediastinum_xmin": xmin,
            "mediastinum_xmax": xmax,
            "mediastinum_width": xmax - xmin,
            "lung_width_ratio": lung_ratio(right, left),
            "widest_row_over_box": (xmax - xmin) / box.width if box.width else 0.0,
            "centre_shift_over_box": shift / box.width if box.width else 0.0,
        }
        if (reason := self._refuse(parts)) is not None:
            return dropped(self.name, reason, **parts)
        ends = _on_row(right, row), _on_row(left, row)
        if ends[0] is None or ends[1] is None:
            return dropped(self.name, "no_lung_on_row", **parts)
        lungs = (ends[0][0], ends[1][1])
        parts |= {"lung_xmin": lungs[0], "lung_xmax": lungs[1], "lung_width": lungs[1] - lungs[0]}
        if lungs[1] <= lungs[0]:
            return dropped(self.name, "non_positive_width", **parts)
        value = (xmax - xmin) / (lungs[1] - lungs[0])
        rounded = self.rule.rounded(value)
        marks = (
            Mark("mask", "upper_mediastinum"),
            Mark("point", "mediastinum_right_end", ((xmin, row),)),
            Mark("point", "mediastinum_left_end", ((xmax, row),)),
            Mark("line", "mediastinum_width", ((xmin, row), (xmax, row))),
            Mark("line", "lung_width", ((lungs[0], row), (lungs[1], row)), "reference"),
        )
        return Measurement(self.name, "ok", None, value, rounded, self.rule.decide(rounded, anatomy.view), parts, marks)

    @staticmethod
    def _refuse(parts: dict[str, float]) -> str | None:
        if parts["lung_width_ratio"] < LEAST_LUNG_RATIO:
            return "lung_width_ratio"
        if parts["widest_row_over_box"] < LEAST_ROW_OVER_BOX:
            return "mediastinum_mask_over_box_width"
        if parts["centre_shift_over_box"] >= MOST_CENTRE_SHIFT:
            return "mediastinum_centre_shift"
        return None


def _on_row(box: Box, row: int) -> tuple[int, int] | None:
    if not box.y0 <= row <= box.y1:
        return None
    columns = np.flatnonzero(box.mask[row - box.y0])
    return (box.x0 + int(columns[0]), box.x0 + int(columns[-1])) if columns.size else None
