"""On which anatomies a finding lies: the share of each lesion's area that falls on an anatomy's mask.

Published as an "IoU", but its denominator is the lesion alone: ``area(lesion and anatomy) / area(lesion) > 0.5``,
strictly. A lesion on two overlapping anatomies lies on both; a lesion that straddles lies on none. What the paper
leaves open is an option of :class:`RelationRule`, and every finding that falls between is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import RegionError
from medground.imaging.pasting import box_of
from medground.imaging.rle import Size

Mask = NDArray[np.bool_]
Pair = tuple[str, str]
"""``(anatomy, finding)``."""


@dataclass(frozen=True)
class RelationRule:
    """Every choice of the relation between lesions and anatomies.

    Attributes:
        threshold: a lesion lies on an anatomy if more than this share of it does.
        lesions: ``any``: a finding lies where one of its lesions does; ``union``: all its lesions are judged together,
            so that a finding on both sides may lie nowhere.
        denominator: ``clipped``: a box's area inside its frame; ``whole``: as published, overhang included.
        counting: ``exact`` areas of fractional boxes, or ``centres``: pixels whose centre lies in the box.
        touch: shares up to this one are no overlap; between it and the threshold a pair is *partial*: not asked.
    """

    threshold: float = 0.5
    lesions: Literal["any", "union"] = "any"
    denominator: Literal["clipped", "whole"] = "clipped"
    counting: Literal["exact", "centres"] = "exact"
    touch: float = 0.0


@dataclass(frozen=True)
class Lesion:
    """One lesion of a finding: a box in a frame, or a mask.

    Attributes:
        finding: its name.
        box: ``x0, y0, x1, y1`` half open, in the pixels of ``frame``; fractions and overhang allowed.
        frame: ``(width, height)`` that the box is stated in; None: the masks' own.
        mask: ``(height, width)``, of the anatomies' size.
    """

    finding: str
    box: tuple[float, float, float, float] | None = None
    frame: Size | None = None
    mask: Mask | None = None


@dataclass(frozen=True)
class PlacedLesion:
    """What the relation rule says about one image.

    Attributes:
        shares: one mapping a lesion (or finding, under ``union``): anatomy -> share, None where undefined.
        findings: the finding of each.
        related: pairs over the threshold.
        partial: pairs that touch without being related.
        on_none: defined lesions that lie on no anatomy.
        on_several: lesions that lie on two or more.
        undefined: lesions without an area inside the frame.
        lost: findings none of whose lesions lies on an anatomy.
        empty: anatomies whose mask has no pixel.
    """

    shares: tuple[Mapping[str, float | None], ...]
    findings: tuple[str, ...]
    related: frozenset[Pair]
    partial: frozenset[Pair]
    on_none: int
    on_several: int
    undefined: int
    lost: frozenset[str]
    empty: frozenset[str] = field(default=frozenset())


def place(lesions: Sequence[Lesion], anatomies: Mapping[str, Mask], rule: RelationRule | None = None) -> PlacedLesion:
    """Return which findings of one image lie on which anatomies.

    Args:
        lesions: of all findings.
        anatomies: name -> mask ``(height, width)``, all of one size.
        rule: the choices; None: the defaults.

    Raises:
        RegionError: masks of several sizes, or a lesion that is neither box nor mask.
    """
    rule = rule or RelationRule()
    size = _one_size(anatomies)
    footprints = [_footprint(lesion, size, rule) for lesion in lesions]
    if rule.lesions == "union":
        footprints = _united(footprints, size)
    shares = [{name: one.share(mask) for name, mask in anatomies.items()} for one in footprints]
    findings = [one.finding for one in footprints]
    over = [frozenset(a for a, s in row.items() if s is not None and s > rule.threshold) for row in shares]
    defined = [one.area > 0 for one in footprints]
    related = {(anatomy, f) for f, names in zip(findings, over, strict=True) for anatomy in names}
    touching = {
        (anatomy, f)
        for f, row in zip(findings, shares, strict=True)
        for anatomy, share in row.items()
        if share is not None and share > rule.touch
    }
    return PlacedLesion(
        shares=tuple(shares),
        findings=tuple(findings),
        related=frozenset(related),
        partial=frozenset(touching - related),
        on_none=sum(d and not names for d, names in zip(defined, over, strict=True)),
        on_several=sum(len(names) > 1 for names in over),
        undefined=sum(not d for d in defined),
        lost=frozenset(findings) - {f for _, f in related},
        empty=frozenset(name for name, mask in anatomies.items() if not mask.any()),
    )


def _one_size(anatomies: Mapping[str, Mask]) -> Size:
    shapes = {mask.shape for mask in anatomies.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise RegionError(
            "anatomy masks of one image must share a size" if shapes else "an image has no anatomy mask",
            expected="masks (height, width) of one size",
            got=", ".join(f"{name} {mask.shape}" for name, mask in sorted(anatomies.items())) or "none",
        )
    height, width = next(iter(shapes))
    return width, height


@dataclass(frozen=True)
class _Footprint:
    """How a lesion covers the pixels.

    Attributes:
        corner: row and column of the first pixel of ``cover``.
        cover: ``(h, w)`` share of each pixel that the lesion takes.
        area: what to divide by; 0 where the share is undefined.
    """

    finding: str
    corner: tuple[int, int]
    cover: NDArray[np.float64]
    area: float

    @property
    def where(self) -> tuple[slice, slice]:
        """Rows and columns of the picture under ``cover``."""
        (top, left), (height, width) = self.corner, self.cover.shape
        return slice(top, top + height), slice(left, left + width)

    def share(self, anatomy: Mask) -> float | None:
        """Return the share of the lesion on an anatomy, or None where it has no area."""
        if self.area <= 0:
            return None
        return float(self.cover[anatomy[self.where]].sum()) / self.area


def _footprint(lesion: Lesion, size: Size, rule: RelationRule) -> _Footprint:
    if lesion.mask is not None:
        return _of_mask(lesion.finding, lesion.mask, size)
    if lesion.box is None or not all(map(math.isfinite, lesion.box)):
        raise RegionError("a lesion has neither box nor mask", where=lesion.finding, got=lesion.box)
    scale = [own / stated for own, stated in zip(size, lesion.frame or size, strict=True)]
    (x0, x1), (y0, y1) = ((lesion.box[k] * scale[k], lesion.box[k + 2] * scale[k]) for k in (0, 1))
    (left, columns), (top, rows) = _cover(x0, x1, size[0], rule.counting), _cover(y0, y1, size[1], rule.counting)
    cover = np.outer(rows, columns)
    area = float(cover.sum())
    if area > 0 and rule.denominator == "whole":
        exact = rule.counting == "exact"
        area = (x1 - x0) * (y1 - y0) if exact else float(_centres(x0, x1) * _centres(y0, y1))
    return _Footprint(lesion.finding, (top, left), cover, area)


def _of_mask(finding: str, mask: Mask, size: Size) -> _Footprint:
    if mask.shape != (size[1], size[0]):
        raise RegionError(
            "a lesion's mask has another size than the anatomies",
            where=finding,
            expected=f"(height, width) = ({size[1]}, {size[0]})",
            got=mask.shape,
        )
    if not mask.any():
        return _Footprint(finding, (0, 0), np.zeros((0, 0)), 0.0)
    x0, y0, x1, y1 = box_of(mask)
    cover = mask[y0:y1, x0:x1].astype(np.float64)
    return _Footprint(finding, (y0, x0), cover, float(cover.sum()))


def _cover(low: float, high: float, cells: int, counting: str) -> tuple[int, NDArray[np.float64]]:
    """Return the first unit cell under ``[low, high)`` and how much of it and those after it lies inside."""
    first, last = max(0, math.floor(low)), min(cells, math.ceil(high))
    starts = np.arange(first, max(first, last), dtype=np.float64)
    if counting == "centres":
        return first, ((starts + 0.5 >= low) & (starts + 0.5 < high)).astype(np.float64)
    return first, np.clip(np.minimum(starts + 1.0, high) - np.maximum(starts, low), 0.0, 1.0)


def _centres(low: float, high: float) -> int:
    """Return how many pixel centres lie in ``[low, high)``, on or off the picture."""
    return max(0, math.ceil(high - 0.5) - math.ceil(low - 0.5))


def _united(footprints: Sequence[_Footprint], size: Size) -> list[_Footprint]:
    """Return one footprint a finding: the union of its lesions, shared pixels by their largest cover."""
    united: dict[str, NDArray[np.float64]] = {}
    for one in footprints:
        canvas = united.setdefault(one.finding, np.zeros((size[1], size[0])))
        canvas[one.where] = np.maximum(canvas[one.where], one.cover)
    return [_Footprint(finding, (0, 0), cover, float(cover.sum())) for finding, cover in united.items()]
