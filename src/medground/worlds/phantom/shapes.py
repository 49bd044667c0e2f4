"""The ranges that lesions are drawn from, by form; lesions of a size or shape by wish."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from medground.errors import ConfigError, did_you_mean

Span = tuple[float, float]
"""Lowest and highest value."""

BALL: Final = 0
PLATE: Final = 1
WEDGE: Final = 2
CLOUD: Final = 3
CONSOLIDATION: Final = 4
FLUID: Final = 5
COLLAPSE: Final = 6


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


Shape = Mapping[str, float | str]
"""Field of a lesion -> wanted value; ``form`` for a finding that has two."""

MASS: Final = (0.040, 0.100)
"""Radius of a mass: from 3 cm in diameter, in a picture of some 37 cm."""

NODULE: Final = (0.014, 0.034)
"""Radius of a nodule: up to 2.5 cm in diameter, and at 224 pixels never smaller than a few pixels."""

FLUID_HEIGHT: Final = (0.15, 0.48)
"""Height of an effusion over its base: from a blunt angle to half a lung."""

COLLAPSED: Final = (0.12, 0.5)
"""Strength of a lung's retraction: from a stripe of air to half of the lung."""

HALF_TURN: Final = (0.0, 3.14)
"""All directions."""

SLANT: Final = 22.0
"""Degrees: a plate of collapsed lung lies nearly level."""

ASPECT: Final = 0.10
"""Standard deviation of a ball's aspect ratio: nearly round."""

_STRETCH: Final = 1.35
"""A ball's half axes lie within its radius, times or divided by this."""

SHAPES: Final[Mapping[str, Mapping[str, Span]]] = {
    # Solid tissue with a sharp rim; the larger, the denser on the ray and the more lobed.
    "Mass": {
        "a": (MASS[0] / _STRETCH, MASS[1] * _STRETCH),
        "b": (MASS[0] / _STRETCH, MASS[1] * _STRETCH),
        "turn": HALF_TURN,
        "amount": (0.34, 0.52),
        "soft": (0.2, 0.45),
        "rough": (0.3 * 0.16, 0.16),
    },
    "Nodule": {
        "a": (NODULE[0] / _STRETCH, NODULE[1] * _STRETCH),
        "b": (NODULE[0] / _STRETCH, NODULE[1] * _STRETCH),
        "turn": HALF_TURN,
        "amount": (0.24, 0.40),
        "soft": (0.15, 0.4),
        "rough": (0.3 * 0.06, 0.06),
    },
    # Long, thin and faint; bent up or down.
    "plate": {
        "a": (0.06, 0.14),
        "b": (0.008, 0.020),
        "turn": (-math.radians(SLANT), math.radians(SLANT)),
        "amount": (0.22, 0.36),
        "rough": (-0.25, 0.25),
    },
    # A lobe without air, dense as the heart beside it; b is how far out it reaches, as a share of the lung.
    "wedge": {"a": (0.12, 0.24), "b": (0.7, 1.1), "amount": (0.38, 0.55), "soft": (0.02, 0.05)},
    # Replaces most of the air, with a soft level.
    "Effusion": {"a": FLUID_HEIGHT, "amount": (0.72, 0.9), "soft": (0.03, 0.07)},
    # Wide, upright and thin: vessels show through.
    "Infiltration": {"a": (0.09, 0.17), "b": (0.12, 0.24), "turn": (-0.4, 0.4), "amount": (0.16, 0.27)},
    # Denser, about as high as wide.
    "Pneumonia": {"a": (0.08, 0.18), "b": (0.064, 0.21), "turn": (-0.6, 0.6), "amount": (0.30, 0.50)},
    # b is the gap above the apex; free air takes away what the lung had.
    "Pneumothorax": {"a": COLLAPSED, "b": (0.03, 0.14), "amount": (0.07, 0.14)},
}
"""Form -> field of a lesion -> range."""

FORMS: Final[Mapping[str, tuple[str, ...]]] = {"Atelectasis": ("plate", "wedge")}
"""Finding -> its forms, where it has several; all others are their own."""

SIZES: Final[Mapping[str, Span]] = {
    "Effusion": FLUID_HEIGHT,
    "Mass": MASS,
    "Nodule": NODULE,
    "Pneumothorax": COLLAPSED,
}
"""The range of the one number that makes a finding small or large."""


def form_of(finding: str, lesion: Lesion) -> str:
    """Return the form of a lesion: a key of ``SHAPES``."""
    return {PLATE: "plate", WEDGE: "wedge"}.get(lesion.kind, finding)


def shaped(finding: str, lesion: Lesion, wanted: Shape) -> Lesion:
    """Return the same lesion at the same place with some of its fields as wanted.

    Args:
        finding: what it is of.
        lesion: as drawn.
        wanted: see :data:`SHAPES`; ``form`` is the drawing's business.

    Raises:
        ConfigError: a field that this form does not have, or a value outside its range.
    """
    form = form_of(finding, lesion)
    ranges = SHAPES[form]
    fields = {name: value for name, value in wanted.items() if name != "form"}
    for name, value in fields.items():
        if name not in ranges:
            raise ConfigError(
                f"a lesion of form {form!r} has no {name!r} to ask for",
                where=f"shapes: {finding}",
                expected=", ".join(ranges),
                fix=did_you_mean(name, tuple(ranges)),
            )
        low, high = ranges[name]
        if not (isinstance(value, int | float) and low <= value <= high):
            raise ConfigError(
                f"a lesion of form {form!r} cannot be drawn with this {name}",
                where=f"shapes: {finding}",
                expected=f"a number of {low:.3g} to {high:.3g}",
                got=value,
            )
    return Lesion(**{**lesion._asdict(), **fields})


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
