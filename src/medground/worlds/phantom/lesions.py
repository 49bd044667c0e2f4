"""How findings change the line integral: one shape function a kind, one kernel that applies them.

Every shape function returns a density between 0 and 1 that is exactly 0 beyond the lesion, so a lesion changes no
pixel outside its reach.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy, Pose
from medground.worlds.phantom.findings import BALL, CLOUD, COLLAPSE, CONSOLIDATION, FLUID, PLATE, Lesion
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.tables import lookup, smooth
from medground.worlds.phantom.tissue import RIGHT_LUNG


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
    if r >= 1.3:
        return 0.0
    angle = math.atan2(y - lesion.y, x - lesion.x)
    wave = math.sin(3.0 * angle + lesion.key % 7) * 0.5 + math.sin(5.0 * angle + lesion.key % 11) * 0.35
    r /= 1.0 + lesion.rough * wave
    if r >= 1.0:
        return 0.0
    sphere = math.sqrt(1.0 - r * r)
    return sphere * (1.0 - lesion.soft) + lesion.soft * smooth((1.0 - r) / 0.6)


@kernel
def _plate(lesion: Lesion, x: float, y: float) -> float:
    dx, dy = x - lesion.x, y - lesion.y
    c, s = math.cos(lesion.turn), math.sin(lesion.turn)
    u, v = (dx * c + dy * s) / lesion.a, dy * c - dx * s
    if abs(u) >= 1.0:
        return 0.0
    v -= lesion.rough * lesion.a * (u * u - 0.3)
    ends = 1.0 - u * u
    q = v / (lesion.b * (0.45 + 0.55 * ends))
    if abs(q) >= 1.0:
        return 0.0
    return (1.0 - q * q) * min(1.0, 2.5 * ends)


@kernel
def _cloud(lesion: Lesion, x: float, y: float) -> float:
    r = _ellipse(lesion, x, y)
    if r >= 1.0 + lesion.rough:
        return 0.0
    edge = 0.6 * noise(14.0 * x, 14.0 * y, lesion.key) + 0.4 * noise(34.0 * x, 34.0 * y, lesion.key + 1)
    return smooth((1.0 + lesion.rough * edge - r) / lesion.soft)


@kernel
def _wedge(lesion: Lesion, peak: float, x: float, y: float, t: float) -> float:
    ragged = 1.0 + lesion.rough * 0.3 * noise(22.0 * x, 22.0 * y, lesion.key)
    top = peak - lesion.a * ragged * max(0.0, 1.0 - t / lesion.b) ** 0.9
    if top >= peak:
        return 0.0
    return smooth((y - top) / lesion.soft) * smooth((peak - top) / 0.03)


@kernel
def _fluid(lesion: Lesion, base: float, y: float, t: float) -> float:
    level = base + 0.05 - lesion.a * (0.55 + 0.45 * t**2.2)
    return smooth((y - level) / lesion.soft)


@kernel
def collapse(lesion: Lesion, apex: float, y: float, t: float, width: float) -> float:
    """Return the signed distance from the retracted lung's edge, in image widths; positive in the free air."""
    up = (lesion.y - y) / 0.25
    shift = lesion.a * up**0.6 if up > 0.0 else 0.0
    beside = (t - 1.0 + min(shift, 0.8)) * width if up > 0.0 else -1.0
    tip = t - 0.35
    above = apex + lesion.b * min(1.0, max(up, 0.0) / 0.6) + 0.10 * tip * tip - y
    # A smooth maximum rounds the corner between the lateral and the apical edge.
    near = max(beside, above)
    gap = abs(beside - above)
    return near + 0.012 * max(0.0, 1.0 - gap / 0.05) ** 2


@kernel
def _compact(lesion: Lesion, x: float, y: float, t: float, gas: float, dome: float) -> tuple[float, float, float]:
    """Return shape, added attenuation and share of the vessels kept, for a ball, a plate or a wedge."""
    if lesion.kind == BALL:
        shape = _ball(lesion, x, y)
        return shape, lesion.amount * shape, 1.0
    if lesion.kind == PLATE:
        shape = _plate(lesion, x, y)
        return shape, lesion.amount * shape * min(1.0, gas + 0.25), 1.0
    shape = _wedge(lesion, dome, x, y, t)
    return shape, lesion.amount * shape * min(1.0, gas + 0.2), 1.0


@kernel
def _diffuse(lesion: Lesion, x: float, y: float, gas: float, carina: float) -> tuple[float, float, float]:
    """Return the same for an infiltration, with strands, or a consolidation, with dark bronchi out of the hilum."""
    shape = _cloud(lesion, x, y)
    if shape <= 0.0:
        return 0.0, 0.0, 1.0
    key = lesion.key
    if lesion.kind == CLOUD:
        strands = abs(noise(26.0 * x, 26.0 * y, key + 2)) + abs(noise(60.0 * x, 60.0 * y, key + 3))
        fine = abs(noise(90.0 * x, 90.0 * y, key + 4))
        veil = lesion.amount + 0.10 * (0.9 - 0.7 * strands - 0.6 * fine)
        return shape, veil * shape * min(1.0, gas + 0.1), 1.0
    dx, dy = x - (0.06 if lesion.side else -0.06), y - carina - 0.06
    stripe = noise(11.0 * math.atan2(dy, abs(dx) + 1e-6), 5.0 * math.hypot(dx, dy), key + 5)
    bronchi = 0.10 * smooth((0.16 - abs(stripe)) / 0.16)
    patchy = 1.0 + 0.18 * noise(30.0 * x, 30.0 * y, key + 6)
    change = (lesion.amount * patchy - bronchi) * shape * min(1.0, gas + 0.15)
    return shape, change, 1.0 - 0.7 * shape


@kernel
def _pleural(
    lesion: Lesion, y: float, t: float, width: float, gas: float, base: float, apex: float, air: float, step: float
) -> tuple[float, float, float]:
    """Return the same for fluid, which replaces air, or free air, which has a line and no vessels."""
    if lesion.kind == FLUID:
        shape = _fluid(lesion, base, y, t)
        return shape, lesion.amount * air * gas * shape, 1.0 - 0.8 * shape
    edge = collapse(lesion, apex, y, t, width)
    change = 0.11 * max(0.0, 1.0 - abs(edge) / max(0.003, 0.75 * step))
    if edge > 0.0:
        return 1.0, change - lesion.amount * min(1.0, gas + 0.1), 0.0
    return 0.0, change + 0.07 * gas, 1.0


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
