"""What the truth itself reaches when it is used as a saliency map: the ceiling beside every figure of grounding.

A map is enlarged by one rule and a region made smaller by another, so even the truth can miss: on small boxes its
first maximum may lie a pixel outside. Below that nobody should look for the model's fault.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from medground.benchmarks.xbench.measure import Target, count
from medground.benchmarks.xbench.protocol import Protocol
from medground.imaging.geometry import Geometry
from medground.imaging.regions import Region
from medground.metrics.sweep import overlap

LARGEST = 1024
"""Pixels of width or height up to which the truth is drawn in its own frame."""

COLUMNS = ("ceiling_ties", "ceiling_ties_inside", "ceiling_first_inside", "ceiling_selected", "ceiling_inside")


def ceiling(region: Region, target: Target, protocol: Protocol) -> dict[str, Any]:
    """Return the columns of a row that say what the region reaches as a map; at its own best threshold for overlap.

    Args:
        region: the truth.
        target: the same as the protocol sees it.
        protocol: every choice.
    """
    width, height = region.frame
    shrink = max(1.0, max(width, height) / LARGEST)
    size = (max(1, round(width / shrink)), max(1, round(height / shrink)))
    drawn = region.mask_at(size, rule=protocol.box_rule).astype(np.float32)
    counts = count(drawn, Geometry.identity(size), target, protocol)
    if counts.state not in {"ok", "flat"}:
        return {}
    allowed = protocol.searched
    selected, inside = np.array(counts.selected)[allowed], np.array(counts.inside)[allowed]
    best = int(np.argmax(overlap(selected, inside, int(target.mask.sum())).dice))
    counted = (counts.ties, counts.ties_inside, counts.first_inside, int(selected[best]), int(inside[best]))
    return dict(zip(COLUMNS, counted, strict=True))
