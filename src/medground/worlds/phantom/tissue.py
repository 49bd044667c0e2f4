"""Soft tissue and air: the line integral of one thorax, in body units, before bones, vessels and findings.

Air is taken away from one body path; it is no dark shape. So ribs, vessels and lesions stay visible through the
heart and the diaphragm, at reduced contrast.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.heart import DEPTH, Heart, heart_depth
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.outlines import UNIT
from medground.worlds.phantom.tables import lookup, share, smooth

RIGHT_LUNG: Final = 1
LEFT_LUNG: Final = 2
HEART: Final = 4
AORTA: Final = 8
TRACHEA: Final = 16
ZONE: Final = 32
"""Bits of a label. The third of a lung's height (0 upper, 1 middle, 2 lower) is the label divided by ``ZONE``.

The lungs include what lies behind heart and aorta, so the structures overlap by design.
"""

_LUNG = ((4 * UNIT * (1 - UNIT)) ** 0.275).astype(np.float32)
"""Air on the ray, from the medial border of a lung to the chest wall."""

KNOB_STRETCH: Final = 1.08
"""The knob is a little higher than wide."""

_MIDDLE: Final = 0.21
"""Nothing of aorta, airway and spine lies further from the midline."""

_HEART_BELOW: Final = 0.035
"""How far the heart reaches below the dome, image widths."""


@kernel
def tissue(
    anatomy: Anatomy,
    pose: Pose,
    heart: Heart,
    total: NDArray[np.float32],
    air: NDArray[np.float32],
    labels: NDArray[np.uint8],
) -> None:
    """Fill the line integral, the air fraction and the labels of one picture.

    Args:
        anatomy: the thorax.
        pose: where it lies in the picture.
        heart: its heart, or an enlarged one.
        total: ``(size, size)``, body units; written.
        air: ``(size, size)``, share of the full lung path on the ray, 0 to 1; written.
        labels: ``(size, size)`` bit field, see the constants above; written.
    """
    # Arrays are taken out of the tuple once: a look-up through it would count references at every pixel.
    bodies, cages, medial, domes = anatomy.body, anatomy.cage, anatomy.medial, anatomy.dome
    borders = (medial[0], medial[1])
    apex, peaks, arm, fat = anatomy.apex, anatomy.dome_peaks, anatomy.arm, anatomy.habitus
    knob, line, wave, ascending = anatomy.knob, anatomy.descending_x, anatomy.descending_wave, anatomy.ascending
    swing, shift, bronchi = anatomy.trachea_wave, anatomy.trachea_shift, anatomy.bronchi
    path = 0.88 + 0.26 * fat
    step = 1.0 / total.shape[0]
    for row in range(total.shape[0]):
        v = (row + 0.5) * step
        for col in range(total.shape[1]):
            u = (col + 0.5) * step
            x = pose.a * u - pose.b * v + pose.cx
            y = pose.b * u + pose.a * v + pose.cy
            away = abs(x)
            side = 1 if x > 0 else 0
            dome, cage = lookup(domes, x), lookup(cages, y)

            value = path * max(_trunk(away, y, lookup(bodies, y), apex), _arm(away, y, arm, fat))
            depth = heart_depth(heart, x, y)
            depth *= 1.0 - smooth((y - dome - _HEART_BELOW) / 0.05)
            inner = lookup(borders[side], y)
            gas = _air(away, y, inner, cage, apex, dome)
            label = 0
            if gas > 0.0:
                third = min(2, int(3.0 * (y - apex) / (peaks[side] + 0.02 - apex)))
                label = (RIGHT_LUNG << side) | (ZONE * third)
                gas *= 1.0 - 0.50 * depth
            value += DEPTH * depth * (0.25 if y > dome else 1.0) - anatomy.air * gas
            if depth > 0.0 and y < dome + _HEART_BELOW:
                label |= HEART
            if away < _MIDDLE:
                arch = max(_knob(x, y, knob), _descending(x, y, knob[1], line, wave, anatomy.descending))
                if ascending[2] > 0.0:
                    arch = max(arch, 0.8 * ellipse(x, y, ascending))
                hole = _airway(x - windpipe(y, swing, shift), y, anatomy.trachea, anatomy.carina, bronchi)
                value += 0.19 * arch - 0.15 * hole + _spine(x, y, anatomy.spine, anatomy.vertebra, anatomy.spinous)
                value += 0.10 * (1.0 - smooth((away - 0.02) / 0.05)) * smooth((y - apex) / 0.2)
                if arch > 0.0 and y < dome + 0.02:
                    label |= AORTA
                if hole > 0.25:
                    label |= TRACHEA
            if y > dome:
                value += _abdomen(x, y, y - dome, cage, path, anatomy.bubble)
            if anatomy.breast > 0.0:
                value += anatomy.breast * _breast(away, y, anatomy.cage_half_width, anatomy.breast_y)
            total[row, col] = max(value, 0.0)
            air[row, col] = gas
            labels[row, col] = label


@kernel
def _trunk(away: float, y: float, reach: float, apex: float) -> float:
    """Return the depth of neck, shoulders and trunk; shoulders are thinner than the chest."""
    q = away / reach
    if q >= 1.0:
        return 0.0
    shoulder = 0.62 + 0.38 * smooth((y - apex + 0.02) / 0.16)
    thick = 1.0 - smooth((away - 0.12) / 0.08) * (1.0 - shoulder)
    thick *= 0.55 + 0.45 * smooth((y - apex + 0.22) / 0.22)
    w = 1.0 - q * q
    return thick * math.sqrt(w * math.sqrt(w))


@kernel
def _arm(away: float, y: float, arm: tuple[float, float], fat: float) -> float:
    q = (away - arm[0] - arm[1] * (y - 0.2)) / (0.075 + 0.03 * fat)
    if y <= 0.14 or abs(q) >= 1.0:
        return 0.0
    return 0.62 * math.sqrt(1.0 - q * q) * smooth((y - 0.14) / 0.10)


@kernel
def _air(away: float, y: float, inner: float, cage: float, apex: float, dome: float) -> float:
    """Return the air of a lung between medial border, cage, apex and dome, 0 to 1."""
    if away <= inner or away >= cage or y >= dome:
        return 0.0
    gas = share(_LUNG, (away - inner) / (cage - inner))
    gas *= 0.55 + 0.45 * smooth((y - apex) / 0.16)
    return gas * min(1.0, (dome - y) / 0.012) * smooth((y - apex + 0.004) / 0.022)


@kernel
def _knob(x: float, y: float, knob: tuple[float, float, float]) -> float:
    """Return the depth of the aortic knob, 0 to 1."""
    dx, dy = (x - knob[0]) / knob[2], (y - knob[1]) / (KNOB_STRETCH * knob[2])
    q = 1.0 - dx * dx - dy * dy
    return math.sqrt(q) if q > 0.0 else 0.0


@kernel
def descending_middle(y: float, top: float, line: float, wave: tuple[float, float, float, float]) -> float:
    """Return the x of the descending aorta's middle: from the knob towards the midline, in waves where tortuous.

    Args:
        y: height, below the knob's middle.
        top: height of the knob's middle.
        line: x at the knob.
        wave: amplitude, wave length, phase, and the height below which the waves fade.
    """
    down = y - top
    middle = (line - 0.012) * (1.0 - smooth(down / 0.6)) + 0.012
    if wave[0] == 0.0:
        return middle
    fade = smooth(down / 0.05) * (1.0 - smooth((y - wave[3]) / 0.06))
    return middle + wave[0] * fade * math.sin(2.0 * math.pi * down / wave[1] + wave[2])


@kernel
def _descending(
    x: float, y: float, top: float, line: float, wave: tuple[float, float, float, float], half: float
) -> float:
    """Return the depth of the descending aorta, which runs from the knob to the diaphragm."""
    if y <= top:
        return 0.0
    q = (x - descending_middle(y, top, line, wave)) / half
    return 0.62 * math.sqrt(1.0 - q * q) if abs(q) < 1.0 else 0.0


@kernel
def ellipse(x: float, y: float, shape: tuple[float, float, float, float]) -> float:
    """Return the depth of an upright ellipse (x, y, half width, half height), 0 to 1."""
    dx, dy = (x - shape[0]) / shape[2], (y - shape[1]) / shape[3]
    q = 1.0 - dx * dx - dy * dy
    return math.sqrt(q) if q > 0.0 else 0.0


@kernel
def _abdomen(
    x: float, y: float, below: float, cage: float, path: float, bubble: tuple[float, float, float, float]
) -> float:
    """Return what lies below the diaphragm: dense organs, and a gastric bubble."""
    inside = 1.0 - smooth((abs(x) - cage + 0.03) / 0.05)
    value = 0.29 * path * inside * min(1.0, below / 0.012) * (0.86 + 0.14 * smooth(below / 0.25))
    dx, dy = (x - bubble[0]) / (1.25 * bubble[2]), (y - bubble[1]) / bubble[2]
    q = 1.0 - dx * dx - dy * dy
    if q > 0.0:
        value -= bubble[3] * q**0.4 * min(1.0, below / 0.02)
    return value


@kernel
def _breast(away: float, y: float, half: float, height: float) -> float:
    dx, dy = (away - 0.62 * half) / 0.155, (y - height) / 0.135
    q = 1.0 - dx * dx - dy * dy
    return math.sqrt(q) * min(1.0, 0.35 + max(0.0, dy)) if q > 0.0 else 0.0


@kernel
def _spine(x: float, y: float, contrast: float, period: float, spinous: float) -> float:
    """Return vertebral bodies with discs between them, brighter end plates, pedicles and a spinous process."""
    half = 0.030 + 0.008 * y
    q = abs(x) / half
    if q >= 1.25:
        return 0.0
    phase = y / period
    phase -= math.floor(phase)
    body = 1.0 if 0.16 < phase < 0.84 else 0.72
    if 0.12 < phase < 0.20 or 0.80 < phase < 0.88:
        body = 1.12
    value = contrast * body * (1.0 - smooth((q - 0.9) / 0.35))
    # Pedicles follow the turn by half: they lie nearer to the axis than the spinous process.
    value += _spot((abs(x - 0.5 * spinous) - 0.62 * half) / 0.007, (phase - 0.38) * period / 0.011)
    return value + _spot((x - spinous) / 0.005, (phase - 0.62) * period / 0.014)


@kernel
def _spot(dx: float, dy: float) -> float:
    r = dx * dx + dy * dy
    return 0.05 * (1.0 - r) if r < 1.0 else 0.0


@kernel
def windpipe(y: float, swing: float, shift: float) -> float:
    """Return the x of the airway's middle: a gentle swing, and a shift that ends above the arch."""
    return swing * math.sin(6.0 * y) - 0.004 + shift * (1.0 - smooth((y - 0.245) / 0.065))


@kernel
def _airway(off: float, y: float, half: float, carina: float, bronchi: tuple[float, float]) -> float:
    """Return the trachea and the two main bronchi, 0 to 1; ``off`` is the distance from the airway's middle."""
    best = 0.0
    if y < carina + 0.006:
        q = abs(off) / half
        if q < 1.0:
            best = math.sqrt(1.0 - q * q) * smooth((carina + 0.006 - y) / 0.015)
    down = y - carina + 0.010
    if 0.0 < down < 0.09:
        for side in range(2):
            slope = bronchi[side]
            stretch = math.sqrt(1.0 + slope * slope)
            reach = min(0.09, 0.144 / stretch)
            q = abs(off - (2.0 * side - 1.0) * (0.004 + slope * down)) / (0.0125 * stretch)
            if q < 1.0 and down < reach:
                best = max(best, 0.85 * math.sqrt(1.0 - q * q) * (1.0 - smooth(down / reach)))
    return best
