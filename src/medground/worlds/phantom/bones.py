"""Bones beside the spine: ribs, clavicles, shoulder blades, upper arms.

All posterior ribs of both sides are one phase function and one table over the phase, so they cost one lookup a
pixel; so do the anterior ribs, which slope the other way at under half of the contrast.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.tables import lookup, share, smooth


class Cage(NamedTuple):
    """How ribs are shown; lengths in image widths, shares are of the half cage from midline (0) to wall (1)."""

    wall: float = 0.012  # ribs reach beyond the lung, into the chest wall
    spine: float = 0.02  # next to the midline the vertebrae hide them
    spine_over: float = 0.03
    top: float = 0.03  # first rib above the apex
    steep: float = 0.75  # upper ribs slope less than lower ones
    steeper: float = 0.6
    level: float = 0.2  # height at which the slope is given
    along: float = 0.7  # near the wall a rib runs along the ray: so much brighter
    along_from: float = 0.86
    along_over: float = 0.13
    below: float = 0.75  # share of contrast lost under the diaphragm
    below_over: float = 0.06
    front_from: float = 0.38  # cartilage, nearer to the midline, does not show
    front_over: float = 0.12
    lining: float = 0.05  # cortex of neighbouring ribs joins to a line along the wall
    lining_from: float = 0.955
    lining_over: float = 0.03


class Clavicle(NamedTuple):
    """An S that rises outwards: a bright rim around a paler core."""

    length: float = 0.36
    bow: float = 0.016  # swing of the S
    margin: float = 0.04  # nothing of it lies further above or below
    half: float = 0.0125  # half thickness
    inner: float = 0.004  # thicker at the breastbone
    inner_over: float = 0.05
    outer: float = 0.003  # and flat, so wider, at the shoulder
    outer_from: float = 0.26
    outer_over: float = 0.1
    core: float = 0.7  # half thickness of the core, of the bone's
    hollow: float = 0.35  # how much paler it is
    gain: float = 1.25  # a tube shows more than a slab
    start: float = 0.008  # rounded inner end
    stop: float = 0.33  # outer end in the joint
    stop_over: float = 0.03


class Blade(NamedTuple):
    """A shoulder blade: a faint triangle with a bright inner edge."""

    body: float = 0.035  # thin bone
    edge: float = 0.012  # soft borders
    inner: float = 0.018  # the inner border is a rim
    inner_over: float = 0.03
    outer: float = 0.03  # the outer one is thicker
    outer_over: float = 0.02
    top: float = 0.12  # share of the height over which it begins
    tip: float = 0.1  # and ends
    lean: float = 0.05  # the inner edge leads outwards down the blade
    bow: float = 0.02  # and bends
    width: float = 0.15  # the blade is this wide at its top
    taper: float = 0.08  # and narrows towards its tip


class Arm(NamedTuple):
    """Acromion and upper arm bone."""

    reach: float = 0.24  # nothing of it lies nearer to the midline
    low: float = 0.62  # or lower
    ridge: float = 0.05  # spine of the shoulder blade and acromion: a band that rises outwards
    ridge_y: float = 0.10
    ridge_slope: float = 0.25
    ridge_at: float = 0.34
    ridge_half: float = 0.012
    ridge_from: float = 0.30
    ridge_over: float = 0.06
    head_out: float = 0.185  # the joint's distance from the blade's inner edge
    head_y: float = 0.125  # below the apex
    head_half: float = 0.042
    head_height: float = 0.046
    head: float = 0.13
    head_rim: float = 0.03
    shaft_out: float = 0.012
    shaft_slope: float = 0.05
    shaft_swing: float = 0.6  # share of the arm's slope that the bone follows
    shaft_half: float = 0.019
    neck: float = 0.018  # wider towards the joint
    neck_over: float = 0.07
    marrow: float = 0.55  # half width of the core, of the bone's; and how much paler it is
    shaft: float = 0.20


CAGE: Final = Cage()
CLAVICLE: Final = Clavicle()
BLADE: Final = Blade()
ARM: Final = Arm()

BLADE_TOP: Final = 0.06
"""Upper end of a shoulder blade below the apex of the lung."""

_BLADES_FROM: Final = 0.12
"""No shoulder blade lies nearer to the midline."""

BLADE_HEIGHT: Final = 0.30
"""Length of a shoulder blade: from the second to the seventh rib."""


@kernel
def _rib(table: NDArray[np.float32], phase: float) -> float:
    position = phase * 64.0 - 0.5
    if position < 0.0 or position >= table.size - 1:
        return 0.0
    low = int(position)
    rest = position - low
    return float(table[low] * (1.0 - rest) + table[low + 1] * rest)


@kernel
def bones(anatomy: Anatomy, pose: Pose, total: NDArray[np.float32]) -> None:
    """Add the bones' attenuation to the line integral ``total``, ``(size, size)`` in body units."""
    size = total.shape[0]
    step = 1.0 / size
    # Arrays are taken out of the tuple once: a look-up through it would count references at every pixel.
    cages, domes = anatomy.cage, anatomy.dome
    back_slope, back_table = anatomy.posterior.slope, anatomy.posterior.table
    front_slope, front_table = anatomy.anterior.slope, anatomy.anterior.table
    back_origin, back_spacing = anatomy.posterior.origin, anatomy.posterior.spacing
    front_origin, front_spacing = anatomy.anterior.origin, anatomy.anterior.spacing
    apex, blades, arm = anatomy.apex, anatomy.scapulae, anatomy.arm[1]
    joint, opacity = anatomy.shoulder, anatomy.scapula_contrast
    inner_end, heights = anatomy.clavicle_x, anatomy.clavicle_y
    rise, contrast = anatomy.clavicle_rise, anatomy.clavicle_contrast
    for row in range(size):
        v = (row + 0.5) * step
        for col in range(size):
            u = (col + 0.5) * step
            x = pose.a * u - pose.b * v + pose.cx
            y = pose.b * u + pose.a * v + pose.cy
            away = abs(x)
            side = 1 if x > 0 else 0
            value = 0.0
            cage = lookup(cages, y) + CAGE.wall
            if CAGE.spine < away < cage and y > apex - CAGE.top:
                t = away / cage
                steep = CAGE.steep + CAGE.steeper * (y - CAGE.level)
                height = y - back_origin - share(back_slope, t) * steep
                # Near the wall the rib runs along the ray: brighter, and the cortex joins neighbouring ribs.
                edge = 1.0 + CAGE.along * smooth((t - CAGE.along_from) / CAGE.along_over)
                fade = smooth((away - CAGE.spine) / CAGE.spine_over)
                fade *= 1.0 - CAGE.below * smooth((y - lookup(domes, x)) / CAGE.below_over)
                value += _rib(back_table, height / back_spacing) * edge * fade
                if t > CAGE.front_from:
                    height = y - front_origin - share(front_slope, t)
                    shown = smooth((t - CAGE.front_from) / CAGE.front_over)
                    value += _rib(front_table, height / front_spacing) * shown * fade
                if t > CAGE.lining_from:
                    value += CAGE.lining * smooth((t - CAGE.lining_from) / CAGE.lining_over)
            value += contrast * _clavicle(away - inner_end, y, heights[side], rise)
            if away > _BLADES_FROM and y < ARM.low:
                value += opacity * _blade(away, y, apex, blades[side])
                if away > ARM.reach:
                    value += _arm(away, y, apex, joint, arm)
            total[row, col] += value


@kernel
def clavicle_line(along: float, height: float, rise: float) -> float:
    """Return the y of a clavicle at the distance ``along`` from its inner end: an S that rises outwards."""
    out = along / CLAVICLE.length
    return height - rise * out - CLAVICLE.bow * math.sin(2.0 * math.pi * out)


@kernel
def _clavicle(along: float, y: float, height: float, rise: float) -> float:
    if along < 0.0 or along > CLAVICLE.length:
        return 0.0
    if y > height + CLAVICLE.margin or y < height - rise - CLAVICLE.margin:
        return 0.0
    off = y - clavicle_line(along, height, rise)
    half = CLAVICLE.half + CLAVICLE.inner * (1.0 - smooth(along / CLAVICLE.inner_over))
    half += CLAVICLE.outer * smooth((along - CLAVICLE.outer_from) / CLAVICLE.outer_over)
    q = off / half
    if abs(q) >= 1.0:
        return 0.0
    ends = min(1.0, along / CLAVICLE.start) * (1.0 - smooth((along - CLAVICLE.stop) / CLAVICLE.stop_over))
    rim = math.sqrt(1.0 - q * q)
    inner = q / CLAVICLE.core
    if abs(inner) < 1.0:
        rim -= CLAVICLE.hollow * math.sqrt(1.0 - inner * inner)
    return CLAVICLE.gain * rim * ends


@kernel
def _blade(away: float, y: float, apex: float, scapula: float) -> float:
    """Return the shoulder blade: a faint triangle with a bright inner edge, its spine and the acromion."""
    value = 0.0
    down = (y - apex - BLADE_TOP) / BLADE_HEIGHT
    if 0.0 < down < 1.0:
        inner, outer = blade_inner(down, scapula), blade_outer(down, scapula)
        if inner < away < outer:
            fade = min(1.0, down / BLADE.top) * min(1.0, (1.0 - down) / BLADE.tip)
            value += BLADE.body * fade * smooth((away - inner) / BLADE.edge) * smooth((outer - away) / BLADE.edge)
            value += BLADE.inner * fade * (1.0 - smooth((away - inner) / BLADE.inner_over))
            value += BLADE.outer * fade * (1.0 - smooth((outer - away) / BLADE.outer_over))
    return value


@kernel
def blade_inner(down: float, scapula: float) -> float:
    """Return the distance of a shoulder blade's inner edge from the midline, 0 (top) to 1 (tip) down the blade."""
    return scapula + BLADE.lean * down + BLADE.bow * down * down


@kernel
def blade_outer(down: float, scapula: float) -> float:
    """Return the distance of its outer edge."""
    return scapula + BLADE.width - BLADE.taper * down


@kernel
def _arm(away: float, y: float, apex: float, joint: float, arm: float) -> float:
    """Return the acromion and the upper arm bone."""
    value = 0.0
    off = y - (apex + ARM.ridge_y - ARM.ridge_slope * (away - ARM.ridge_at))
    if abs(off) < ARM.ridge_half and away > ARM.ridge_from:
        value += ARM.ridge * (1.0 - abs(off) / ARM.ridge_half) * smooth((away - ARM.ridge_from) / ARM.ridge_over)
    head_x, head_y = joint + ARM.head_out, apex + ARM.head_y
    dx, dy = (away - head_x) / ARM.head_half, (y - head_y) / ARM.head_height
    q = 1.0 - dx * dx - dy * dy
    if q > 0.0:
        value += ARM.head * math.sqrt(q) + ARM.head_rim
    if y > head_y:
        middle = head_x + ARM.shaft_out + (ARM.shaft_slope + ARM.shaft_swing * arm) * (y - head_y)
        half = ARM.shaft_half + ARM.neck * (1.0 - smooth((y - head_y) / ARM.neck_over))
        q = (away - middle) / half
        if abs(q) < 1.0:
            rim = math.sqrt(1.0 - q * q)
            core = q / ARM.marrow
            if abs(core) < 1.0:
                rim -= ARM.marrow * math.sqrt(1.0 - core * core)
            value += ARM.shaft * rim
    return value
