"""The heart: three ellipses joined smoothly, as wide as its cardiothoracic ratio says."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

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


class Form(NamedTuple):
    """How three ellipses make a heart; shares are of its width left or right of the midline, or of the ventricle's."""

    squash: float = 0.74  # the left ventricle is an egg
    reach: float = 0.60  # it takes over half of the width on the left
    reach_least: float = 0.022  # and some in a small heart as well
    rest: float = 0.035  # the heart lies on the dome and dips into it
    atrium: float = 0.60  # the right atrium likewise
    atrium_least: float = 0.03
    atrium_over: float = 0.02  # it ends a little higher than the ventricle
    atrium_rise: float = 0.78  # its middle lies at about the ventricle's upper end
    atrium_height: float = 0.05  # it is higher than wide
    atrium_follows: float = 0.72  # and grows with the ventricle
    trunk_out: float = 0.020  # the pulmonary trunk lies left of the midline
    trunk_follows: float = 0.16  # further out in a large heart
    trunk_below: float = 0.105  # under the aortic knob, with a notch between the two
    trunk_rise: float = 1.55  # or on the ventricle's shoulder
    trunk: float = 0.034  # its radius
    trunk_grows: float = 0.12
    trunk_high: float = 1.7  # it is higher than wide
    join: float = 6.0  # sharpness of the smooth maximum that fills the notches between the ellipses
    fill: float = 0.16  # and how much it fills them
    far: float = -0.4  # nothing of the heart lies where all three are below this
    flat: float = 0.85  # the border is steep and the middle flat


FORM: Final = Form()

DEPTH: Final = 0.27
"""Attenuation of the heart's full depth beyond the chest's, body units."""


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
    reach = FORM.reach * left + FORM.reach_least
    a = reach / float(np.hypot(np.cos(tilt), FORM.squash * np.sin(tilt)))
    drop = float(np.hypot(np.sin(tilt), FORM.squash * np.cos(tilt))) * a
    ra_a = FORM.atrium * right + FORM.atrium_least
    return Heart(
        lv_x=left - reach,
        lv_y=base + FORM.rest - drop,
        lv_a=a,
        lv_b=FORM.squash * a,
        tilt=tilt,
        cos=math.cos(tilt),
        sin=math.sin(tilt),
        ra_x=-(right - ra_a),
        ra_y=base - FORM.atrium_over - FORM.atrium_rise * drop,
        ra_a=ra_a,
        ra_b=FORM.atrium_height + FORM.atrium_follows * drop,
        pt_x=FORM.trunk_out + FORM.trunk_follows * left,
        pt_y=max(knob_y + FORM.trunk_below, base - FORM.trunk_rise * drop),
        pt_r=FORM.trunk + FORM.trunk_grows * left,
    )


@kernel
def heart_depth(h: Heart, x: float, y: float) -> float:
    """Return how much heart lies on the ray: 0 outside, rising steeply at the border to 1."""
    dx, dy = x - h.lv_x, y - h.lv_y
    u, v = (dx * h.cos + dy * h.sin) / h.lv_a, (dy * h.cos - dx * h.sin) / h.lv_b
    left = 1.0 - u * u - v * v
    u, v = (x - h.ra_x) / h.ra_a, (y - h.ra_y) / h.ra_b
    right = 1.0 - u * u - v * v
    u, v = (x - h.pt_x) / h.pt_r, (y - h.pt_y) / (FORM.trunk_high * h.pt_r)
    trunk = 1.0 - u * u - v * v
    best = max(left, right, trunk)
    if best <= FORM.far:
        return 0.0
    total = math.exp((left - best) * FORM.join) + math.exp((right - best) * FORM.join)
    total += math.exp((trunk - best) * FORM.join)
    best = min(1.0, best + FORM.fill * math.log(total))
    if best <= 0.0:
        return 0.0
    return math.sqrt(math.sqrt(best)) * (FORM.flat + (1.0 - FORM.flat) * best)
