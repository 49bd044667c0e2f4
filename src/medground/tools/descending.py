"""Six rows of the descending aorta, which two tasks share, with their quality control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from medground.tools.anatomy import Anatomy

ROWS = 6
TRIMMED = 0.05
LEAST_HEIGHT = 0.2
MOST_WIDTH_STD = 0.01


@dataclass(frozen=True)
class Sections:
    """Six rows of the descending aorta above where it leaves the heart.

    Attributes:
        reason: why quality control refuses the case, or None.
        parts: rows, widths and edge points, by the names of the evidence.
        widest: row, first and last column of the widest of the six.
    """

    reason: str | None
    parts: dict[str, Any]
    widest: tuple[int, int, int] = (0, 0, 0)

    @property
    def edge(self) -> Any:
        """The six points on the image-right edge, (6, 2)."""
        return np.array(self.parts["points"], dtype=np.float64)


def sections(anatomy: Anatomy) -> Sections:
    """Cut the mask into five bands, 5 % trimmed at both ends, and measure at the six borders.

    Rows are truncated to whole pixels. Dropped: a height below 0.2 of the picture, or widths that spread by more than
    0.01 of its width (standard deviation).
    """
    box = anatomy.box("descending_aorta")
    if box is None:
        return Sections("empty_descending_aorta", {})
    filled, first, last = box.rows()
    end = anatomy.landmarks.get("leaves_heart_row")
    if end is not None:
        above = filled < float(end)
        if not above.any():
            return Sections("no_aorta_above_heart", {})
        filled, first, last = filled[above], first[above], last[above]
    height = int(filled[-1] - filled[0])
    trim = height * TRIMMED
    rows = np.linspace(filled[0] + trim, filled[-1] - trim, ROWS).astype(int)
    at = np.clip(np.searchsorted(filled, rows), 0, len(filled) - 1)
    widths = last[at] - first[at]
    parts = {
        "rows": rows.tolist(),
        "widths": widths.tolist(),
        "height_fraction": height / anatomy.height,
        "width_std_fraction": float(np.std(widths / anatomy.width)),
        "points": [[int(x), int(y)] for x, y in zip(last[at], rows, strict=True)],
    }
    widest = int(np.argmax(widths))
    reason = "height" if parts["height_fraction"] < LEAST_HEIGHT else None
    if reason is None and parts["width_std_fraction"] > MOST_WIDTH_STD:
        reason = "width_std"
    return Sections(reason, parts, (int(rows[widest]), int(first[at][widest]), int(last[at][widest])))
