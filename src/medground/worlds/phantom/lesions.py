"""How findings change the line integral: one shape function a kind, one kernel that applies them.

Every shape function returns a density between 0 and 1 that is exactly 0 beyond the lesion, so a lesion changes no
pixel outside its reach.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.shapes import BALL, CLOUD, COLLAPSE, CONSOLIDATION, FLUID, PLATE, Lesion
from medground.worlds.phantom.tables import lookup, smooth
from medground.worlds.phantom.tissue import RIGHT_LUNG


class Ball(NamedTuple):
    """A mass or a nodule: a sphere that is lobed a little and has a rim."""

    reach: float = 1.3  # nothing lies beyond this many radii, lobes included
    lobes: float = 3.0  # lobes around it
    lobe: float = 0.5  # their share of the roughness
    bumps: float = 5.0  # smaller ones, out of step with the lobes
    bump: float = 0.35
    rim: float = 0.6  # share of the radius over which the soft part fades


class Plate(NamedTuple):
    """A plate of collapsed lung: a bent stripe with pointed ends."""

    bend: float = 0.3  # a bent plate stays about its own middle
    ends: float = 0.45  # half thickness at its ends, of that in the middle
    fade: float = 2.5  # and how soon it is as dense as in the middle
    airless: float = 0.25  # it takes the place of air: the denser, the more air lies on the ray


class Wedge(NamedTuple):
    """A collapsed lobe on heart and dome."""

    ragged: float = 0.3  # share of the roughness that eats its upper edge
    grain: float = 22.0  # waves of that edge an image width
    slope: float = 0.9  # its upper edge falls outwards in a slight bow
    onset: float = 0.03  # height over which it begins beside the heart
    airless: float = 0.2  # as of a plate


class Cloud(NamedTuple):
    """Infiltration (strands) and consolidation (patches with dark bronchi); grains are waves an image width."""

    coarse: float = 14.0  # the outline has large lobes
    fine: float = 34.0  # and small ones
    coarse_share: float = 0.6
    fine_share: float = 0.4
    strand: float = 26.0  # strands of the lung's own size
    thread: float = 60.0  # threads between them
    grain: float = 90.0  # and a fine grain
    veil: float = 0.10  # depth of the strands, body units
    level: float = 0.9  # strands take about as much as they give
    strand_share: float = 0.7
    grain_share: float = 0.6
    airless: float = 0.1  # as of a plate
    hilum: float = 0.06  # bronchi come out of the hilum: this far from the midline, and below the carina
    rays: float = 11.0  # bronchi around the hilum
    along: float = 5.0  # they bend on their way
    bronchus: float = 0.16  # how wide they are, of the noise's range
    bronchi: float = 0.10  # air left in them, body units
    patch: float = 30.0  # patches of a consolidation
    patchy: float = 0.18  # and how much they differ
    solid: float = 0.15  # as airless, of a consolidation
    hides: float = 0.7  # share of the vessels that a consolidation hides: no air is left beside them


class Fluid(NamedTuple):
    """Pleural fluid: its level rises outwards, the meniscus."""

    below: float = 0.05  # the level is counted from a little below the angle
    inner: float = 0.55  # height at the heart, of that at the wall
    outer: float = 0.45
    rise: float = 2.2  # the meniscus climbs the wall steeply
    hides: float = 0.8  # share of the vessels that it hides


class Collapse(NamedTuple):
    """Free air: a lung that falls away from wall and apex."""

    height: float = 0.25  # height over which the retraction grows
    grow: float = 0.6  # it grows fast below and slowly above
    most: float = 0.8  # share of the lung's width that it takes at most
    off: float = -1.0  # below it the lung lies against the wall
    apical: float = 0.6  # share of that height over which the apex comes free
    tip: float = 0.35  # the apex of the lung lies this far out
    round: float = 0.10  # and is round
    corner: float = 0.012  # the corner between wall and apex is rounded
    corner_over: float = 0.05
    line: float = 0.11  # density of the pleural line
    thick: float = 0.003  # its half width, or 3/4 of a pixel
    pixel: float = 0.75
    airless: float = 0.1  # as of a plate
    dense: float = 0.07  # what the remaining lung gains


BALLS: Final = Ball()
PLATES: Final = Plate()
WEDGES: Final = Wedge()
CLOUDS: Final = Cloud()
FLUIDS: Final = Fluid()
COLLAPSES: Final = Collapse()


@kernel
def _hash(i: int, j: int, key: int) -> float:
    """Return a number in -1 to 1 for a lattice point: an integer hash, alike on every machine."""
    h = (i * 374761393 + j * 668265263 + key * 974711) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h ^= h >> 16
    return (h & 0xFFFF) / 32767.5 - 1.0


@kernel
def noise(x: float, y: float, key: int) -> float:
    """Return smooth value noise in -1 to 1 with one lattice point a unit."""
    i, j = math.floor(x), math.floor(y)
    fx, fy = smooth(x - i), smooth(y - j)
    i, j = int(i), int(j)
    top = _hash(i, j, key) * (1.0 - fx) + _hash(i + 1, j, key) * fx
    low = _hash(i, j + 1, key) * (1.0 - fx) + _hash(i + 1, j + 1, key) * fx
    return top * (1.0 - fy) + low * fy


@kernel
def _ellipse(lesion: Lesion, x: float, y: float) -> float:
    """Return the radius in units of the ellipse: 0 at the centre, 1 on the border."""
    dx, dy = x - lesion.x, y - lesion.y
    c, s = math.cos(lesion.turn), math.sin(lesion.turn)
    u, v = (dx * c + dy * s) / lesion.a, (dy * c - dx * s) / lesion.b
    return math.sqrt(u * u + v * v)


@kernel
def _ball(lesion: Lesion, x: float, y: float) -> float:
    r = _ellipse(lesion, x, y)
    if r >= BALLS.reach:
        return 0.0
    angle = math.atan2(y - lesion.y, x - lesion.x)
    wave = math.sin(BALLS.lobes * angle + lesion.key % 7) * BALLS.lobe
    wave += math.sin(BALLS.bumps * angle + lesion.key % 11) * BALLS.bump
    r /= 1.0 + lesion.rough * wave
    if r >= 1.0:
        return 0.0
    sphere = math.sqrt(1.0 - r * r)
    return sphere * (1.0 - lesion.soft) + lesion.soft * smooth((1.0 - r) / BALLS.rim)


@kernel
def _plate(lesion: Lesion, x: float, y: float) -> float:
    dx, dy = x - lesion.x, y - lesion.y
    c, s = math.cos(lesion.turn), math.sin(lesion.turn)
    u, v = (dx * c + dy * s) / lesion.a, dy * c - dx * s
    if abs(u) >= 1.0:
        return 0.0
    v -= lesion.rough * lesion.a * (u * u - PLATES.bend)
    ends = 1.0 - u * u
    q = v / (lesion.b * (PLATES.ends + (1.0 - PLATES.ends) * ends))
    if abs(q) >= 1.0:
        return 0.0
    return (1.0 - q * q) * min(1.0, PLATES.fade * ends)


@kernel
def _cloud(lesion: Lesion, x: float, y: float) -> float:
    r = _ellipse(lesion, x, y)
    if r >= 1.0 + lesion.rough:
        return 0.0
    edge = CLOUDS.coarse_share * noise(CLOUDS.coarse * x, CLOUDS.coarse * y, lesion.key)
    edge += CLOUDS.fine_share * noise(CLOUDS.fine * x, CLOUDS.fine * y, lesion.key + 1)
    return smooth((1.0 + lesion.rough * edge - r) / lesion.soft)


@kernel
def _wedge(lesion: Lesion, peak: float, x: float, y: float, t: float) -> float:
    ragged = 1.0 + lesion.rough * WEDGES.ragged * noise(WEDGES.grain * x, WEDGES.grain * y, lesion.key)
    top = peak - lesion.a * ragged * max(0.0, 1.0 - t / lesion.b) ** WEDGES.slope
    if top >= peak:
        return 0.0
    return smooth((y - top) / lesion.soft) * smooth((peak - top) / WEDGES.onset)


@kernel
def _fluid(lesion: Lesion, base: float, y: float, t: float) -> float:
    level = base + FLUIDS.below - lesion.a * (FLUIDS.inner + FLUIDS.outer * t**FLUIDS.rise)
    return smooth((y - level) / lesion.soft)


@kernel
def collapse(lesion: Lesion, apex: float, y: float, t: float, width: float) -> float:
    """Return the signed distance from the retracted lung's edge, in image widths; positive in the free air."""
    up = (lesion.y - y) / COLLAPSES.height
    shift = lesion.a * up**COLLAPSES.grow if up > 0.0 else 0.0
    beside = (t - 1.0 + min(shift, COLLAPSES.most)) * width if up > 0.0 else COLLAPSES.off
    tip = t - COLLAPSES.tip
    above = apex + lesion.b * min(1.0, max(up, 0.0) / COLLAPSES.apical) + COLLAPSES.round * tip * tip - y
    # A smooth maximum rounds the corner between the lateral and the apical edge.
    near = max(beside, above)
    gap = abs(beside - above)
    return near + COLLAPSES.corner * max(0.0, 1.0 - gap / COLLAPSES.corner_over) ** 2


@kernel
def _compact(lesion: Lesion, x: float, y: float, t: float, gas: float, dome: float) -> tuple[float, float, float]:
    """Return shape, added attenuation and share of the vessels kept, for a ball, a plate or a wedge."""
    if lesion.kind == BALL:
        shape = _ball(lesion, x, y)
        return shape, lesion.amount * shape, 1.0
    if lesion.kind == PLATE:
        shape = _plate(lesion, x, y)
        return shape, lesion.amount * shape * min(1.0, gas + PLATES.airless), 1.0
    shape = _wedge(lesion, dome, x, y, t)
    return shape, lesion.amount * shape * min(1.0, gas + WEDGES.airless), 1.0


@kernel
def _diffuse(lesion: Lesion, x: float, y: float, gas: float, carina: float) -> tuple[float, float, float]:
    """Return the same for an infiltration, with strands, or a consolidation, with dark bronchi out of the hilum."""
    shape = _cloud(lesion, x, y)
    if shape <= 0.0:
        return 0.0, 0.0, 1.0
    key = lesion.key
    if lesion.kind == CLOUD:
        strands = abs(noise(CLOUDS.strand * x, CLOUDS.strand * y, key + 2))
        strands += abs(noise(CLOUDS.thread * x, CLOUDS.thread * y, key + 3))
        fine = abs(noise(CLOUDS.grain * x, CLOUDS.grain * y, key + 4))
        veil = CLOUDS.veil * (CLOUDS.level - CLOUDS.strand_share * strands - CLOUDS.grain_share * fine)
        return shape, (lesion.amount + veil) * shape * min(1.0, gas + CLOUDS.airless), 1.0
    dx, dy = x - (CLOUDS.hilum if lesion.side else -CLOUDS.hilum), y - carina - CLOUDS.hilum
    stripe = noise(CLOUDS.rays * math.atan2(dy, abs(dx) + 1e-6), CLOUDS.along * math.hypot(dx, dy), key + 5)
    bronchi = CLOUDS.bronchi * smooth((CLOUDS.bronchus - abs(stripe)) / CLOUDS.bronchus)
    patchy = 1.0 + CLOUDS.patchy * noise(CLOUDS.patch * x, CLOUDS.patch * y, key + 6)
    change = (lesion.amount * patchy - bronchi) * shape * min(1.0, gas + CLOUDS.solid)
    return shape, change, 1.0 - CLOUDS.hides * shape


@kernel
def _pleural(
    lesion: Lesion, y: float, t: float, width: float, gas: float, base: float, apex: float, air: float, step: float
) -> tuple[float, float, float]:
    """Return the same for fluid, which replaces air, or free air, which has a line and no vessels."""
    if lesion.kind == FLUID:
        shape = _fluid(lesion, base, y, t)
        return shape, lesion.amount * air * gas * shape, 1.0 - FLUIDS.hides * shape
    edge = collapse(lesion, apex, y, t, width)
    change = COLLAPSES.line * max(0.0, 1.0 - abs(edge) / max(COLLAPSES.thick, COLLAPSES.pixel * step))
    if edge > 0.0:
        return 1.0, change - lesion.amount * min(1.0, gas + COLLAPSES.airless), 0.0
    return 0.0, change + COLLAPSES.dense * gas, 1.0


@kernel
def apply(
    lesion: Lesion,
    anatomy: Anatomy,
    pose: Pose,
    air: NDArray[np.float32],
    labels: NDArray[np.uint8],
    total: NDArray[np.float32],
    vessels: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> None:
    """Add one lesion.

    Args:
        lesion: what, and where.
        anatomy: the thorax.
        pose: where it lies in the picture.
        air: ``(size, size)`` share of the full lung path.
        labels: ``(size, size)`` bit field of the tissue.
        total: ``(size, size)`` line integral; changed inside the lung only.
        vessels: ``(size, size)`` attenuation of vessels; hidden by consolidation and free air.
        mask: ``(size, size)``; set where the lesion is.
    """
    step = 1.0 / total.shape[0]
    border, cages, domes = anatomy.medial[lesion.side], anatomy.cage, anatomy.dome
    base, apex, carina, full = anatomy.bases[lesion.side], anatomy.apex, anatomy.carina, anatomy.air
    for row in range(total.shape[0]):
        v = (row + 0.5) * step
        for col in range(total.shape[1]):
            if not labels[row, col] & (RIGHT_LUNG << lesion.side):
                continue
            u = (col + 0.5) * step
            x = pose.a * u - pose.b * v + pose.cx
            y = pose.b * u + pose.a * v + pose.cy
            inner = lookup(border, y)
            width = lookup(cages, y) - inner
            t = min(1.0, max(0.0, (abs(x) - inner) / width))
            gas = air[row, col]
            if lesion.kind in (FLUID, COLLAPSE):
                shape, change, kept = _pleural(lesion, y, t, width, gas, base, apex, full, step)
            elif lesion.kind in (CLOUD, CONSOLIDATION):
                shape, change, kept = _diffuse(lesion, x, y, gas, carina)
            else:
                shape, change, kept = _compact(lesion, x, y, t, gas, lookup(domes, x))
            if shape > lesion.level:
                mask[row, col] = True
            vessels[row, col] *= kept
            total[row, col] = max(total[row, col] + change, 0.0)
