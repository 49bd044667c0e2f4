"""The outlines of a thorax as tables over a coordinate, and its ribs as tables over a phase."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.streams import normal, uniform

Table = NDArray[np.float32]

SAMPLES: Final = 1024
START: Final = -0.7
SPAN: Final = 2.0
AXIS: Final = np.linspace(START, START + SPAN, SAMPLES)
"""Where the tables are sampled, in image widths: they reach beyond the picture, for it may be turned and shifted."""

UNIT: Final = np.linspace(0.0, 1.0, SAMPLES)
"""Where the tables over a share are sampled."""

PHASES: Final = 64
"""Samples a rib."""

_CAGE: Final = ((-0.03, 0.08), (0.0, 0.33), (0.012, 0.45), (0.034, 0.56), (0.075, 0.68), (0.17, 0.83), (0.33, 0.95))
"""Half width of the cage, as a share of its widest, at heights below the apex."""


class Ribs(NamedTuple):
    """One set of ribs, alike on both sides.

    Attributes:
        origin: y of the first rib at the midline.
        spacing: between ribs.
        slope: how far a rib lies below its origin, over the share of the half cage (0 to 1).
        table: attenuation over the phase, 64 samples a rib.
    """

    origin: float
    spacing: float
    slope: Table
    table: Table


def _table(heights: Sequence[float], values: Sequence[float]) -> Table:
    curve = np.empty(SAMPLES, np.float32)
    _monotone(np.array(heights, np.float64), np.array(values, np.float64), AXIS, curve)
    return curve


@kernel
def _monotone(x: NDArray[np.float64], y: NDArray[np.float64], at: NDArray[np.float64], out: Table) -> None:
    """Write the monotone cubic through the points (Fritsch and Butland 1984) at ``at``; its ends are held.

    The numbers are those of scipy's ``PchipInterpolator`` to the last bit, in a tenth of its time.
    """
    n = x.size
    step, slope, steepness = np.empty(n - 1), np.empty(n - 1), np.empty(n)
    for k in range(n - 1):
        step[k] = x[k + 1] - x[k]
        slope[k] = (y[k + 1] - y[k]) / step[k]
    for k in range(1, n - 1):
        if np.sign(slope[k]) != np.sign(slope[k - 1]) or slope[k] == 0.0 or slope[k - 1] == 0.0:
            steepness[k] = 0.0
            continue
        one, two = 2.0 * step[k] + step[k - 1], step[k] + 2.0 * step[k - 1]
        steepness[k] = 1.0 / ((one / slope[k - 1] + two / slope[k]) / (one + two))
    steepness[0] = _end(step[0], step[1], slope[0], slope[1])
    steepness[n - 1] = _end(step[n - 2], step[n - 3], slope[n - 2], slope[n - 3])
    k = 0
    for i in range(at.size):
        v = min(max(at[i], x[0]), x[n - 1])
        while k < n - 2 and v >= x[k + 1]:
            k += 1
        bend = (steepness[k] + steepness[k + 1] - 2.0 * slope[k]) / step[k]
        s = v - x[k]
        value = y[k] + steepness[k] * s
        value += ((slope[k] - steepness[k]) / step[k] - bend) * (s * s)
        value += (bend / step[k]) * (s * s * s)
        out[i] = value


@kernel
def _end(near: float, far: float, first: float, second: float) -> float:
    """Return the steepness at an end: of the parabola through three points, kept monotone."""
    d = ((2.0 * near + far) * first - near * second) / (near + far)
    if np.sign(d) != np.sign(first):
        return 0.0
    if np.sign(first) != np.sign(second) and abs(d) > 3.0 * abs(first):
        return 3.0 * first
    return d


def cage(half: float, apex: float) -> Table:
    """Return the inner half width of the cage over y; its widest, ``half``, is reached at y = 0.80."""
    below, shares = zip(*_CAGE, strict=True)
    return _table(
        [-0.7, *(apex + y for y in below), 0.80, 1.3], [0.05 * half, *(s * half for s in shares), half, 0.98 * half]
    )


def body(half: float, apex: float, fat: float) -> Table:
    """Return the half width of neck, shoulders and trunk over y."""
    neck, wall = 0.12 + 0.05 * fat, 0.035 + 0.065 * fat
    outline = [
        (-0.7, neck),
        (apex - 0.12, neck + 0.01),
        (apex - 0.05, neck + 0.11),
        (apex, neck + 0.25),
        (apex + 0.05, neck + 0.36),
        (apex + 0.10, neck + 0.40),
        (apex + 0.18, neck + 0.41),
        (0.40, half + wall + 0.075),
        (0.60, half + wall + 0.01),
        (0.85, half + wall),
        (1.3, half + 1.5 * wall),
    ]
    return _table(*zip(*outline, strict=True))


def medial(rng: np.random.Generator, apex: float) -> Table:
    """Return the distance of a lung's inner border from the midline over y; it meets the lateral one at the apex."""
    heights = [-0.7, apex, apex + 0.012, apex + 0.035, 0.25, 0.35, 0.45, 0.60, 0.80, 1.3]
    wavy = [max(value + normal(rng, 0.004), 0.03) for value in (0.050, 0.049, 0.064, 0.058, 0.060)]
    return _table(heights, [0.125, 0.125, 0.098, 0.070, *wavy, 0.06])


def diaphragm(angles: tuple[float, float], half: float, right: float, left: float) -> tuple[Table, tuple[float, float]]:
    """Return the diaphragm's y over x, both domes joined by a sigmoid, and the y of the two costophrenic angles.

    Args:
        angles: depth of the costophrenic angles below the domes; image left, right.
        half: half width of the cage.
        right: y of the right dome.
        left: y of the left one.
    """
    below = _below_domes(angles, half)
    heights = (right + below[0]) * (1 - _BLEND) + (left + below[1]) * _BLEND
    edges = [float(np.interp(edge, AXIS, heights)) for edge in (-0.97 * half, 0.97 * half)]
    return heights.astype(np.float32), (edges[0], edges[1])


@lru_cache(maxsize=8)
def _below_domes(angles: tuple[float, float], half: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far the diaphragm lies below each dome, over x: the same while a dome's height is searched."""
    centre = 0.47 * half
    off = np.abs(np.abs(AXIS) - centre) / 0.16
    inside, round_top, wall = np.abs(AXIS) < centre, 0.022 * off**2.0, np.minimum(off, 2.0) ** 2.2
    right, left = (np.where(inside, round_top, angle * wall) for angle in angles)
    return right, left


_BLEND: Final = 1 / (1 + np.exp(-AXIS / 0.025))
"""Share of the left dome over x."""


def posterior_ribs(rng: np.random.Generator, apex: float, spacing: float) -> Ribs:
    """Return the posterior ribs: up and out of the spine, then down along the wall."""
    origin, arch, drop = apex + uniform(rng, -0.03, 0.03), uniform(rng, 0.055, 0.08), uniform(rng, 0.10, 0.15)
    slope = -arch * np.sin(0.72 * np.pi * UNIT) + 3.2 * drop * np.maximum(UNIT - 0.45, 0) ** 2
    return Ribs(origin, spacing, slope.astype(np.float32), _rib_table(rng, 0.10, 0.145, 0.02))


def anterior_ribs(rng: np.random.Generator, apex: float, spacing: float) -> Ribs:
    """Return the anterior ribs: wider apart, sloping the other way, at under half of the contrast."""
    origin, apart = apex + uniform(rng, -0.06, 0.0), spacing * uniform(rng, 1.15, 1.3)
    slope = uniform(rng, 0.30, 0.38) * (1 - UNIT) ** 1.3
    return Ribs(origin, apart, slope.astype(np.float32), _rib_table(rng, 0.05, 0.08, 0.0))


def _rib_table(rng: np.random.Generator, low: float, high: float, fall: float) -> Table:
    """Return attenuation over the phase of twelve ribs: a bright rim, a paler core, every rib its own."""
    u = (np.arange(PHASES) + 0.5) / PHASES - 0.5
    drawn = []
    for index in range(12):
        half = 0.17 * (1 + normal(rng, 0.08))
        contrast = uniform(rng, low, high) * max(1 - fall * index, 0.4)
        drawn.append((half, contrast * 1.45, normal(rng, 0.04)))
    halves, contrasts, middles = np.array(drawn).T[:, :, None]
    v = (u - middles) / halves
    rim = np.sqrt(np.maximum(1 - v**2, 0)) - 0.45 * np.sqrt(np.maximum(1 - (v / 0.72) ** 2, 0))
    return np.asarray(contrasts * rim, np.float32).ravel()
