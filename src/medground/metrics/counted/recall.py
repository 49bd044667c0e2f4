"""How much of the finding a map marks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.metrics.counted import Counts, Floats
from medground.metrics.spec import MetricSpec


class Recall:
    """Share of the region that is selected, at the searched threshold."""

    name: ClassVar[str] = "recall"
    spec: ClassVar[MetricSpec] = MetricSpec(
        "recall", "Recall at searched threshold", family="overlap", searched=True, digits=2
    )

    def values(self, counts: Counts) -> Floats:
        """A map that marks everything reaches 1: read it beside precision."""
        inside, area = counts.at(counts.inside, counts.searched), counts.area.astype(np.float64)
        share: Floats = np.divide(inside, area, out=np.full(inside.shape, np.nan), where=area > 0)
        return share
