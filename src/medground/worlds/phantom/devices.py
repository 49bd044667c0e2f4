"""What was put on or into the patient: leads, a tracheal tube, a central venous line, a pacemaker.

Every kind draws from a stream of its own, so that none tells of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Anatomy
from medground.worlds.phantom.geometry import airway
from medground.worlds.phantom.streams import DEVICES, chance, uniform

Rng = np.random.Generator
Points = NDArray[np.float64]

SHARES: Final = {"lead": 0.30, "tube": 0.25, "line": 0.30, "pacemaker": 0.20}
"""How often a device is drawn in the population ``tasks``; the default population has leads alone."""


class Device(NamedTuple):
    """One device.

    Attributes:
        kind: a member of ``DEVICES``.
        side: "right" or "left" of the patient; a tube has none ("").
        tip: where it ends, thorax frame, image widths.
        electrode: whether a lead ends in one.
        segments: ``(n, 6)`` capsules: x0, y0, x1, y1, radius, opacity.
    """

    kind: str
    side: str
    tip: tuple[float, float]
    electrode: bool
    segments: NDArray[np.float32]


def draw_leads(rng: Rng, view: str) -> tuple[Device, ...]:
    """Return leads with and without electrodes.

    Six in ten portable pictures have some, two in ten others.

    Args:
        rng: the leads' stream.
        view: PA, AP, an empty one for the share of ``SHARES``, or ``always``.
    """
    if not chance(rng, {"AP": 0.6, "PA": 0.2, "always": 1.0}.get(view, SHARES["lead"])):
        return ()
    return tuple(_lead(rng) for _ in range(int(rng.integers(1, 4))))


def _lead(rng: Rng) -> Device:
    side = 1.0 if chance(rng, 0.5) else -1.0
    start = np.array([side * uniform(rng, 0.1, 0.55), uniform(rng, -0.05, 0.25)])
    stop = np.array([side * uniform(rng, 0.05, 0.33), uniform(rng, 0.30, 0.70)])
    path = _bow(start, 0.5 * (start + stop) + rng.normal(0, 0.10, 2), stop)
    parts = [_tube(path, uniform(rng, 0.0016, 0.0028), 1.0)]
    electrode = chance(rng, 0.6)
    if electrode:
        end = np.concatenate([path[-1], path[-1]])
        parts.append(np.array([[*end, uniform(rng, 0.008, 0.013), 1.6]]))
    return _device("lead", side, path[-1], parts, electrode)


def _bow(start: Points, through: Points, stop: Points) -> Points:
    """Return 25 points of a quadratic curve."""
    t = np.linspace(0, 1, 25)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * through + t**2 * stop


def _tube(path: Points, radius: float, opacity: float) -> Points:
    count = len(path) - 1
    return np.column_stack([path[:-1], path[1:], np.full(count, radius), np.full(count, opacity)])


def _device(kind: str, side: float, tip: Points, parts: list[Points], electrode: bool = False) -> Device:
    name = "" if kind == "tube" else ("left" if side > 0 else "right")
    segments = np.concatenate(parts).astype(np.float32)
    return Device(kind, name, (float(tip[0]), float(tip[1])), electrode, segments)


def _tracheal_tube(rng: Rng, anatomy: Anatomy) -> Device:
    """A tube with a dense stripe, ending 1 to 4 vertebrae above the carina."""
    tip = anatomy.carina - uniform(rng, 0.03, 0.12)
    heights = np.linspace(-0.10, tip, 22)
    path = np.column_stack([airway(anatomy, heights), heights])
    stripe = path + np.array([0.004, 0.0])
    return _device("tube", 0.0, path[-1], [_tube(path, 0.0075, 0.22), _tube(stripe, 0.0018, 1.0)])


def _venous_line(rng: Rng, anatomy: Anatomy) -> Device:
    """A thin line from one side of the neck or below one clavicle into the superior vena cava."""
    side = 1.0 if chance(rng, 0.4) else -1.0
    tip = np.array([-uniform(rng, 0.030, 0.045), anatomy.carina + uniform(rng, -0.02, 0.12)])
    outer = np.array([side * uniform(rng, 0.16, 0.30), anatomy.apex + uniform(rng, 0.10, 0.16)])
    neck = np.array([side * 0.075, anatomy.apex - uniform(rng, 0.05, 0.10)])
    start = outer if chance(rng, 0.6) else neck
    corner = np.array([-0.036, start[1] + 0.02])
    return _device("line", side, tip, [_tube(_bow(start, corner, tip), 0.0026, 0.9)])


def _pacemaker(rng: Rng, anatomy: Anatomy) -> Device:
    """A can below one clavicle and a wire through the great vein into the right ventricle."""
    side = 1.0 if chance(rng, 0.75) else -1.0
    can = np.array([side * uniform(rng, 0.20, 0.27), anatomy.apex + uniform(rng, 0.12, 0.17)])
    tip = np.array([uniform(rng, 0.045, 0.075), anatomy.dome_peaks[1] - uniform(rng, 0.015, 0.045)])
    turn = np.array([-0.050, anatomy.carina + 0.12])
    over = _bow(can, np.array([-0.020, can[1] - 0.06]), turn)
    wire = np.concatenate([over, _bow(turn, np.array([-0.070, tip[1] - 0.01]), tip)])
    body = np.array([[can[0] - 0.012, can[1], can[0] + 0.012, can[1] + 0.01, 0.034, 0.5]])
    return _device("pacemaker", side, tip, [_tube(wire, 0.0021, 1.0), body])


MAKERS: Final[dict[str, Callable[[Rng, Anatomy], Device]]] = {
    "tube": _tracheal_tube,
    "line": _venous_line,
    "pacemaker": _pacemaker,
}
"""Leads are apart: a case has none or several."""

assert set(MAKERS) | {"lead"} == set(DEVICES)
