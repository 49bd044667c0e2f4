"""Soft tissue and air: the line integral of one thorax, in body units, before bones, vessels and findings.

Air is taken away from one body path; it is no dark shape. So ribs, vessels and lesions stay visible through the
heart and the diaphragm, at reduced contrast.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

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


class Chest(NamedTuple):
    """Path through neck, shoulders and trunk, as a share of the chest's; lengths in image widths.

    In body units (what a pixel's line integral is counted in) the design is: lung fields 0.3 to 0.45, chest wall 0.8,
    mediastinum 1.2, below the diaphragm 1.3 to 1.5. Every density below follows from it.
    """

    thin: float = 0.88  # a thin patient's whole path
    fat: float = 0.26  # what a very obese one adds
    shoulder: float = 0.62  # shoulders are flatter than the chest
    shoulder_over: float = 0.16  # height over which they become chest
    shoulder_start: float = 0.02  # they end this far above the apex
    spare: float = 0.12  # the neck's own width is no shoulder
    spare_over: float = 0.08  # and passes into it
    neck: float = 0.55  # the neck is half as deep as the chest
    neck_over: float = 0.22  # and begins this far above the apex


class Limb(NamedTuple):
    """Upper arm beside the chest."""

    half: float = 0.075  # half width of a thin arm
    fat: float = 0.03  # what a very obese one adds
    depth: float = 0.62  # an arm is flatter than the chest
    top: float = 0.14  # above it the shoulder takes over
    fade: float = 0.10  # height over which the arm begins
    level: float = 0.2  # height at which the arm's distance is given


class Lung(NamedTuple):
    """Air on the ray through a lung, as a share of the fullest."""

    apex: float = 0.55  # the top of a lung is thin
    apex_over: float = 0.16  # it is full this far below
    rise: float = 0.004  # the air begins a little above the apex
    rise_over: float = 0.022  # with a soft upper edge
    edge: float = 0.012  # and a sharp lower one, on the dome
    behind_heart: float = 0.50  # half of the air path is left behind a full heart
    thirds_below: float = 0.02  # thirds reach below the dome: the lung hangs down behind it


class Middle(NamedTuple):
    """Heart, great vessels and airway; densities in body units."""

    heart_fade: float = 0.05  # the heart's shadow ends softly below the dome
    heart_below: float = 0.25  # under the dome the abdomen is dense already: little contrast is left
    aorta: float = 0.19  # blood in front of the spine
    descending: float = 0.62  # it lies obliquely and shows less than the knob
    ascending: float = 0.8  # it lies in front, within the shadow of the great vein
    airway: float = 0.15  # air in the trachea
    airway_seen: float = 0.25  # share of it from which a pixel counts as trachea
    tissue: float = 0.10  # vessels, fat and gullet around the midline
    tissue_half: float = 0.02  # their half width
    tissue_over: float = 0.05  # and how softly they end
    tissue_down: float = 0.2  # height over which they set in below the apex
    aorta_below: float = 0.02  # the aorta passes the diaphragm a little below the dome
    end: float = 0.012  # where it meets the midline, on the left of it
    course: float = 0.6  # height over which it gets there
    wave_in: float = 0.05  # waves of a tortuous aorta begin below the knob
    wave_out: float = 0.06  # and end at the dome


class Belly(NamedTuple):
    """What lies below the diaphragm."""

    organs: float = 0.29  # liver and spleen beyond the chest's path
    upper: float = 0.86  # they are thinner under the dome
    deeper: float = 0.25  # and full this far below
    wall: float = 0.03  # the ribs' wall is left out
    wall_over: float = 0.05  # softly
    edge: float = 0.012  # sharp edge on the dome
    bubble_wide: float = 1.25  # a gastric bubble lies flat
    bubble_edge: float = 0.02  # and begins below the dome
    bubble_full: float = 0.4  # it is nearly as lucent at its rim as in its middle


class Breast(NamedTuple):
    """Breast shadows: half ellipses with a lower edge."""

    out: float = 0.62  # distance from the midline, of the cage's half width
    half_width: float = 0.155
    half_height: float = 0.135
    upper: float = 0.35  # the upper half is thin: it has no edge


class Spine(NamedTuple):
    """Vertebrae; shares are of a vertebra's height with its disc."""

    half: float = 0.030  # half width at the picture's top
    widen: float = 0.008  # lumbar bodies are wider
    disc: float = 0.72  # a disc is less dense than bone
    plate: float = 1.12  # an end plate lies along the ray: denser
    disc_end: float = 0.16  # discs take a sixth at both ends
    plate_low: float = 0.12  # end plates straddle the border of a disc
    plate_high: float = 0.20
    edge: float = 0.9  # the body's sides are soft from here
    edge_over: float = 0.35
    pedicle_out: float = 0.62  # distance of the pedicles, of the half width
    pedicle: float = 0.38  # their height
    spinous: float = 0.62  # height of the spinous process: it hangs down
    spot: float = 0.05  # density of either
    follow: float = 0.5  # pedicles lie nearer to the axis than the spinous process: they follow a turn by half
    pedicle_half: float = 0.007  # a pedicle is an upright ring
    pedicle_height: float = 0.011
    process_half: float = 0.005  # a spinous process a narrow drop
    process_height: float = 0.014


class Airway(NamedTuple):
    """Trachea and main bronchi, image widths."""

    swing: float = 6.0  # half a wave between neck and carina
    off: float = -0.004  # the aorta pushes the trachea to the right
    shift_end: float = 0.245  # a shifted trachea comes back above the arch
    shift_over: float = 0.065
    turn_over: float = 0.07  # height in which a shift changes sides
    below: float = 0.006  # the trachea ends a little below the carina
    below_over: float = 0.015
    fork: float = 0.010  # the bronchi begin above it
    depth: float = 0.09  # deepest end of a bronchus
    length: float = 0.144  # its longest course
    apart: float = 0.004  # half of the distance between the two at their roots
    half: float = 0.0125  # half width of a bronchus
    bronchus: float = 0.85  # its air, of the trachea's


CHEST: Final = Chest()
LIMB: Final = Limb()
LUNG: Final = Lung()
MIDDLE: Final = Middle()
BELLY: Final = Belly()
BREAST: Final = Breast()
SPINE: Final = Spine()
AIRWAY: Final = Airway()


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
    swing, shift, turn, bronchi = anatomy.trachea_wave, anatomy.trachea_shift, anatomy.trachea_turn, anatomy.bronchi
    path = CHEST.thin + CHEST.fat * fat
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
            depth *= 1.0 - smooth((y - dome - _HEART_BELOW) / MIDDLE.heart_fade)
            inner = lookup(borders[side], y)
            gas = _air(away, y, inner, cage, apex, dome)
            label = 0
            if gas > 0.0:
                third = min(2, int(3.0 * (y - apex) / (peaks[side] + LUNG.thirds_below - apex)))
                label = (RIGHT_LUNG << side) | (ZONE * third)
                gas *= 1.0 - LUNG.behind_heart * depth
            value += DEPTH * depth * (MIDDLE.heart_below if y > dome else 1.0) - anatomy.air * gas
            if depth > 0.0 and y < dome + _HEART_BELOW:
                label |= HEART
            if away < _MIDDLE:
                arch = max(_knob(x, y, knob), _descending(x, y, knob[1], line, wave, anatomy.descending))
                if ascending[2] > 0.0:
                    arch = max(arch, MIDDLE.ascending * ellipse(x, y, ascending))
                hole = _airway(x - windpipe(y, swing, shift, turn), y, anatomy.trachea, anatomy.carina, bronchi)
                value += MIDDLE.aorta * arch - MIDDLE.airway * hole
                value += _spine(x, y, anatomy.spine, anatomy.vertebra, anatomy.spinous)
                value += _around(away, y - apex)
                if arch > 0.0 and y < dome + MIDDLE.aorta_below:
                    label |= AORTA
                if hole > MIDDLE.airway_seen:
                    label |= TRACHEA
            if y > dome:
                value += _abdomen(x, y, y - dome, cage, path, anatomy.bubble)
            if anatomy.breast > 0.0:
                value += anatomy.breast * _breast(away, y, anatomy.cage_half_width, anatomy.breast_y)
            total[row, col] = max(value, 0.0)
            air[row, col] = gas
            labels[row, col] = label


@kernel
def _around(away: float, below: float) -> float:
    """Return the soft tissue around the midline, below the lungs' apex."""
    across = 1.0 - smooth((away - MIDDLE.tissue_half) / MIDDLE.tissue_over)
    return MIDDLE.tissue * across * smooth(below / MIDDLE.tissue_down)


@kernel
def _trunk(away: float, y: float, reach: float, apex: float) -> float:
    """Return the depth of neck, shoulders and trunk; shoulders are thinner than the chest."""
    q = away / reach
    if q >= 1.0:
        return 0.0
    down = smooth((y - apex + CHEST.shoulder_start) / CHEST.shoulder_over)
    shoulder = CHEST.shoulder + (1.0 - CHEST.shoulder) * down
    thick = 1.0 - smooth((away - CHEST.spare) / CHEST.spare_over) * (1.0 - shoulder)
    thick *= CHEST.neck + (1.0 - CHEST.neck) * smooth((y - apex + CHEST.neck_over) / CHEST.neck_over)
    w = 1.0 - q * q
    return thick * math.sqrt(w * math.sqrt(w))


@kernel
def _arm(away: float, y: float, arm: tuple[float, float], fat: float) -> float:
    """Return the depth of an upper arm."""
    q = (away - arm[0] - arm[1] * (y - LIMB.level)) / (LIMB.half + LIMB.fat * fat)
    if y <= LIMB.top or abs(q) >= 1.0:
        return 0.0
    return LIMB.depth * math.sqrt(1.0 - q * q) * smooth((y - LIMB.top) / LIMB.fade)


@kernel
def _air(away: float, y: float, inner: float, cage: float, apex: float, dome: float) -> float:
    """Return the air of a lung between medial border, cage, apex and dome, 0 to 1."""
    if away <= inner or away >= cage or y >= dome:
        return 0.0
    gas = share(_LUNG, (away - inner) / (cage - inner))
    gas *= LUNG.apex + (1.0 - LUNG.apex) * smooth((y - apex) / LUNG.apex_over)
    return gas * min(1.0, (dome - y) / LUNG.edge) * smooth((y - apex + LUNG.rise) / LUNG.rise_over)


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
    middle = (line - MIDDLE.end) * (1.0 - smooth(down / MIDDLE.course)) + MIDDLE.end
    if wave[0] == 0.0:
        return middle
    fade = smooth(down / MIDDLE.wave_in) * (1.0 - smooth((y - wave[3]) / MIDDLE.wave_out))
    return middle + wave[0] * fade * math.sin(2.0 * math.pi * down / wave[1] + wave[2])


@kernel
def _descending(
    x: float, y: float, top: float, line: float, wave: tuple[float, float, float, float], half: float
) -> float:
    """Return the depth of the descending aorta, which runs from the knob to the diaphragm."""
    if y <= top:
        return 0.0
    q = (x - descending_middle(y, top, line, wave)) / half
    return MIDDLE.descending * math.sqrt(1.0 - q * q) if abs(q) < 1.0 else 0.0


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
    inside = 1.0 - smooth((abs(x) - cage + BELLY.wall) / BELLY.wall_over)
    full = BELLY.upper + (1.0 - BELLY.upper) * smooth(below / BELLY.deeper)
    value = BELLY.organs * path * inside * min(1.0, below / BELLY.edge) * full
    dx, dy = (x - bubble[0]) / (BELLY.bubble_wide * bubble[2]), (y - bubble[1]) / bubble[2]
    q = 1.0 - dx * dx - dy * dy
    if q > 0.0:
        value -= bubble[3] * q**BELLY.bubble_full * min(1.0, below / BELLY.bubble_edge)
    return value


@kernel
def _breast(away: float, y: float, half: float, height: float) -> float:
    """Return the depth of a breast, 0 to 1."""
    dx, dy = (away - BREAST.out * half) / BREAST.half_width, (y - height) / BREAST.half_height
    q = 1.0 - dx * dx - dy * dy
    return math.sqrt(q) * min(1.0, BREAST.upper + max(0.0, dy)) if q > 0.0 else 0.0


@kernel
def _spine(x: float, y: float, contrast: float, period: float, spinous: float) -> float:
    """Return vertebral bodies with discs between them, brighter end plates, pedicles and a spinous process."""
    half = SPINE.half + SPINE.widen * y
    q = abs(x) / half
    if q >= SPINE.edge + SPINE.edge_over:
        return 0.0
    phase = y / period
    phase -= math.floor(phase)
    end = min(phase, 1.0 - phase)
    body = 1.0 if end > SPINE.disc_end else SPINE.disc
    if SPINE.plate_low < end < SPINE.plate_high:
        body = SPINE.plate
    value = contrast * body * (1.0 - smooth((q - SPINE.edge) / SPINE.edge_over))
    out = abs(x - SPINE.follow * spinous) - SPINE.pedicle_out * half
    value += _spot(out / SPINE.pedicle_half, (phase - SPINE.pedicle) * period / SPINE.pedicle_height)
    process = (phase - SPINE.spinous) * period / SPINE.process_height
    return value + _spot((x - spinous) / SPINE.process_half, process)


@kernel
def _spot(dx: float, dy: float) -> float:
    r = dx * dx + dy * dy
    return SPINE.spot * (1.0 - r) if r < 1.0 else 0.0


@kernel
def windpipe(y: float, swing: float, shift: float, turn: float) -> float:
    """Return the x of the airway's middle: a gentle swing, and a shift that ends above the arch.

    Where ``turn`` lies above that end, the shift changes sides there.
    """
    gone = smooth((y - AIRWAY.shift_end) / AIRWAY.shift_over)
    side = 1.0 - 2.0 * smooth((y - turn) / AIRWAY.turn_over + 0.5)
    return swing * math.sin(AIRWAY.swing * y) + AIRWAY.off + shift * side * (1.0 - gone)


@kernel
def _airway(off: float, y: float, half: float, carina: float, bronchi: tuple[float, float]) -> float:
    """Return the trachea and the two main bronchi, 0 to 1; ``off`` is the distance from the airway's middle."""
    best = 0.0
    if y < carina + AIRWAY.below:
        q = abs(off) / half
        if q < 1.0:
            best = math.sqrt(1.0 - q * q) * smooth((carina + AIRWAY.below - y) / AIRWAY.below_over)
    down = y - carina + AIRWAY.fork
    if 0.0 < down < AIRWAY.depth:
        for side in range(2):
            slope = bronchi[side]
            stretch = math.sqrt(1.0 + slope * slope)
            reach = min(AIRWAY.depth, AIRWAY.length / stretch)
            q = abs(off - (2.0 * side - 1.0) * (AIRWAY.apart + slope * down)) / (AIRWAY.half * stretch)
            if q < 1.0 and down < reach:
                best = max(best, AIRWAY.bronchus * math.sqrt(1.0 - q * q) * (1.0 - smooth(down / reach)))
    return best
