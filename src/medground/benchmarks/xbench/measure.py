"""One map against one region under one protocol: the counts from which every measure follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.xbench.protocol import Protocol
from medground.imaging.geometry import Geometry, Size, resample_map
from medground.imaging.regions import Region
from medground.metrics.pointing import peak, pointing
from medground.metrics.saliency import divide_by_max, fill_uncovered, minmax, state
from medground.metrics.sweep import sweep

State = Literal["ok", "flat", "invalid", "absent", "vanished", "failed", "none"]
"""What became of a (case, finding) pair.

``ok`` and ``flat`` are scored. ``invalid`` (a NaN in the map), ``absent`` (no map) and ``vanished`` (the region has no
pixel on the protocol's grid) are undefined, ``failed`` is an unreadable case; ``none``: the finding has no region here.
"""


@dataclass(frozen=True)
class Target:
    """A region as a protocol sees it.

    Attributes:
        size: width and height of the working grid.
        mask: the region on it, ``(H, W)`` bool.
        wide: the region with the pointing margin, equal to ``mask`` without one.
        share: area of the region over the area of its frame, before any resizing, boxes by ``size_cut`` under every
            protocol, so that bands of sizes keep their members.
    """

    size: Size
    mask: NDArray[np.bool_]
    wide: NDArray[np.bool_]
    share: float


@dataclass(frozen=True)
class MapCounts:
    """Sufficient statistics of one map on one target; field names are the columns of a row."""

    state: State
    reason: str | None = None
    ties: int | None = None
    ties_inside: int | None = None
    first_inside: bool | None = None
    peak_x: int | None = None
    peak_y: int | None = None
    covered: int | None = None
    selected: list[int] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)


def make_target(region: Region, protocol: Protocol) -> Target:
    """Rasterise a region on the protocol's grid (the region's own frame for ``original``)."""
    size = region.frame if protocol.grid == "original" else protocol.grid
    mask = region.mask_at(size, rule=protocol.box_rule, resize=protocol.mask_resize)
    wide = mask
    if protocol.margin:
        wide = region.widened(protocol.margin).mask_at(size, rule=protocol.box_rule, resize=protocol.mask_resize)
    return Target(size, mask, wide, region.area / (region.frame[0] * region.frame[1]))


def on_grid(
    saliency: NDArray[np.floating[Any]], geometry: Geometry, size: Size, protocol: Protocol
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Put a map on the working grid and say which pixels the model saw.

    Returns:
        values ``(H, W)``, NaN where a crop removed the pixels; and the mask of the others, or None where all were seen.
    """
    values = resample_map(saliency, geometry, size, protocol.resample)
    seen = geometry.covered(size)
    return values, None if seen.all() else seen


def count(saliency: NDArray[np.floating[Any]], geometry: Geometry, target: Target, protocol: Protocol) -> MapCounts:
    """Measure one map on one target.

    Args:
        saliency: ``(h, w)`` on the model's grid, before any normalising.
        geometry: how that grid lies on the picture.
        target: the region under the same protocol.
        protocol: every choice.
    """
    values, seen = on_grid(saliency, geometry, target.size, protocol)
    what = state(values, seen)
    top = peak(values, seen)
    if what == "invalid" or top is None:
        return MapCounts("invalid", "the map holds NaN or infinite values")
    if not target.mask.any():
        return MapCounts("vanished", f"the region has no pixel at {target.size[0]}x{target.size[1]}")
    chosen, inside = _sweep(_normalised(values, seen, protocol), target.mask, protocol)
    return MapCounts(
        state=what,
        ties=top.ties,
        ties_inside=pointing(values, target.wide, "any", seen).inside,
        first_inside=bool(target.wide[top.row, top.col]),
        peak_x=top.col,
        peak_y=top.row,
        covered=int(target.mask.size if seen is None else seen.sum()),
        selected=chosen.tolist(),
        inside=inside.tolist(),
    )


def _normalised(
    values: NDArray[np.float64], seen: NDArray[np.bool_] | None, protocol: Protocol
) -> NDArray[np.floating[Any]]:
    """Normalise; pixels that the model never saw get the smallest value that it gave."""
    if protocol.normalise == "minmax":
        return minmax(values, seen)
    filled = values if seen is None else fill_uncovered(values, seen)
    return divide_by_max(filled) if protocol.normalise == "max" else filled


def _sweep(
    scaled: NDArray[np.floating[Any]], mask: NDArray[np.bool_], protocol: Protocol
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count at the grid's thresholds, then at fixed ones outside it, each in the protocol's number type."""
    chosen, inside = sweep(scaled, mask, protocol.tau, protocol.comparison)
    if not len(protocol.extra):
        return chosen, inside
    kind = np.dtype(protocol.precision)
    more, more_inside = sweep(scaled.astype(kind), mask, protocol.extra.astype(kind), protocol.comparison)
    return np.concatenate([chosen, more]), np.concatenate([inside, more_inside])
