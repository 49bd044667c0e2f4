"""Who is imaged: the numbers that describe one thorax.

The ranges come from looking at the drawn pictures beside real ones and from the ratios that readers use (the heart
takes under half of the thoracic width, the carina lies at the fifth thoracic vertebra, the right dome is higher).
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.heart import Heart, shape_heart
from medground.worlds.phantom.outlines import (
    Ribs,
    Table,
    anterior_ribs,
    body,
    cage,
    diaphragm,
    medial,
    posterior_ribs,
)
from medground.worlds.phantom.streams import chance, normal, uniform

BRONCHI: Final = (0.72, 1.25)
"""Slopes of the main bronchi, image left and right: the right one is steeper. Together they open by 87 degrees."""


NO_TURN: Final = 9.0
"""Height far below the picture: a shift of the trachea that stays on its side."""


Span = tuple[float, float]
"""Lowest and highest value."""


class Pose(NamedTuple):
    """From the picture (u, v in widths) to the thorax: ``x = a u - b v + cx``, ``y = b u + a v + cy``."""

    a: float
    b: float
    cx: float
    cy: float


class Anatomy(NamedTuple):
    """One thorax; lengths in image widths, attenuation in body units.

    Attributes:
        view: PA or AP.
        pose: where it lies in the picture.
        habitus: 0 thin to 1 obese.
        cage_half_width: inner half width of the cage at its widest.
        apex: y of the lungs' tops.
        cage: table over y, inner half width of the cage.
        body: table over y, half width of neck and trunk.
        medial: ``(2, n)`` tables over y, distance of the inner lung border from the midline; image left, right.
        dome: table over x, y of the diaphragm.
        dome_peaks: y of both domes; image left, right, as everything below that has two values.
        bases: y of the costophrenic angles.
        heart: without any finding.
        heart_ratio: its width as a share of the cage's.
        heart_share: part of its width left of the midline (image right).
        knob: x, y and radius of the aortic knob.
        ascending: x, y, half width and half height of the ascending aorta where it stands apart; half width 0 for not.
        descending: half width of the descending aorta.
        descending_x: x of its middle beside the knob.
        descending_wave: amplitude, wave length, phase (radians) and lower end of its sideways waves.
        trachea: its half width.
        trachea_wave: gentle sideways swing of the trachea.
        trachea_shift: how far the trachea lies off the midline above the arch; positive to the image's right.
        trachea_turn: height at which the shift changes sides on its way down.
        carina: y of the bifurcation.
        bronchi: slope (sideways over down) of the main bronchi; image left, right.
        posterior: ribs.
        anterior: ribs.
        clavicle_x: distance of the inner ends from the midline.
        clavicle_y: y of the inner ends.
        clavicle_rise: how far the outer ends lie higher.
        clavicle_contrast: attenuation.
        spinous: x of the line of spinous processes; it leaves the midline when the patient turns about the long axis.
        breast: attenuation of breast shadows, 0 for none.
        breast_y: their height.
        bubble: gastric bubble: x, y, radius, lucency.
        arm: distance of the arms at y = 0.2, and how fast they go outwards.
        scapulae: distance of the shoulder blades' inner edges from the midline; image left, right.
        scapula_contrast: attenuation of the shoulder blades, 1 as usual.
        shoulder: distance of the shoulder joint, as that of a blade that hangs there.
        air: what a full lung path takes off the body's path.
        spine: attenuation.
        vertebra: height of a vertebra with its disc.
    """

    view: str
    pose: Pose
    habitus: float
    cage_half_width: float
    apex: float
    cage: Table
    body: Table
    medial: NDArray[np.float32]
    dome: Table
    dome_peaks: tuple[float, float]
    bases: tuple[float, float]
    heart: Heart
    heart_ratio: float
    heart_share: float
    knob: tuple[float, float, float]
    ascending: tuple[float, float, float, float]
    descending: float
    descending_x: float
    descending_wave: tuple[float, float, float, float]
    trachea: float
    trachea_wave: float
    trachea_shift: float
    trachea_turn: float
    carina: float
    bronchi: tuple[float, float]
    posterior: Ribs
    anterior: Ribs
    clavicle_x: float
    clavicle_y: tuple[float, float]
    clavicle_rise: float
    clavicle_contrast: float
    spinous: float
    breast: float
    breast_y: float
    bubble: tuple[float, float, float, float]
    arm: tuple[float, float]
    scapulae: tuple[float, float]
    scapula_contrast: float
    shoulder: float
    air: float
    spine: float
    vertebra: float

    @property
    def numbers(self) -> Anatomy:
        """The same for kernels, without the view: a text in a tuple costs each call of a kernel 0.4 ms."""
        return self._replace(view=cast("str", 0))


class Ranges(NamedTuple):
    """What a thorax is drawn from, lowest and highest value; lengths in image widths, densities in body units."""

    scale: Span = (0.90, 1.10)  # zoom of the picture: lungs fill it more or less
    shift: Span = (-0.03, 0.03)  # and lie off its middle
    half_width: Span = (0.355, 0.405)  # the cage takes seven to eight tenths of the picture
    apex: Span = (0.085, 0.14)  # lungs end below the picture's upper edge
    dome: Span = (0.70, 0.80)  # the right dome, in a full breath
    dome_gap: Span = (0.015, 0.045)  # the left one lies lower, by up to half a vertebra
    angle: Span = (0.03, 0.065)  # depth of a costophrenic angle below its dome
    knob_across: Span = (0.035, 0.055)  # the arch lies left of the midline
    knob_height: Span = (0.315, 0.35)  # above the carina
    knob_radius: Span = (0.028, 0.042)  # seldom prominent: 1.4 to 2.3 tracheas wide
    heart: Span = (0.38, 0.48)  # a normal heart takes under half of the cage
    heart_share: Span = (0.68, 0.74)  # two thirds and more lie on the left
    heart_tilt: Span = (30, 42)  # degrees of the long axis below the horizontal
    rib_spacing: Span = (0.058, 0.066)  # eight to eleven of them above the dome
    clavicle: Span = (0.085, 0.125)  # inner ends, below the apex of the lungs
    shoulder: Span = (0.27, 0.36)  # blades are turned out of the lungs, as far as the patient can
    descending: Span = (0.020, 0.027)  # the descending aorta is somewhat wider than the trachea
    trachea: Span = (0.017, 0.022)  # half of some 1.5 cm in a picture of 37 cm
    carina: Span = (0.36, 0.40)  # below the arch
    clavicle_apart: Span = (0.026, 0.034)  # inner ends from the midline: the width of the breastbone's notch
    clavicle_rise: Span = (0.02, 0.09)  # how far the outer ends lie higher
    clavicle_density: Span = (0.13, 0.17)
    breast: Span = (0.06, 0.20)
    breast_height: Span = (0.58, 0.68)
    bubble_across: Span = (0.13, 0.19)  # under the left dome
    bubble_below: Span = (0.055, 0.10)
    bubble_radius: Span = (0.045, 0.085)
    bubble_lucency: Span = (0.15, 0.38)
    arm: Span = (0.50, 0.58)  # at the picture's edge
    arm_slope: Span = (0.05, 0.20)
    air: Span = (0.53, 0.68)  # leaves the lung fields at 0.3 to 0.45
    spine: Span = (0.09, 0.14)
    vertebra: Span = (0.056, 0.064)  # as far apart as ribs


RANGES: Final = Ranges()

LEAN: Final = 1.4
"""Exponent of the habitus: lean patients are commoner than obese ones."""

BREASTS: Final = 0.45
"""Share of patients with breast shadows."""

BUBBLES: Final = 0.6
"""Share of patients with a gastric bubble."""

UNEVEN: Final = 0.005
"""Standard deviation of each clavicle's height."""

SWING: Final = 0.006
"""Standard deviation of the trachea's gentle swing: it decides no level of its direction."""


class Bedside(NamedTuple):
    """What is other in a patient who lies in bed, the view AP."""

    turn: float = 1.0  # degrees that the standard deviation of the turn gains: lying less straight
    dome: Span = (0.0, 0.14)  # breathing in less: so much higher are the domes
    heart: float = 0.03  # the heart lies far from the detector and is magnified
    rise: float = 0.5  # the clavicles lie flatter, by this share: the tube is tilted


BEDSIDE: Final = Bedside()

TURN: Final = 1.6
"""Standard deviation of the turn in the picture, degrees."""


def draw_anatomy(rng: np.random.Generator, view: str) -> Anatomy:
    """Draw one thorax from the anatomy's own stream.

    The same numbers are drawn for both views, so that both show the same patient.

    Args:
        rng: the anatomy's stream.
        view: PA or AP.
    """

    def one(span: Span) -> float:
        return uniform(rng, *span)

    ap, r = 1.0 if view == "AP" else 0.0, RANGES
    pose = _pose(rng, TURN + BEDSIDE.turn * ap)
    half, apex = one(r.half_width), one(r.apex)
    fat = uniform(rng, 0.0, 1.0) ** LEAN
    lift = one(BEDSIDE.dome) * ap
    right = one(r.dome) - lift
    left = right + one(r.dome_gap)
    dome, bases = diaphragm((one(r.angle), one(r.angle)), half, right, left)
    borders = np.stack([medial(rng, apex), medial(rng, apex)])
    knob = (one(r.knob_across), one(r.knob_height), one(r.knob_radius))
    ratio, share = one(r.heart) + BEDSIDE.heart * ap, one(r.heart_share)
    tilt = float(np.deg2rad(one(r.heart_tilt)))
    spacing = one(r.rib_spacing)
    clavicle = apex + one(r.clavicle)
    scapula = one(r.shoulder)
    return Anatomy(
        view=view,
        pose=pose,
        habitus=fat,
        cage_half_width=half,
        apex=apex,
        cage=cage(half, apex),
        body=body(half, apex, fat),
        medial=borders,
        dome=dome,
        dome_peaks=(right, left),
        bases=bases,
        heart=shape_heart(half, ratio, share, left, tilt, knob[1]),
        heart_ratio=ratio,
        heart_share=share,
        knob=knob,
        ascending=(0.0, 0.0, 0.0, 0.0),
        descending=one(r.descending),
        descending_x=0.95 * knob[0] + 0.016,  # it comes out of the knob's lateral half
        descending_wave=(0.0, 0.3, 0.0, 0.0),
        trachea=one(r.trachea),
        trachea_wave=normal(rng, SWING),
        trachea_shift=0.0,
        trachea_turn=NO_TURN,
        carina=one(r.carina),
        bronchi=BRONCHI,
        posterior=posterior_ribs(rng, apex, spacing),
        anterior=anterior_ribs(rng, apex, spacing),
        clavicle_x=one(r.clavicle_apart),
        clavicle_y=(clavicle + normal(rng, UNEVEN), clavicle + normal(rng, UNEVEN)),
        clavicle_rise=one(r.clavicle_rise) * (1.0 - BEDSIDE.rise * ap),
        clavicle_contrast=one(r.clavicle_density),
        spinous=0.0,
        breast=one(r.breast) * (1.0 if chance(rng, BREASTS) else 0.0),
        breast_y=one(r.breast_height),
        bubble=(
            one(r.bubble_across),
            left + one(r.bubble_below),
            one(r.bubble_radius),
            one(r.bubble_lucency) * (1.0 if chance(rng, BUBBLES) else 0.0),
        ),
        arm=(one(r.arm), one(r.arm_slope)),
        scapulae=(scapula, scapula),
        scapula_contrast=1.0,
        shoulder=scapula,
        air=one(r.air),
        spine=one(r.spine),
        vertebra=one(r.vertebra),
    )


def _pose(rng: np.random.Generator, sigma: float) -> Pose:
    """Return a similarity that turns by ``sigma`` degrees about the middle of the picture, scales and shifts."""
    scale, turn = uniform(rng, *RANGES.scale), float(np.deg2rad(normal(rng, sigma)))
    a, b = float(np.cos(turn)) / scale, float(np.sin(turn)) / scale
    across, down = uniform(rng, *RANGES.shift), uniform(rng, *RANGES.shift)
    return Pose(a, b, -0.5 * a + 0.5 * b + across, 0.5 - 0.5 * b - 0.5 * a + down)
