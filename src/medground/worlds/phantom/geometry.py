"""What the twelve tasks measure, taken from the shapes themselves rather than from pixels.

All functions are pure; lengths are in image widths of the thorax frame unless said otherwise.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.bones import BLADE_HEIGHT, BLADE_TOP, CAGE, blade_inner, blade_outer
from medground.worlds.phantom.heart import Heart
from medground.worlds.phantom.outlines import AXIS, PHASES, UNIT
from medground.worlds.phantom.tasks import REFERENCE_WIDTH
from medground.worlds.phantom.tissue import KNOB_STRETCH, descending_middle, windpipe

Floats = NDArray[np.floating[Any]]

MEDIASTINUM_TOP: Final = 0.24
"""Upper end of the upper mediastinum: higher up the lungs' tops leave no border to measure."""

RIB_HALF: Final = 0.34
"""Half height of a posterior rib's band, of a rib's period: the rib and its soft border."""

CLAVICLE: Final = 0.35
"""Length of a clavicle as it projects."""

_LEVELS: Final = 9
"""Levels at which the trachea is held against the vertebrae."""

_EDGE_POINTS: Final = 6
"""Points of the descending aorta's edge whose curvature is averaged."""


def to_picture(pose: Pose, points: Floats) -> Floats:
    """Return points of the thorax, ``(n, 2)``, in the picture's frame: image widths from its upper left corner."""
    away = points - np.array([pose.cx, pose.cy])
    norm = pose.a**2 + pose.b**2
    return np.stack([away @ (pose.a, pose.b), away @ (-pose.b, pose.a)], axis=1) / norm


def from_picture(pose: Pose, points: Floats) -> Floats:
    """Return points of the picture in the thorax frame."""
    u, v = points[:, 0], points[:, 1]
    return np.stack([pose.a * u - pose.b * v + pose.cx, pose.b * u + pose.a * v + pose.cy], axis=1)


def unit(pose: Pose) -> float:
    """Return how many image widths of the picture one of the thorax takes."""
    return 1 / math.hypot(pose.a, pose.b)


def at(table: NDArray[np.float32], where: float | Floats) -> Floats:
    """Return a table's values between its samples."""
    return np.asarray(np.interp(where, AXIS, table))


def lung_edge(anatomy: Anatomy, side: int) -> Floats:
    """Return the lateral edge of one lung, ``(n, 2)``, from its top to the costophrenic angle."""
    sign = 1.0 if side else -1.0
    inside = (anatomy.cage > anatomy.medial[side]) & (anatomy.apex - 0.004 < AXIS)
    inside &= at(anatomy.dome, sign * anatomy.cage.astype(float)) > AXIS
    return np.stack([sign * anatomy.cage[inside].astype(float), AXIS[inside]], axis=1)


def lung_width(anatomy: Anatomy) -> float:
    """Return the width from the outer edge of one lung to that of the other."""
    return sum(float(np.abs(lung_edge(anatomy, side)[:, 0]).max()) for side in (0, 1))


def costophrenic(anatomy: Anatomy, side: int) -> tuple[float, float]:
    """Return the lowest point of a lung's lateral edge."""
    x, y = lung_edge(anatomy, side)[-1]
    return float(x), float(y)


def margins(anatomy: Anatomy, edges: tuple[float, float, float, float]) -> dict[str, float]:
    """Return the free margins around both lungs, 0 where they are cut, as shares of the picture's side.

    Args:
        anatomy: the thorax.
        edges: dark collimation at left, top, right, bottom.
    """
    left, top, right, bottom = edges
    found: dict[str, float] = {}
    for side, name in enumerate(("right", "left")):
        u, v = to_picture(anatomy.pose, lung_edge(anatomy, side)).T
        foot = to_picture(anatomy.pose, np.array([costophrenic(anatomy, side)]))[0, 1]
        found[f"apex_{name}"] = float(v.min()) - top
        found[f"side_{name}"] = float(1 - right - u.max()) if side else float(u.min() - left)
        found[f"bottom_{name}"] = float(1 - bottom - foot)
    return {name: max(value, 0.0) for name, value in found.items()}


def midclavicular(anatomy: Anatomy) -> tuple[float, float]:
    """Return the middle of the right clavicle, through which the mid-clavicular line runs down the picture."""
    return -(anatomy.clavicle_x + CLAVICLE / 2), anatomy.clavicle_y[0] - anatomy.clavicle_rise / 2


def midclavicular_x(anatomy: Anatomy, y: Floats) -> Floats:
    """Return the x of the mid-clavicular line at a height; the line is upright in the picture, not in the thorax."""
    x0, y0 = midclavicular(anatomy)
    return np.asarray(x0 - anatomy.pose.b / anatomy.pose.a * (y - y0))


def rib_phase(anatomy: Anatomy, x: Floats, y: Floats) -> Floats:
    """Return the phase of the posterior ribs: rib n (from 1) has phases n - 1 to n, its middle at n - 0.5."""
    ribs = anatomy.posterior
    t = np.abs(x) / (at(anatomy.cage, y) + CAGE.wall)
    slope = np.interp(t, UNIT, ribs.slope)
    return np.asarray((y - ribs.origin - slope * (CAGE.steep + CAGE.steeper * (y - CAGE.level))) / ribs.spacing)


def right_dome(anatomy: Anatomy) -> tuple[float, float]:
    """Return where the mid-clavicular line meets the right dome."""
    y = np.array(anatomy.dome_peaks[0])
    for _ in range(4):
        y = at(anatomy.dome, midclavicular_x(anatomy, y))
    return float(midclavicular_x(anatomy, y)), float(y)


def inspiration(anatomy: Anatomy) -> int | None:
    """Return the number of the posterior rib that crosses the right dome, None where a gap between two does."""
    x, y = right_dome(anatomy)
    phase = float(rib_phase(anatomy, np.array(x), np.array(y)))
    index = math.floor(phase)
    inside = 0 <= index < len(anatomy.posterior.table) / PHASES
    return index + 1 if inside and abs(phase - index - 0.5) < RIB_HALF else None


def rotation(anatomy: Anatomy) -> float:
    """Return the shorter over the longer distance from the clavicles' inner ends to the spinous line."""
    c, d = anatomy.clavicle_x, abs(anatomy.spinous)
    return (c - d) / (c + d)


_DOWN: Final = np.linspace(0.01, 0.99, 48)
_INNER: Final = np.array([blade_inner(float(down), 0.0) for down in _DOWN])
_OUTER: Final = np.array([blade_outer(float(down), 0.0) for down in _DOWN])


def blade_overlap(anatomy: Anatomy, side: int, scapula: float | Floats) -> Floats:
    """Return the share of a shoulder blade that lies over its lung, for one distance or several."""
    y = anatomy.apex + BLADE_TOP + BLADE_HEIGHT * _DOWN
    x = np.asarray(scapula, float)[..., None]
    inner, outer = x + _INNER, x + _OUTER
    low, high = at(anatomy.medial[side], y), at(anatomy.cage, y)
    over = np.clip(np.minimum(outer, high) - np.maximum(inner, low), 0, None)
    return np.asarray(over.sum(-1) / (outer - inner).sum(-1))


def projection(anatomy: Anatomy) -> tuple[float, float]:
    """Return the overlap of the right and the left shoulder blade with the lungs."""
    right, left = (float(blade_overlap(anatomy, side, anatomy.scapulae[side])) for side in (0, 1))
    return right, left


def cardiothoracic(anatomy: Anatomy, heart_ratio: float) -> float:
    """Return the heart's width over that of both lungs."""
    return 2 * anatomy.cage_half_width * heart_ratio / lung_width(anatomy)


def mediastinum(anatomy: Anatomy, widening: float | Floats = 0.0) -> Floats:
    """Return the share of the chest that the upper mediastinum takes on its widest row, for further widenings."""
    rows = AXIS[(MEDIASTINUM_TOP < AXIS) & (anatomy.carina > AXIS)]
    wide = at(anatomy.medial[0], rows) + at(anatomy.medial[1], rows)
    wide = wide + 2 * np.asarray(widening, float)[..., None] * bulge(rows)
    widest = wide.argmax(-1)
    chest = 2 * at(anatomy.cage, rows)
    return np.asarray(np.take_along_axis(wide, widest[..., None], -1)[..., 0] / chest[widest])


def bulge(y: Floats) -> Floats:
    """Return where a widened mediastinum is wide, 0 to 1: one peak, so that its widest row is no matter of chance."""
    return _step((y - 0.12) / 0.19) * (1 - _step((y - 0.31) / 0.17))


def _step(x: Floats) -> Floats:
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def carina_angle(anatomy: Anatomy) -> float:
    """Return the angle between the main bronchi, degrees."""
    return math.degrees(sum(math.atan(slope) for slope in anatomy.bronchi))


def airway(anatomy: Anatomy, y: Floats) -> Floats:
    """Return the x of the airway's middle."""
    wave, shift, turn = anatomy.trachea_wave, anatomy.trachea_shift, anatomy.trachea_turn
    return np.array([windpipe(float(at_), wave, shift, turn) for at_ in y])


def seen_from(pose: Pose, edges: tuple[float, float, float, float]) -> float:
    """Return the height of the upper edge of what is seen, thorax frame, in the middle of the picture.

    Args:
        pose: where the thorax lies in the picture.
        edges: dark collimation at left, top, right, bottom.
    """
    return float(from_picture(pose, np.array([[0.5, edges[1]]]))[0, 1])


def trachea_levels(anatomy: Anatomy, top: float) -> list[str]:
    """Return for each of nine levels the patient's side that the whole trachea lies on, or "flat".

    Args:
        anatomy: the thorax.
        top: upper edge of what is seen, thorax frame.
    """
    middle = airway(anatomy, np.linspace(top, anatomy.carina, _LEVELS))
    return ["left" if x > anatomy.trachea else "right" if x < -anatomy.trachea else "flat" for x in middle]


def trachea_direction(levels: list[str]) -> str:
    """Return the commonest of the levels; both sides, as met from the top, where they tie."""
    counts = {name: levels.count(name) for name in ("right", "left", "flat")}
    most = max(counts.values())
    if counts["right"] == counts["left"] == most:
        return "&".join(dict.fromkeys(level for level in levels if level != "flat"))
    sides = [name for name in ("right", "left") if counts[name] == most]
    return sides[0] if sides else "flat"


def descending_line(anatomy: Anatomy, y: Floats) -> Floats:
    """Return the x of the descending aorta's middle."""
    wave = anatomy.descending_wave
    return np.array([descending_middle(float(v), anatomy.knob[1], anatomy.descending_x, wave) for v in y])


def knob_rows(anatomy: Anatomy) -> Floats:
    """Return heights of the arch at which the trachea is there."""
    y, radius = anatomy.knob[1], KNOB_STRETCH * anatomy.knob[2]
    return np.linspace(y - radius, min(y + radius, anatomy.carina), 16)


def trachea_border(anatomy: Anatomy) -> float:
    """Return the mean x of the trachea's left border beside the arch."""
    return float(airway(anatomy, knob_rows(anatomy)).mean()) + anatomy.trachea


def knob_ratio(anatomy: Anatomy) -> float:
    """Return the width from the trachea's left border to the outermost of arch and upper aorta, in tracheas."""
    y, radius = anatomy.knob[1], anatomy.knob[2]
    upper = descending_line(anatomy, np.linspace(y, y + 1.5 * radius, 8)).max() + anatomy.descending
    return float(max(anatomy.knob[0] + radius, upper) - trachea_border(anatomy)) / (2 * anatomy.trachea)


def descending_ratio(anatomy: Anatomy) -> float:
    """Return the width of the descending aorta in tracheas."""
    return anatomy.descending / anatomy.trachea


def descending_span(anatomy: Anatomy) -> tuple[float, float]:
    """Return the upper and the lower end of the descending aorta."""
    return anatomy.knob[1], min(anatomy.dome_peaks) + 0.02


def descending_edge(anatomy: Anatomy) -> Floats:
    """Return six points of the descending aorta's left edge, a twentieth of its length left out at both ends."""
    top, bottom = descending_span(anatomy)
    spare = 0.05 * (bottom - top)
    y = np.linspace(top + spare, bottom - spare, _EDGE_POINTS)
    return np.stack([descending_line(anatomy, y) + anatomy.descending, y], axis=1)


def curvature(x: Floats, y: Floats) -> Floats:
    """Return the mean curvature of lines of points, ``(..., n)``, by differences over their index.

    A point without length counts as 0.
    """
    dx, dy = np.gradient(x, axis=-1), np.gradient(y, axis=-1)
    cross = np.abs(dx * np.gradient(dy, axis=-1) - dy * np.gradient(dx, axis=-1))
    size = (dx**2 + dy**2) ** 1.5
    return np.asarray(np.divide(cross, size, out=np.zeros_like(cross), where=size > 0).mean(-1))


def tortuosity(anatomy: Anatomy, amplitudes: Floats | None = None) -> Floats:
    """Return the mean curvature of the descending aorta, per pixel of a picture of ``REFERENCE_WIDTH``.

    Args:
        anatomy: the thorax.
        amplitudes: of its waves, instead of its own; ``(n,)``.
    """
    x, y = descending_edge(anatomy).T
    if amplitudes is not None:
        still, moving = (
            descending_line(anatomy._replace(descending_wave=(amplitude, *anatomy.descending_wave[1:])), y)
            for amplitude in (0.0, 1.0)
        )
        # The waves are added to the line: it is linear in their amplitude.
        x = still + anatomy.descending + amplitudes[:, None] * (moving - still)
        y = np.broadcast_to(y, x.shape)
    return curvature(x, y) / (unit(anatomy.pose) * REFERENCE_WIDTH)


def heart_extremes(anatomy: Anatomy, heart: Heart, ratio: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the heart's outermost points at the image's left and right."""
    width = 2 * anatomy.cage_half_width * ratio
    tangent = heart.lv_a**2 - heart.lv_b**2
    # Where the turned ellipse of the left ventricle has its vertical tangent.
    reach = math.hypot(heart.lv_a * math.cos(heart.tilt), heart.lv_b * math.sin(heart.tilt))
    left_y = heart.lv_y + tangent * math.sin(heart.tilt) * math.cos(heart.tilt) / reach
    return (-(1 - anatomy.heart_share) * width, heart.ra_y), (anatomy.heart_share * width, left_y)


def ascending_line(anatomy: Anatomy, heart: Heart, ratio: float) -> tuple[Floats, Floats]:
    """Return the line from the heart's right extreme to the trachea's lower end: a point and the normal to its right.

    What lies on the negative side (the image's left) is beyond the line.
    """
    low = np.array(heart_extremes(anatomy, heart, ratio)[0])
    high = np.array([float(airway(anatomy, np.array([anatomy.carina]))[0]), anatomy.carina])
    along = (low - high) / float(np.hypot(*(low - high)))
    return high, np.array([along[1], -along[0]])


def beyond(distance: float) -> float:
    """Return the share of a disc beyond a line at a distance (radii) from its middle; 0 where it misses the disc."""
    q = min(max(distance, -1.0), 1.0)
    return (math.acos(q) - q * math.sqrt(1 - q * q)) / math.pi


def ascending_share(anatomy: Anatomy, heart: Heart, ratio: float) -> float:
    """Return the share of the ascending aorta beyond the line; 0 where no such aorta stands apart."""
    x, y, a, b = anatomy.ascending
    if a <= 0:
        return 0.0
    point, normal = ascending_line(anatomy, heart, ratio)
    support = math.hypot(float(normal[0]) * a, float(normal[1]) * b)
    return beyond(float((np.array([x, y]) - point) @ normal) / support)
