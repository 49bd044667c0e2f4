"""From wanted values to anatomy: for each task the parameter that gives the value.

The order matters: domes before the heart that rests on them, the heart before the line that the aorta is held against,
the place in the picture before what is measured in its pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

import numpy as np

from medground.errors import ConfigError
from medground.worlds.phantom import geometry
from medground.worlds.phantom.anatomy import RANGES, Anatomy, Pose, Span
from medground.worlds.phantom.exposure import Exposure
from medground.worlds.phantom.heart import shape_heart
from medground.worlds.phantom.outlines import AXIS, diaphragm
from medground.worlds.phantom.streams import chance, stream, uniform
from medground.worlds.phantom.tasks import CRITERIA, Value

_WAVES: Final = np.linspace(0.0, 0.06, 241)
_DOMES: Final = {7: 0.57, 8: 0.61, 9: 0.66, 10: 0.71}
"""Height of the right dome by the rib that crosses it; what is left over goes into the distance between ribs."""


class Framing(NamedTuple):
    """How a thorax is put into the picture; shares of the picture's side."""

    zoom: Span = (0.88, 1.06)
    across: Span = (0.15, 0.85)  # where in the room that is left, so that no margin is always the same
    along: Span = (0.1, 0.9)
    cut: Span = (0.004, 0.012)  # what is cut off: seen at the border, and not more than a sign of it
    cut_bottom: Span = (-0.01, 0.025)  # a bottom is cut where the costophrenic angle has no room of 0.03
    edge: Span = (0.004, 0.02)  # collimation that cuts nothing
    collimated: float = 0.25  # share of borders that have it
    cutting: Span = (0.012, 0.05)  # collimation that has come too far in
    cutting_share: float = 0.5  # of the cuts; the others are made by the picture's edge
    filled: float = 0.66  # least height of the lungs: a radiographer sees to it that they fill the picture
    tall: float = 0.87  # and most: the margins that shall be free need room
    wide: float = 0.93  # and most of their width
    side: float = 0.01  # free beside each lung
    apex: float = 0.015  # free above
    below: float = 0.115  # free above and below together


FRAMING: Final = Framing()

BREATH: Final = 0.03
"""How far the dome lies from the height of its rib: no two patients breathe alike."""

ON_RIB: Final = 0.2
"""How far the dome lies from its rib's middle, of the distance between ribs: never in a gap between two."""

SHIFT: Final = (0.048, 0.072)
"""How far a shifted trachea lies off: wholly beyond the midline, on most levels."""

ASCENDING_HALF: Final = (0.030, 0.038)
"""Half width of an ascending aorta that stands apart."""

ASCENDING_HEIGHT: Final = (0.100, 0.115)
"""Its half height."""

ASCENDING_ALONG: Final = (0.25, 0.40)
"""Where it lies between the trachea's lower end and the heart's right border."""

CLEAR: Final = 1.15
"""Distance from the line, in its own radii, of an ascending aorta that does not cross it: a pixel or two."""

WAVE_LENGTH: Final = (0.22, 0.28)
"""Wave length of a tortuous aorta: about two bends down to the dome."""

WAVE_PHASE: Final = 0.6
"""Radians: its first bend goes to either side, not always at the same height."""

_BLADE_CONTRAST: Final = 2.4
"""Shoulder blades that are asked about are drawn denser, so that their overlap can be seen."""

_BLADES: Final = np.linspace(0.12, 0.36, 49)
_DISTANCES: Final = np.linspace(-1.0, 1.0, 401)
_SHARES: Final = np.array([geometry.beyond(float(distance)) for distance in _DISTANCES])


def solve(
    anatomy: Anatomy, exposure: Exposure, seed: int, case: int, wanted: Mapping[str, Value]
) -> tuple[Anatomy, Exposure]:
    """Return the thorax and the exposure with the wanted values.

    Args:
        anatomy: as drawn.
        exposure: as drawn.
        seed: of the dataset.
        case: number of the case.
        wanted: task -> value, see :mod:`medground.worlds.phantom.wishes`.
    """
    if "inspiration" in wanted:
        anatomy = _breathe(anatomy, seed, case, int(cast("int", wanted["inspiration"])))
    if "inclusion" in wanted:
        anatomy, exposure = _frame(anatomy, exposure, seed, case, str(wanted["inclusion"]))
    if "mediastinal_widening" in wanted:
        anatomy = _widen(anatomy, _number(wanted["mediastinal_widening"]))
    if "trachea_deviation" in wanted:
        anatomy = _shift(anatomy, exposure, seed, case, str(wanted["trachea_deviation"]))
    if "carina_angle" in wanted:
        half = np.radians(_number(wanted["carina_angle"]))
        anatomy = anatomy._replace(bronchi=(float(np.tan(0.41 * half)), float(np.tan(0.59 * half))))
    anatomy = _arch(anatomy, seed, case, wanted)
    if "cardiomegaly" in wanted:
        anatomy = _heart(anatomy, _number(wanted["cardiomegaly"]))
    if "ascending_aorta_enlargement" in wanted:
        anatomy = _ascend(anatomy, seed, case, _number(wanted["ascending_aorta_enlargement"]))
    if "rotation" in wanted:
        ratio, sign = _number(wanted["rotation"]), 1 if chance(stream(seed, case, "rotation", "place"), 0.5) else -1
        anatomy = anatomy._replace(spinous=sign * anatomy.clavicle_x * (1 - ratio) / (1 + ratio))
    if "projection" in wanted:
        shares = cast("tuple[float, float]", wanted["projection"])
        blades = tuple(_blade(anatomy, side, share) for side, share in enumerate(shares))
        anatomy = anatomy._replace(scapulae=(blades[0], blades[1]), scapula_contrast=_BLADE_CONTRAST)
    return anatomy, exposure


def _number(value: Value) -> float:
    return float(cast("float", value))


def _breathe(anatomy: Anatomy, seed: int, case: int, rib: int) -> Anatomy:
    """Set domes and ribs so that this rib crosses the right dome on the mid-clavicular line."""
    rng = stream(seed, case, "inspiration", "place")
    wanted, phase = _DOMES[rib] + uniform(rng, -BREATH, BREATH), rib - 0.5 + uniform(rng, -ON_RIB, ON_RIB)
    # One table holds both domes, so they are made anew; the depths of the angles come from this task's stream.
    angles, gap = (
        (uniform(rng, *RANGES.angle), uniform(rng, *RANGES.angle)),
        anatomy.dome_peaks[1] - anatomy.dome_peaks[0],
    )
    right = wanted
    for _ in range(4):
        dome, bases = diaphragm(angles, anatomy.cage_half_width, right, right + gap)
        placed = anatomy._replace(dome=dome, dome_peaks=(right, right + gap), bases=bases)
        right += wanted - geometry.right_dome(placed)[1]
    x, y = geometry.right_dome(placed)
    ribs = placed.posterior
    spacing = ribs.spacing * float(geometry.rib_phase(placed, np.array(x), np.array(y))) / phase
    right, left = placed.dome_peaks
    x, _, radius, lucency = anatomy.bubble
    bubble = (x, left + anatomy.bubble[1] - anatomy.dome_peaks[1], radius, lucency)
    placed = placed._replace(bubble=bubble, posterior=ribs._replace(spacing=spacing))
    return _heart(placed, geometry.cardiothoracic(anatomy, anatomy.heart_ratio))


def _frame(anatomy: Anatomy, exposure: Exposure, seed: int, case: int, border: str) -> tuple[Anatomy, Exposure]:
    """Place the thorax so that nothing of the lungs is cut, or that one border cuts them a little."""
    rng = stream(seed, case, "inclusion", "place")
    turn = np.arctan2(anatomy.pose.b, anatomy.pose.a)
    f = FRAMING
    zoom, across, along = uniform(rng, *f.zoom), uniform(rng, *f.across), uniform(rng, *f.along)
    cut, collimated = uniform(rng, *f.cut), chance(rng, f.cutting_share)
    edges = [uniform(rng, *f.edge) if chance(rng, f.collimated) else 0.0 for _ in range(4)]
    pose = Pose(float(np.cos(turn)), float(np.sin(turn)), 0.0, 0.0)
    box = _box(anatomy._replace(pose=pose))
    height, width = box[3] - box[1], box[2] - box[0]
    zoom = min(max(zoom, f.filled / height), f.tall / height, f.wide / width)
    left, top, right, foot = (side * zoom for side in box)
    side = {"left": 2, "right": 0, "apex": 1, "bottom": 3}.get(border, -1)
    if side >= 0 and collimated:
        edges[side] = uniform(rng, *f.cutting)
    free_x, free_y = 1 - edges[0] - edges[2] - (right - left), 1 - edges[1] - edges[3] - (foot - top)
    x = edges[0] + f.side + across * (free_x - 2 * f.side) - left
    y = edges[1] + f.apex + along * (free_y - f.below) - top
    if border == "right":
        x = edges[0] - cut - left
    elif border == "left":
        x = 1 - edges[2] + cut - right
    elif border == "apex":
        y = edges[1] - cut - top
    elif border == "bottom":
        y = 1 - edges[3] - uniform(rng, *f.cut_bottom) - foot
    a, b = pose.a / zoom, pose.b / zoom
    placed = Pose(a, b, -(a * x - b * y), -(b * x + a * y))
    return anatomy._replace(pose=placed), exposure._replace(edges=(edges[0], edges[1], edges[2], edges[3]))


def _box(anatomy: Anatomy) -> tuple[float, float, float, float]:
    """Return the lungs' box in the picture: left, top, right, and the lower of both costophrenic angles."""
    edge = np.concatenate([geometry.lung_edge(anatomy, side) for side in (0, 1)])
    feet = np.array([geometry.costophrenic(anatomy, side) for side in (0, 1)])
    u, v = geometry.to_picture(anatomy.pose, edge).T
    foot = geometry.to_picture(anatomy.pose, feet)[:, 1].max()
    return float(u.min()), float(v.min()), float(u.max()), float(foot)


def _widen(anatomy: Anatomy, share: float) -> Anatomy:
    """Push the lungs' inner borders apart, or together, above the hila."""
    amounts = np.linspace(-0.03, 0.15, 361)
    found = geometry.mediastinum(anatomy, amounts)
    amount = float(np.interp(share, found, amounts))
    if abs(float(geometry.mediastinum(anatomy, amount)) - share) > 0.001:  # the widest row has jumped
        amount = float(amounts[np.abs(found - share).argmin()])
    return anatomy._replace(medial=(anatomy.medial + amount * geometry.bulge(AXIS)).astype(np.float32))


def _shift(anatomy: Anatomy, exposure: Exposure, seed: int, case: int, direction: str) -> Anatomy:
    """Push the trachea to one side above the arch, or to one side and lower down to the other."""
    rng = stream(seed, case, "trachea_deviation", "place")
    amount = uniform(rng, *SHIFT)
    upper, _, lower = direction.partition("&")
    sign = {"flat": 0.0, "right": -1.0, "left": 1.0}[upper]
    # The gentle swing stays small, so that it decides no level.
    shifted = anatomy._replace(trachea_shift=sign * amount, trachea_wave=0.5 * anatomy.trachea_wave)
    return _bend(shifted, exposure, direction) if lower else shifted


def _bend(anatomy: Anatomy, exposure: Exposure, direction: str) -> Anatomy:
    """Let a shifted trachea change sides where as many levels lie on one as on the other."""
    top = geometry.seen_from(anatomy.pose, exposure.edges)
    turns = np.linspace(top, anatomy.carina, 241)
    bent = [anatomy._replace(trachea_turn=float(turn)) for turn in turns]
    fits = [geometry.trachea_direction(geometry.trachea_levels(one, top)) == direction for one in bent]
    if not any(fits):
        raise ConfigError(
            "the trachea of this case shows too little to lie on both sides",
            where=f"case, direction {direction}",
            fix="ask for one side, or for another case",
        )
    return bent[int(np.flatnonzero(fits)[sum(fits) // 2])]  # the middle one: no level lies on the edge


def _arch(anatomy: Anatomy, seed: int, case: int, wanted: Mapping[str, Value]) -> Anatomy:
    """Solve knob, width and waves of the aorta together: its upper part must not be what is taken for the knob."""
    knob, width, winding = (
        wanted.get(task)
        for task in ("aortic_knob_enlargement", "descending_aorta_enlargement", "descending_aorta_tortuous")
    )
    if width is not None:
        anatomy = anatomy._replace(descending=_number(width) * anatomy.trachea)
    if knob is not None:
        anatomy = anatomy._replace(knob=(anatomy.knob[0], 0.33 + 0.3 * (anatomy.knob[1] - 0.33), anatomy.knob[2]))
        for _ in range(6):  # the rows that count depend on the radius, and the radius on the width
            outer = geometry.trachea_border(anatomy) + 2 * anatomy.trachea * _number(knob)
            radius = min(max(0.45 * outer + 0.005, 0.026), 0.062)
            anatomy = anatomy._replace(knob=(outer - radius, anatomy.knob[1], radius))
    if knob is None and width is None and winding is None:
        return anatomy
    outer = anatomy.knob[0] + anatomy.knob[2]
    line = min(anatomy.descending_x, outer - anatomy.descending - 0.006)
    if winding is not None:
        rng = stream(seed, case, "descending_aorta_tortuous", "place")
        length, phase = (
            uniform(rng, *WAVE_LENGTH),
            uniform(rng, -WAVE_PHASE, WAVE_PHASE) + (0.0 if chance(rng, 0.5) else np.pi),
        )
        wave = (0.0, length, phase, geometry.descending_span(anatomy)[1])
        anatomy = anatomy._replace(descending_x=line, descending_wave=wave)
        found = geometry.tortuosity(anatomy, _WAVES)
        below = np.flatnonzero(found < _number(winding))
        last = int(below[-1]) if len(below) else 0
        pair = slice(last, last + 2)
        amplitude = float(np.interp(_number(winding), found[pair], _WAVES[pair])) if len(below) else 0.0
        anatomy = anatomy._replace(descending_wave=(amplitude, *wave[1:]))
    y, radius = anatomy.knob[1], anatomy.knob[2]
    upper = np.linspace(y, y + 1.5 * radius, 8)
    for _ in range(2):
        reach = float(geometry.descending_line(anatomy, upper).max()) + anatomy.descending
        anatomy = anatomy._replace(descending_x=anatomy.descending_x - max(reach - outer + 0.003, 0.0))
    return anatomy


def check_reached(anatomy: Anatomy, asked: Mapping[str, Value]) -> None:
    """Raise ConfigError where a case cannot have a value that was asked for: an aorta winds only so much.

    Args:
        anatomy: as solved.
        asked: task -> value, without those that a population draws.
    """
    task = "descending_aorta_tortuous"
    if task not in asked:
        return
    wanted, reached = _number(asked[task]), float(geometry.tortuosity(anatomy))
    if reached < wanted - CRITERIA[task].tolerance:
        raise ConfigError(
            "the descending aorta of this case cannot be drawn so tortuous",
            where=task,
            expected=f"up to {reached:.4f}",
            got=wanted,
            fix="ask for less, or for another case",
        )


def usual_heart(anatomy: Anatomy) -> Anatomy:
    """Return the thorax with a heart that takes 0.45 of the lungs' width."""
    return _heart(anatomy, 0.45)


def _heart(anatomy: Anatomy, ratio: float) -> Anatomy:
    """Set the heart's width to this share of both lungs' width."""
    drawn = ratio * geometry.lung_width(anatomy) / (2 * anatomy.cage_half_width)
    heart = shape_heart(
        anatomy.cage_half_width,
        drawn,
        anatomy.heart_share,
        anatomy.dome_peaks[1],
        anatomy.heart.tilt,
        anatomy.knob[1],
    )
    return anatomy._replace(heart=heart, heart_ratio=drawn)


def _ascend(anatomy: Anatomy, seed: int, case: int, share: float) -> Anatomy:
    """Set the ascending aorta so that this share of it lies beyond the line from heart to trachea."""
    rng = stream(seed, case, "ascending_aorta_enlargement", "place")
    half, height, along = uniform(rng, *ASCENDING_HALF), uniform(rng, *ASCENDING_HEIGHT), uniform(rng, *ASCENDING_ALONG)
    point, normal = geometry.ascending_line(anatomy, anatomy.heart, anatomy.heart_ratio)
    low = np.array(geometry.heart_extremes(anatomy, anatomy.heart, anatomy.heart_ratio)[0])
    support = float(np.hypot(normal[0] * half, normal[1] * height))
    # Shares fall with the distance.
    distance = float(np.interp(-share, -_SHARES, _DISTANCES)) if share else CLEAR
    middle = point + along * (low - point) + distance * support * normal
    return anatomy._replace(ascending=(float(middle[0]), float(middle[1]), half, height))


def _blade(anatomy: Anatomy, side: int, share: float) -> float:
    overlap = geometry.blade_overlap(anatomy, side, _BLADES)
    return float(np.interp(-share, -overlap, _BLADES))
