"""The heart: three ellipses joined smoothly, as wide as its cardiothoracic ratio says."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from medground.worlds.phantom.kernels import kernel


class Heart(NamedTuple):
    """Left ventricle (an ellipse turned by ``tilt``, radians), right atrium, pulmonary trunk; image widths."""

    lv_x: float
    lv_y: float
    lv_a: float
    lv_b: float
    tilt: float
    cos: float
    sin: float
    ra_x: float
    ra_y: float
    ra_a: float
    ra_b: float
    pt_x: float
    pt_y: float
    pt_r: float


DEPTH = 0.27
"""Attenuation of the heart's full depth beyond the chest's, body units."""

_JOIN = 6.0
"""Sharpness of the smooth maximum that fills the notches between the ellipses."""


def shape_heart(half: float, ratio: float, share: float, base: float, tilt: float, knob_y: float) -> Heart:
    """Return a heart whose width is ``ratio`` times the cage's.

    Args:
        half: half width of the cage.
        ratio: cardiothoracic ratio.
        share: part of the width that lies left of the midline (image right).
        base: y of the left dome; the heart rests on it.
        tilt: of the left ventricle's long axis below the horizontal, radians.
        knob_y: y of the aortic knob; the pulmonary trunk lies below it.
    """
    width = 2 * half * ratio
    left, right = share * width, (1 - share) * width
    squash = 0.74
    reach = 0.60 * left + 0.022
    a = reach / float(np.hypot(np.cos(tilt), squash * np.sin(tilt)))
    drop = float(np.hypot(np.sin(tilt), squash * np.cos(tilt))) * a
    ra_a = 0.60 * right + 0.03
    return Heart(
        lv_x=left - reach,
        lv_y=base + 0.035 - drop,
        lv_a=a,
        lv_b=squash * a,
        tilt=tilt,
        cos=math.cos(tilt),
        sin=math.sin(tilt),
        ra_x=-(right - ra_a),
        ra_y=base - 0.02 - 0.78 * drop,
        ra_a=ra_a,
        ra_b=0.05 + 0.72 * drop,
        pt_x=0.020 + 0.16 * left,
        pt_y=max(knob_y + 0.105, base - 1.55 * drop),
        pt_r=0.034 + 0.12 * left,
    )


@kernel
def heart_depth(h: Heart, x: float, y: float) -> float:
    """Return how much heart lies on the ray: 0 outside, rising steeply at the border to 1."""
    dx, dy = x - h.lv_x, y - h.lv_y
    u, v = (dx * h.cos + dy * h.sin) / h.lv_a, (dy * h.cos - dx * h.sin) / h.lv_b
    left = 1.0 - u * u - v * v
    u, v = (x - h.ra_x) / h.ra_a, (y - h.ra_y) / h.ra_b
    right = 1.0 - u * u - v * v
    u, v = (x - h.pt_x) / h.pt_r, (y - h.pt_y) / (1.7 * h.pt_r)
    trunk = 1.0 - u * u - v * v
    best = max(left, right, trunk)
    if best <= -0.4:
        return 0.0
    total = math.exp((left - best) * _JOIN) + math.exp((right - best) * _JOIN) + math.exp((trunk - best) * _JOIN)
    best = min(1.0, best + 0.16 * math.log(total))
    if best <= 0.0:
        return 0.0
    return math.sqrt(math.sqrt(best)) * (0.85 + 0.15 * best)
