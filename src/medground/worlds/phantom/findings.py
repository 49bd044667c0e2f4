"""What is wrong with the patient: shape and place of each finding, drawn from the finding's own streams.

Shape and place have separate streams, so that the same lesion can be pasted elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from medground.worlds.phantom.anatomy import Anatomy
from medground.worlds.phantom.outlines import AXIS, Table
from medground.worlds.phantom.streams import chance, normal, uniform

BALL: Final = 0
PLATE: Final = 1
WEDGE: Final = 2
CLOUD: Final = 3
CONSOLIDATION: Final = 4
FLUID: Final = 5
COLLAPSE: Final = 6

MASS: Final = (0.040, 0.100)
"""Radius of a mass."""

NODULE: Final = (0.014, 0.034)
"""Radius of a nodule: at 224 pixels never smaller than a few pixels."""

FLUID_HEIGHT: Final = (0.15, 0.48)
"""Height of an effusion over its base."""

COLLAPSED: Final = (0.12, 0.5)
"""Strength of a lung's retraction."""

ENLARGED: Final = (0.57, 0.72)
"""Cardiothoracic ratio with cardiomegaly; a normal heart stays under 0.51."""


class Lesion(NamedTuple):
    """One opacity (or, in a collapse, one lucency); lengths in image widths.

    Attributes:
        kind: one of the constants above.
        side: 0 image left (patient's right), 1 image right.
        x: centre, or unused.
        y: centre, or the lowest level of a collapse.
        a: half length, or height of a wedge or of fluid, or the strength of a collapse.
        b: half thickness, or the gap above the apex of a collapse.
        turn: radians.
        amount: attenuation added at full density, body units (fluid: share of the air replaced).
        soft: width of the rim.
        rough: how much noise eats the edge.
        level: the mask is where the shape exceeds this.
        key: of the lesion's own noise.
    """

    kind: int
    side: int
    x: float
    y: float
    a: float
    b: float
    turn: float
    amount: float
    soft: float
    rough: float
    level: float
    key: int


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
    top, bottom = anatomy.apex + 0.035 + margin, peak - margin
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


def _ball(radius: tuple[float, float], amount: tuple[float, float], rough: float, soft: tuple[float, float]) -> Maker:
    def make(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
        r = _skewed(shape, radius)
        aspect = 1 + normal(shape, 0.10)
        lesion = Lesion(
            kind=BALL, side=side, x=0, y=0, a=r * aspect, b=r / aspect, turn=uniform(shape, 0, 3.14),
            amount=uniform(shape, *amount), soft=uniform(shape, *soft), rough=rough * uniform(shape, 0.3, 1),
            level=0.1, key=_key(shape),
        )  # fmt: skip
        x, y = place(spot, anatomy, side, 0.7 * r)
        return (lesion._replace(x=x, y=y),)

    return make


def _atelectasis(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    if chance(shape, 0.5):
        plate = Lesion(
            kind=PLATE, side=side, x=0, y=0, a=uniform(shape, 0.06, 0.14), b=uniform(shape, 0.008, 0.020),
            turn=float(np.deg2rad(uniform(shape, -22, 22))), amount=uniform(shape, 0.22, 0.36), soft=0.0,
            rough=uniform(shape, -0.25, 0.25), level=0.2, key=_key(shape),
        )  # fmt: skip
        x, y = place(spot, anatomy, side, 0.05, 0.45, 1.05)
        return (plate._replace(x=x, y=y),)
    return (
        Lesion(
            kind=WEDGE, side=side, x=0, y=0, a=uniform(shape, 0.12, 0.24), b=uniform(shape, 0.7, 1.1), turn=0.0,
            amount=uniform(shape, 0.38, 0.55), soft=uniform(shape, 0.02, 0.05), rough=0.25, level=0.12,
            key=_key(shape),
        ),
    )  # fmt: skip


def _effusion(shape: Rng, _spot: Rng, _anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    sides = (0, 1) if chance(shape, 0.2) else (side,)
    return tuple(
        Lesion(
            kind=FLUID, side=which, x=0, y=0, a=_skewed(shape, FLUID_HEIGHT), b=0.0, turn=0.0,
            amount=uniform(shape, 0.72, 0.9), soft=uniform(shape, 0.03, 0.07), rough=0.0, level=0.3, key=_key(shape),
        )
        for which in sides
    )  # fmt: skip


def _infiltration(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    sides = (side, 1 - side) if chance(shape, 0.35) else (side,)
    out = []
    for which in sides:
        cloud = Lesion(
            kind=CLOUD, side=which, x=0, y=0, a=uniform(shape, 0.09, 0.17), b=uniform(shape, 0.12, 0.24),
            turn=uniform(shape, -0.4, 0.4), amount=uniform(shape, 0.16, 0.27), soft=0.6, rough=0.45, level=0.12,
            key=_key(shape),
        )  # fmt: skip
        x, y = place(spot, anatomy, which, 0.06, 0.25, 1.0)
        out.append(cloud._replace(x=x, y=y))
    return tuple(out)


def _pneumonia(shape: Rng, spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    a = uniform(shape, 0.08, 0.18)
    lesion = Lesion(
        kind=CONSOLIDATION, side=side, x=0, y=0, a=a, b=min(a * uniform(shape, 0.8, 1.3), 0.21),
        turn=uniform(shape, -0.6, 0.6), amount=uniform(shape, 0.30, 0.50), soft=0.75, rough=0.50, level=0.15,
        key=_key(shape),
    )  # fmt: skip
    x, y = place(spot, anatomy, side, 0.06, 0.1, 1.0)
    return (lesion._replace(x=x, y=y),)


def _pneumothorax(shape: Rng, _spot: Rng, anatomy: Anatomy, side: int) -> tuple[Lesion, ...]:
    peak = anatomy.dome_peaks[side]
    share = uniform(shape, 0.55, 1.0)
    return (
        Lesion(
            kind=COLLAPSE, side=side, x=0, y=anatomy.apex + share * (peak - anatomy.apex),
            a=uniform(shape, *COLLAPSED), b=uniform(shape, 0.03, 0.14), turn=0.0, amount=uniform(shape, 0.07, 0.14),
            soft=0.0, rough=0.0, level=0.0, key=_key(shape),
        ),
    )  # fmt: skip


MAKERS: Final[dict[str, Maker]] = {
    "Atelectasis": _atelectasis,
    "Effusion": _effusion,
    "Infiltration": _infiltration,
    "Mass": _ball(MASS, (0.34, 0.52), 0.16, (0.2, 0.45)),
    "Nodule": _ball(NODULE, (0.24, 0.40), 0.06, (0.15, 0.4)),
    "Pneumonia": _pneumonia,
    "Pneumothorax": _pneumothorax,
}
"""Cardiomegaly is no lesion: it is another heart."""

SIZES: Final[dict[str, tuple[float, float]]] = {
    "Effusion": FLUID_HEIGHT,
    "Mass": MASS,
    "Nodule": NODULE,
    "Pneumothorax": COLLAPSED,
}
"""The range of the one number that makes a finding small or large."""


def extent(finding: str, lesion: Lesion) -> float | None:
    """Return where a lesion lies in its finding's range, 0 smallest to 1 largest; None where size is not one number."""
    if finding not in SIZES:
        return None
    low, high = SIZES[finding]
    size = math.sqrt(lesion.a * lesion.b) if lesion.kind == BALL else lesion.a
    return (size - low) / (high - low)


def resized(finding: str, lesion: Lesion, share: float) -> Lesion:
    """Return the same lesion at the same place with another size, 0 smallest to 1 largest of its range."""
    low, high = SIZES[finding]
    size = low + share * (high - low)
    if lesion.kind == BALL:
        factor = size / math.sqrt(lesion.a * lesion.b)
        return lesion._replace(a=lesion.a * factor, b=lesion.b * factor)
    return lesion._replace(a=size)
