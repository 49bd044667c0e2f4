"""What is wrong with the patient: shape and place of each finding, drawn from the finding's own streams.

Shape and place have separate streams, so that the same lesion can be pasted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from medground.worlds.phantom.anatomy import Anatomy
from medground.worlds.phantom.outlines import AXIS, Table
from medground.worlds.phantom.shapes import (
    ASPECT,
    BALL,
    CLOUD,
    COLLAPSE,
    CONSOLIDATION,
    FLUID,
    MASS,
    NODULE,
    PLATE,
    SHAPES,
    SLANT,
    WEDGE,
    Lesion,
    Span,
)
from medground.worlds.phantom.streams import chance, normal, uniform

ENLARGED: Final = (0.57, 0.72)
"""Cardiothoracic ratio with cardiomegaly; a normal heart stays under 0.51."""

TOP: Final = 0.035
"""No lesion's middle lies nearer to the apex: a lung is too narrow there."""

BOTH: Final[Mapping[str, float]] = {"Effusion": 0.2, "Infiltration": 0.35}
"""Share of the cases in which a finding lies on both sides."""

PLATES: Final = 0.5
"""Share of atelectases that are plates; the others are wedges."""

SMOOTHEST: Final = 0.3
"""Least roughness of a ball, of its most."""

UPRIGHT: Final = (0.8, 1.3)
"""Height of a pneumonia over its width."""

FREE_AIR: Final = (0.55, 1.0)
"""Lowest level of free air, 0 apex to 1 dome."""

HEIGHTS: Final[Mapping[str, Span]] = {
    "plate": (0.45, 1.05),  # plates lie over the dome
    "Infiltration": (0.25, 1.0),  # a cloud is too wide for the apex
    "Pneumonia": (0.1, 1.0),
}
"""Where in a lung a middle may lie, 0 apex to 1 dome; anywhere unless named."""

MARGINS: Final[Mapping[str, float]] = {"ball": 0.7, "plate": 0.05, "Infiltration": 0.06, "Pneumonia": 0.06}
"""Least distance of a middle from the lung's borders, image widths; of a ball in radii."""

Rng = np.random.Generator
Maker = Callable[[Rng, Rng, Anatomy, int], tuple[Lesion, ...]]


def _at(table: Table, where: float) -> float:
    return float(np.interp(where, AXIS, table))


def place(
    rng: Rng, anatomy: Anatomy, side: int, margin: float, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Return a point of one lung.

    Args:
        rng: the finding's place stream.
        anatomy: the thorax.
        side: 0 image left, 1 image right.
        margin: least distance from the lung's borders.
        low: upper end of the heights allowed, as a share of the lung's height from the apex.
        high: lower end.
    """
    sign = 1.0 if side else -1.0
    peak = anatomy.dome_peaks[side]
    top, bottom = anatomy.apex + TOP + margin, peak - margin
    # High domes and wide margins can cross: both ends are clamped to the middle.
    middle = 0.5 * (anatomy.apex + peak)
    top, bottom = min(top, middle), max(bottom, middle)
    y = uniform(rng, top + low * (bottom - top), top + high * (bottom - top))
    inner, outer = _at(anatomy.medial[side], y) + margin, _at(anatomy.cage, y) - margin
    middle = 0.5 * (inner + outer)
    x = uniform(rng, min(inner, middle), max(outer, middle))
    return sign * x, y


def _key(rng: Rng) -> int:
    return int(rng.integers(1, 2**31 - 1))


def _skewed(rng: Rng, span: tuple[float, float]) -> float:
    """Return a size; small ones are commoner, as in life."""
    return float(span[0] + (span[1] - span[0]) * uniform(rng, 0, 1) ** 1.3)


def _ball(finding: str, radius: Span) -> Maker:
    ranges = SHAPES[finding]

    def make(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
        r = _skewed(shape, radius)
        aspect = 1 + normal(shape, ASPECT)
        lesion = Lesion(
            kind=BALL, side=side, x=0, y=0, a=r * aspect, b=r / aspect, turn=uniform(shape, *ranges["turn"]),
            amount=uniform(shape, *ranges["amount"]), soft=uniform(shape, *ranges["soft"]),
            rough=ranges["rough"][1] * uniform(shape, SMOOTHEST, 1), level=0.1, key=_key(shape),
        )  # fmt: skip
        x, y = place(spot, anatomy, side, MARGINS["ball"] * r)
        return (lesion._replace(x=x, y=y),)

    return make


def _plate(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges = SHAPES["plate"]
    plate = Lesion(
        kind=PLATE, side=side, x=0, y=0, a=uniform(shape, *ranges["a"]), b=uniform(shape, *ranges["b"]),
        turn=float(np.deg2rad(uniform(shape, -SLANT, SLANT))), amount=uniform(shape, *ranges["amount"]), soft=0.0,
        rough=uniform(shape, *ranges["rough"]), level=0.2, key=_key(shape),
    )  # fmt: skip
    x, y = place(spot, anatomy, side, MARGINS["plate"], *HEIGHTS["plate"])
    return (plate._replace(x=x, y=y),)


def _wedge(shape: Rng, _spot: Rng, _anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges = SHAPES["wedge"]
    return (
        Lesion(
            kind=WEDGE, side=side, x=0, y=0, a=uniform(shape, *ranges["a"]), b=uniform(shape, *ranges["b"]), turn=0.0,
            amount=uniform(shape, *ranges["amount"]), soft=uniform(shape, *ranges["soft"]), rough=0.25, level=0.12,
            key=_key(shape),
        ),
    )  # fmt: skip


def _effusion(shape: Rng, _spot: Rng, _anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges = SHAPES["Effusion"]
    sides = (0, 1) if chance(shape, BOTH["Effusion"]) else (side,)
    return tuple(
        Lesion(
            kind=FLUID, side=which, x=0, y=0, a=_skewed(shape, ranges["a"]), b=0.0, turn=0.0,
            amount=uniform(shape, *ranges["amount"]), soft=uniform(shape, *ranges["soft"]), rough=0.0, level=0.3,
            key=_key(shape),
        )
        for which in sides
    )  # fmt: skip


def _infiltration(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges = SHAPES["Infiltration"]
    sides = (side, 1 - side) if chance(shape, BOTH["Infiltration"]) else (side,)
    out = []
    for which in sides:
        cloud = Lesion(
            kind=CLOUD, side=which, x=0, y=0, a=uniform(shape, *ranges["a"]), b=uniform(shape, *ranges["b"]),
            turn=uniform(shape, *ranges["turn"]), amount=uniform(shape, *ranges["amount"]), soft=0.6, rough=0.45,
            level=0.12, key=_key(shape),
        )  # fmt: skip
        x, y = place(spot, anatomy, which, MARGINS["Infiltration"], *HEIGHTS["Infiltration"])
        out.append(cloud._replace(x=x, y=y))
    return tuple(out)


def _pneumonia(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges = SHAPES["Pneumonia"]
    a = uniform(shape, *ranges["a"])
    lesion = Lesion(
        kind=CONSOLIDATION, side=side, x=0, y=0, a=a, b=min(a * uniform(shape, *UPRIGHT), ranges["b"][1]),
        turn=uniform(shape, *ranges["turn"]), amount=uniform(shape, *ranges["amount"]), soft=0.75, rough=0.50,
        level=0.15, key=_key(shape),
    )  # fmt: skip
    x, y = place(spot, anatomy, side, MARGINS["Pneumonia"], *HEIGHTS["Pneumonia"])
    return (lesion._replace(x=x, y=y),)


def _pneumothorax(shape: Rng, _spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    ranges, peak = SHAPES["Pneumothorax"], anatomy.dome_peaks[side]
    share = uniform(shape, *FREE_AIR)
    return (
        Lesion(
            kind=COLLAPSE, side=side, x=0, y=anatomy.apex + share * (peak - anatomy.apex),
            a=uniform(shape, *ranges["a"]), b=uniform(shape, *ranges["b"]), turn=0.0,
            amount=uniform(shape, *ranges["amount"]), soft=0.0, rough=0.0, level=0.0, key=_key(shape),
        ),
    )  # fmt: skip


_ATELECTASIS: Final[Mapping[str, Maker]] = {"plate": _plate, "wedge": _wedge}


def make_lesions(
    finding: str, shape: Rng, spot: Rng, anatomy: Anatomy, side: int, form: str | None = None
) -> tuple[Lesion, ...]:
    """Return the lesions of one finding.

    Args:
        finding: one that is a lesion.
        shape: its shape's stream.
        spot: its place's stream.
        anatomy: the thorax.
        side: 0 image left, 1 image right.
        form: of a finding with several forms, instead of the drawn one.
    """
    if finding == "Atelectasis":
        drawn = "plate" if chance(shape, PLATES) else "wedge"
        return _ATELECTASIS[form or drawn](shape, spot, anatomy, side)
    return _MAKERS[finding](shape, spot, anatomy, side)


_MAKERS: Final[Mapping[str, Maker]] = {
    "Effusion": _effusion,
    "Infiltration": _infiltration,
    "Mass": _ball("Mass", MASS),
    "Nodule": _ball("Nodule", NODULE),
    "Pneumonia": _pneumonia,
    "Pneumothorax": _pneumothorax,
}

LESIONS: Final = ("Atelectasis", *_MAKERS)
"""Findings that are lesions; cardiomegaly is none: it is another heart."""
