"""Bones beside the spine: ribs, clavicles, shoulder blades, upper arms.

All posterior ribs of both sides are one phase function and one table over the phase, so they cost one lookup a
pixel; so do the anterior ribs, which slope the other way at under half of the contrast.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.tables import lookup, share, smooth

BLADE_TOP: Final = 0.06
"""Upper end of a shoulder blade below the apex of the lung."""

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
            cage = lookup(cages, y) + 0.012
            if 0.02 < away < cage and y > apex - 0.03:
                t = away / cage
                height = y - back_origin - share(back_slope, t) * (0.75 + 0.6 * (y - 0.2))
                # Near the wall the rib runs along the ray: brighter, and the cortex joins neighbouring ribs.
                edge = 1.0 + 0.7 * smooth((t - 0.86) / 0.13)
                fade = smooth((away - 0.02) / 0.03) * (1.0 - 0.75 * smooth((y - lookup(domes, x)) / 0.06))
                value += _rib(back_table, height / back_spacing) * edge * fade
                if t > 0.38:
                    height = y - front_origin - share(front_slope, t)
                    value += _rib(front_table, height / front_spacing) * smooth((t - 0.38) / 0.12) * fade
                if t > 0.955:
                    value += 0.05 * smooth((t - 0.955) / 0.03)
            value += contrast * _clavicle(away - inner_end, y, heights[side], rise)
            if away > 0.12 and y < 0.62:
                value += opacity * _blade(away, y, apex, blades[side])
                value += _arm(away, y, apex, joint, arm)
            total[row, col] += value


@kernel
def clavicle_line(along: float, height: float, rise: float) -> float:
    """Return the y of a clavicle at the distance ``along`` from its inner end: an S that rises outwards."""
    out = along / 0.36
    return height - rise * out - 0.016 * math.sin(2.0 * math.pi * out)


@kernel
def _clavicle(along: float, y: float, height: float, rise: float) -> float:
    if along < 0.0 or along > 0.36 or y > height + 0.04 or y < height - rise - 0.04:
        return 0.0
    off = y - clavicle_line(along, height, rise)
    half = 0.0125 + 0.004 * (1.0 - smooth(along / 0.05)) + 0.003 * smooth((along - 0.26) / 0.1)
    q = off / half
    if abs(q) >= 1.0:
        return 0.0
    ends = min(1.0, along / 0.008) * (1.0 - smooth((along - 0.33) / 0.03))
    rim = math.sqrt(1.0 - q * q)
    inner = q / 0.7
    if abs(inner) < 1.0:
        rim -= 0.35 * math.sqrt(1.0 - inner * inner)
    return 1.25 * rim * ends


@kernel
def _blade(away: float, y: float, apex: float, scapula: float) -> float:
    """Return the shoulder blade: a faint triangle with a bright inner edge, its spine and the acromion."""
    value = 0.0
    down = (y - apex - BLADE_TOP) / BLADE_HEIGHT
    if 0.0 < down < 1.0:
        inner, outer = blade_inner(down, scapula), blade_outer(down, scapula)
        if inner < away < outer:
            fade = min(1.0, down / 0.12) * min(1.0, (1.0 - down) / 0.1)
            value += 0.035 * fade * smooth((away - inner) / 0.012) * smooth((outer - away) / 0.012)
            value += 0.018 * fade * (1.0 - smooth((away - inner) / 0.03))
            value += 0.03 * fade * (1.0 - smooth((outer - away) / 0.02))
    return value


@kernel
def blade_inner(down: float, scapula: float) -> float:
    """Return the distance of a shoulder blade's inner edge from the midline, 0 (top) to 1 (tip) down the blade."""
    return scapula + 0.05 * down + 0.02 * down * down


@kernel
def blade_outer(down: float, scapula: float) -> float:
    """Return the distance of its outer edge."""
    return scapula + 0.15 - 0.08 * down


@kernel
def _arm(away: float, y: float, apex: float, joint: float, arm: float) -> float:
    """Return the acromion and the upper arm bone."""
    value = 0.0
    # Spine of the shoulder blade and acromion: a band that rises outwards.
    off = y - (apex + 0.10 - 0.25 * (away - 0.34))
    if abs(off) < 0.012 and away > 0.30:
        value += 0.05 * (1.0 - abs(off) / 0.012) * smooth((away - 0.30) / 0.06)
    head_x, head_y = joint + 0.185, apex + 0.125
    dx, dy = (away - head_x) / 0.042, (y - head_y) / 0.046
    q = 1.0 - dx * dx - dy * dy
    if q > 0.0:
        value += 0.13 * math.sqrt(q) + 0.03
    if y > head_y:
        middle = head_x + 0.012 + (0.05 + 0.6 * arm) * (y - head_y)
        half = 0.019 + 0.018 * (1.0 - smooth((y - head_y) / 0.07))
        q = (away - middle) / half
        if abs(q) < 1.0:
            rim = math.sqrt(1.0 - q * q)
            core = q / 0.55
            if abs(core) < 1.0:
                rim -= 0.55 * math.sqrt(1.0 - core * core)
            value += 0.20 * rim
    return value
