"""Is the trachea in the middle?"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import numpy as np

from medground.tools.anatomy import Anatomy
from medground.tools.base import Mark, Measurement, dropped
from medground.tools.geometry import vertical_line
from medground.tools.rules import RULES


class TracheaDeviation:
    """Side of the trachea against the line through the vertebrae, by majority of nine rows."""

    name: ClassVar[str] = "trachea_deviation"
    rule = RULES["trachea_deviation"]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Label nine equally spaced rows; a row is left or right only if the whole trachea lies beyond the line."""
        spine = np.asarray(anatomy.landmarks.get("vertebra_points", ()), dtype=np.float64).reshape(-1, 2)
        if len(spine) < 2:
            return dropped(self.name, "too_few_vertebrae")
        trachea = anatomy.box("trachea")
        if trachea is None:
            return dropped(self.name, "empty_trachea")
        m, b = vertical_line(spine)
        filled, first, last = trachea.rows()
        rows = np.linspace(trachea.y0, trachea.y1, self.rule.thresholds["rows"]).astype(int)
        at = np.clip(np.searchsorted(filled, rows), 0, len(filled) - 1)
        labels = [_side(m * row + b, first[i], last[i]) for row, i in zip(rows, at, strict=True)]
        counts = Counter(labels)
        value = majority(labels)
        parts = {"rows": rows.tolist(), "row_labels": labels, "counts": dict(counts)}
        marks = (
            Mark("mask", "trachea"),
            Mark("point", "midline_top", ((m * trachea.y0 + b, trachea.y0),)),
            Mark("point", "midline_bottom", ((m * trachea.y1 + b, trachea.y1),)),
            Mark("line", "midline", ((m * trachea.y0 + b, trachea.y0), (m * trachea.y1 + b, trachea.y1)), "reference"),
        )
        decision = self.rule.labelled(int(value != "flat"))
        return Measurement(self.name, "ok", None, value, None, decision, parts, marks)


def _side(line: float, first: int, last: int) -> str:
    if last < line:
        return "right"  # the patient's right lies on the image's left
    return "left" if first > line else "flat"


def majority(labels: list[str]) -> str:
    """Return the commonest label; ties set ``flat`` aside, and a tie of the sides is their ordered pair.

    >>> majority(["right"] * 4 + ["flat"] + ["left"] * 4)
    'right&left'
    """
    counts = Counter(labels)
    most = max(counts.values())
    first = [label for label in counts if counts[label] == most]
    if len(first) > 1 and "flat" in first:
        first.remove("flat")
    return "&".join(first)
