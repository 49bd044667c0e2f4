"""Who is imaged: the numbers that describe one thorax.

The ranges come from looking at the drawn pictures beside real ones and from the ratios that readers use (the heart
takes under half of the thoracic width, the carina lies at the fifth thoracic vertebra, the right dome is higher).
"""

from __future__ import annotations

from typing import Final, NamedTuple

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


def draw_anatomy(rng: np.random.Generator, view: str) -> Anatomy:
    """Draw one thorax from the anatomy's own stream.

    The same numbers are drawn for both views, so that both show the same patient.

    Args:
        rng: the anatomy's stream.
        view: PA or AP.
    """
    ap = 1.0 if view == "AP" else 0.0
    pose = _pose(rng, 1.6 + 1.0 * ap)
    half, apex = uniform(rng, 0.355, 0.405), uniform(rng, 0.085, 0.14)
    fat = uniform(rng, 0.0, 1.0) ** 1.4
    # A patient in bed breathes in less: the domes stand higher.
    lift = uniform(rng, 0.0, 0.14) * ap
    right = uniform(rng, 0.70, 0.80) - lift
    left = right + uniform(rng, 0.015, 0.045)
    dome, bases = diaphragm((uniform(rng, 0.03, 0.065), uniform(rng, 0.03, 0.065)), half, right, left)
    borders = np.stack([medial(rng, apex), medial(rng, apex)])
    knob = (uniform(rng, 0.035, 0.055), uniform(rng, 0.315, 0.35), uniform(rng, 0.028, 0.042))
    ratio, share = uniform(rng, 0.38, 0.48) + 0.03 * ap, uniform(rng, 0.68, 0.74)
    tilt = float(np.deg2rad(uniform(rng, 30, 42)))
    spacing = uniform(rng, 0.058, 0.066)
    clavicle = apex + uniform(rng, 0.085, 0.125)
    scapula = uniform(rng, 0.27, 0.36)
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
        descending=uniform(rng, 0.020, 0.027),
        descending_x=0.95 * knob[0] + 0.016,
        descending_wave=(0.0, 0.3, 0.0, 0.0),
        trachea=uniform(rng, 0.017, 0.022),
        trachea_wave=normal(rng, 0.006),
        trachea_shift=0.0,
        trachea_turn=NO_TURN,
        carina=uniform(rng, 0.36, 0.40),
        bronchi=BRONCHI,
        posterior=posterior_ribs(rng, apex, spacing),
        anterior=anterior_ribs(rng, apex, spacing),
        clavicle_x=uniform(rng, 0.026, 0.034),
        clavicle_y=(clavicle + normal(rng, 0.005), clavicle + normal(rng, 0.005)),
        clavicle_rise=uniform(rng, 0.02, 0.09) * (1.0 - 0.5 * ap),
        clavicle_contrast=uniform(rng, 0.13, 0.17),
        spinous=0.0,
        breast=uniform(rng, 0.06, 0.20) * (1.0 if chance(rng, 0.45) else 0.0),
        breast_y=uniform(rng, 0.58, 0.68),
        bubble=(
            uniform(rng, 0.13, 0.19),
            left + uniform(rng, 0.055, 0.10),
            uniform(rng, 0.045, 0.085),
            uniform(rng, 0.15, 0.38) * (1.0 if chance(rng, 0.6) else 0.0),
        ),
        arm=(uniform(rng, 0.50, 0.58), uniform(rng, 0.05, 0.20)),
        scapulae=(scapula, scapula),
        scapula_contrast=1.0,
        shoulder=scapula,
        air=uniform(rng, 0.53, 0.68),
        spine=uniform(rng, 0.09, 0.14),
        vertebra=uniform(rng, 0.056, 0.064),
    )


def _pose(rng: np.random.Generator, sigma: float) -> Pose:
    """Return a similarity that turns by ``sigma`` degrees about the middle of the picture, scales and shifts."""
    scale, turn = uniform(rng, 0.90, 1.10), float(np.deg2rad(normal(rng, sigma)))
    a, b = float(np.cos(turn)) / scale, float(np.sin(turn)) / scale
    return Pose(
        a, b, -0.5 * a + 0.5 * b + uniform(rng, -0.03, 0.03), 0.5 - 0.5 * b - 0.5 * a + uniform(rng, -0.03, 0.03)
    )
