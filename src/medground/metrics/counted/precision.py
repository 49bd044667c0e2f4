"""How much of what a map marks is the finding."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.metrics.counted import Counts, Floats
from medground.metrics.spec import MetricSpec


class Precision:
    """Share of the selected pixels that lie in the region, at the searched threshold."""

    name: ClassVar[str] = "precision"
    spec: ClassVar[MetricSpec] = MetricSpec(
        "precision", "Precision at searched threshold", family="overlap", searched=True, digits=2
    )

    def values(self, counts: Counts) -> Floats:
        """Undefined where nothing is selected."""
        selected, inside = (counts.at(of, counts.searched) for of in (counts.selected, counts.inside))
        share: Floats = np.divide(inside, selected, out=np.full(inside.shape, np.nan), where=selected > 0)
        return share
