"""Pulmonary vessels: trees out of both hila, thick to thin, fading towards the chest wall.

Whole generations are advanced as arrays; one kernel draws the capsules.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.anatomy import Pose
from medground.worlds.phantom.kernels import kernel

Segments = NDArray[np.float32]
"""``(n, 6)``: x0, y0, x1, y1, radius, opacity."""

_ROOTS: Final = 9
_STEPS: Final = 9


def draw_vessels(rng: np.random.Generator, carina: float) -> Segments:
    """Return the capsules of both lungs.

    Args:
        rng: the vessels' own stream.
        carina: y of the tracheal bifurcation; the hila lie below it.
    """
    parts = [_tree(rng, side, carina) for side in (-1.0, 1.0)]
    return np.concatenate(parts).astype(np.float32)


def _tree(rng: np.random.Generator, side: float, carina: float) -> NDArray[np.float64]:
    hilum = np.array([side * 0.066, carina + (0.075 if side < 0 else 0.055)])
    # Angles from straight out (0) downwards (positive); lower branches are stronger and more.
    angles = np.linspace(-1.25, 1.40, _ROOTS) + rng.normal(0, 0.16, _ROOTS)
    at = hilum + rng.normal(0, 1, (_ROOTS, 2)) * np.array([0.006, 0.026])
    radius = rng.uniform(0.0055, 0.0105, _ROOTS) * (1 + 0.15 * np.sin(angles))
    gone = np.zeros(_ROOTS)
    out = [_hilum(rng, hilum)]
    for step in range(_STEPS):
        length = rng.uniform(0.018, 0.034, len(at)) * (0.9 if step else 1.2)
        angles = angles + rng.normal(0, 0.17, len(at)) + 0.03
        part = np.empty((len(at), 6))
        to = part[:, 2:4]
        to[:, 0] = at[:, 0] + length * (side * np.cos(angles))
        to[:, 1] = at[:, 1] + length * np.sin(angles)
        gone = gone + length
        part[:, :2], part[:, 4] = at, radius
        part[:, 5] = np.minimum(np.maximum(1 - gone / 0.27, 0), 1) ** 0.8
        out.append(part)
        split = (rng.random(len(at)) < 0.62) & (radius > 0.0014)
        fork = rng.uniform(0.22, 0.55, len(at)) * np.where(rng.random(len(at)) < 0.5, 1, -1)
        at = np.concatenate([to, to[split]])
        angles = np.concatenate([angles - np.where(split, 0.4 * fork, 0), (angles + fork)[split]])
        gone = np.concatenate([gone, gone[split]])
        radius = np.concatenate([radius * np.where(split, 0.80, 0.90), (radius * 0.66)[split]])
        keep = (gone < 0.27) & (radius > 0.0009)
        at, angles, gone, radius = at[keep], angles[keep], gone[keep], radius[keep]
    return np.concatenate(out)


def _hilum(rng: np.random.Generator, hilum: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the thick crossing vessels that make the hilum a patch."""
    count = 7
    start = hilum + rng.normal(0, 1, (count, 2)) * np.array([0.010, 0.026])
    stop = start + rng.normal(0, 1, (count, 2)) * np.array([0.016, 0.030])
    return np.column_stack([start, stop, rng.uniform(0.008, 0.013, count), np.full(count, 0.75)])


@kernel
def capsules(segments: NDArray[np.float32], pose: Pose, depth: float, out: NDArray[np.float32]) -> None:
    """Add every capsule to ``out``, ``(size, size)``: round profile, one pixel of soft edge.

    Args:
        segments: ``(n, 6)`` in the thorax' frame.
        pose: where the thorax lies in the picture.
        depth: attenuation of a capsule as thick as 0.01 image widths.
        out: added to.
    """
    size = out.shape[0]
    norm = pose.a * pose.a + pose.b * pose.b
    scale = math.sqrt(norm)
    for index in range(segments.shape[0]):
        x0, y0, x1, y1, radius, opacity = segments[index]
        if opacity <= 0.0:
            continue
        # The inverse similarity takes the ends to pixels.
        dx, dy = x0 - pose.cx, y0 - pose.cy
        u0, v0 = (pose.a * dx + pose.b * dy) / norm * size, (pose.a * dy - pose.b * dx) / norm * size
        dx, dy = x1 - pose.cx, y1 - pose.cy
        u1, v1 = (pose.a * dx + pose.b * dy) / norm * size, (pose.a * dy - pose.b * dx) / norm * size
        r = radius / scale * size
        # A vessel thinner than a pixel is drawn one pixel wide and fainter, so every size shows the same tree.
        wide = max(r, 0.75)
        strength = opacity * depth * (radius / 0.01) ** 0.8 * (r / wide)
        left, right = int(min(u0, u1) - wide), int(max(u0, u1) + wide) + 1
        top, bottom = int(min(v0, v1) - wide), int(max(v0, v1) + wide) + 1
        along_x, along_y = u1 - u0, v1 - v0
        length = along_x * along_x + along_y * along_y + 1e-9
        for row in range(max(top, 0), min(bottom, size - 1) + 1):
            for col in range(max(left, 0), min(right, size - 1) + 1):
                px, py = col + 0.5 - u0, row + 0.5 - v0
                t = (px * along_x + py * along_y) / length
                t = min(1.0, max(0.0, t))
                ox, oy = px - t * along_x, py - t * along_y
                q = 1.0 - (ox * ox + oy * oy) / (wide * wide)
                if q > 0.0:
                    out[row, col] = max(out[row, col], strength * math.sqrt(q))
