"""Masks and landmarks of one scene as a segmenter would give them, for tools that measure.

What tools measure on these masks at full resolution is the truth beside the drawn value: near a threshold the two can
round differently, and then the measured one counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from medground.worlds.phantom import geometry
from medground.worlds.phantom.anatomy import Anatomy
from medground.worlds.phantom.bones import BLADE, BLADE_HEIGHT, BLADE_TOP, CAGE, clavicle_line
from medground.worlds.phantom.outlines import PHASES
from medground.worlds.phantom.scene import Scene
from medground.worlds.phantom.silhouette import SIDES, Mask, Stage
from medground.worlds.phantom.tasks import REFERENCE_WIDTH
from medground.worlds.phantom.tissue import HEART, KNOB_STRETCH, LEFT_LUNG, RIGHT_LUNG, SPINE

Grid = geometry.Floats

_DEPTHS: Final = (0.10, 0.20, 0.30)
"""Where the walls of the main bronchi are taken for the carina's angle, as shares of their depth."""

_BRONCHUS: Final = 0.09
"""Depth of the main bronchi below the carina, image widths."""


@dataclass(frozen=True, eq=False)
class Structures:
    """What a tool gets.

    Attributes:
        masks: name -> ``(size, size)``; nothing of them lies outside the content box.
        landmarks: name -> point or points (x right, y down) as pixel indices (whole numbers lie in the middle of a
            pixel), or a number; ``content_box`` is half open.
        size: pixels a side.
        view: PA or AP.
    """

    masks: Mapping[str, Mask]
    landmarks: Mapping[str, Any]
    size: int
    view: str


def structures(scene: Scene, size: int) -> Structures:
    """Return the structures of a scene in a picture of ``size`` by ``size`` pixels.

    Masks: heart, right_lung, left_lung, upper_mediastinum, trachea, aortic_arch, descending_aorta,
    descending_aorta_upper, ascending_aorta (empty where none stands apart), right_scapula, left_scapula, rib_1 to
    rib_12 (posterior, the patient's right), right_hemidiaphragm.

    Landmarks: content_box, costophrenic_right, costophrenic_left, mid_clavicular_x, spinous_points, medial_end_right,
    medial_end_left, carina, right_10, right_20, right_30 and the same on the left, vertebra_points,
    heart_right_extreme, trachea_bottom, descending_edge_points (six, in pixels of a picture ``REFERENCE_WIDTH`` wide).
    """
    stage = Stage(scene, size)
    labels = stage.labels
    x, y = _grid(scene.anatomy, size)
    masks = {
        "heart": (labels & HEART) > 0,
        "right_lung": (labels & RIGHT_LUNG) > 0,
        "left_lung": (labels & LEFT_LUNG) > 0,
        **_middle(scene.anatomy, x, y),
        **_bones(scene.anatomy, x, y),
    }
    left, top, right, bottom = content_box(scene, size)
    seen = np.zeros((size, size), np.bool_)
    seen[top:bottom, left:right] = True
    return Structures({name: mask & seen for name, mask in masks.items()}, _landmarks(scene, size), size, scene.view)


def content_box(scene: Scene, size: int) -> tuple[int, int, int, int]:
    """Return the part of the picture that is not dark collimation: left, top, right, bottom in pixels, half open."""
    left, top, right, bottom = scene.exposure.edges
    centres = (np.arange(size) + 0.5) / size
    across = np.flatnonzero((centres >= left) & (centres <= 1 - right))
    down = np.flatnonzero((centres >= top) & (centres <= 1 - bottom))
    return int(across[0]), int(down[0]), int(across[-1]) + 1, int(down[-1]) + 1


def _grid(anatomy: Anatomy, size: int) -> tuple[Grid, Grid]:
    """Return the thorax coordinates of every pixel's middle."""
    pose = anatomy.pose
    u, v = np.meshgrid(*[(np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)] * 2)
    return pose.a * u - pose.b * v + pose.cx, pose.b * u + pose.a * v + pose.cy


_Y: Final[Grid] = np.linspace(-0.4, 1.4, 451)
"""Heights at which curves that are not tables are taken."""


def _curve(values: Grid, y: Grid) -> Grid:
    """Return a curve over ``_Y`` at every pixel."""
    return np.asarray(np.interp(y, _Y, values), np.float32)


def _middle(anatomy: Anatomy, x: Grid, y: Grid) -> dict[str, Mask]:
    """Return mediastinum, trachea and the parts of the aorta."""
    trachea = np.abs(np.subtract(x, _curve(geometry.airway(anatomy, _Y), y))) < anatomy.trachea
    line = _curve(geometry.descending_line(anatomy, _Y), y)
    top, bottom = geometry.descending_span(anatomy)
    descending = (np.abs(x - line) < anatomy.descending) & (y > top) & (y < bottom)
    knob_x, knob_y, radius = anatomy.knob
    arch = ((x - knob_x) / radius) ** 2 + ((y - knob_y) / (KNOB_STRETCH * radius)) ** 2 < 1
    borders = [geometry.at(anatomy.medial[side], y) for side in (0, 1)]
    between = (x > -borders[0]) & (x < borders[1]) & (y > geometry.MEDIASTINUM_TOP) & (y < anatomy.carina)
    a_x, a_y, a_half, a_height = anatomy.ascending
    ascending = np.zeros(x.shape, np.bool_)
    if a_half > 0:
        ascending = ((x - a_x) / a_half) ** 2 + ((y - a_y) / a_height) ** 2 < 1
    return {
        "upper_mediastinum": between,
        "trachea": trachea & _above(anatomy, x, y),
        "aortic_arch": arch,
        "descending_aorta": descending,
        "descending_aorta_upper": descending & (y < knob_y + 1.5 * radius),
        "ascending_aorta": ascending,
    }


def _above(anatomy: Anatomy, x: Grid, y: Grid) -> Mask:
    """Return what lies above the carina in the picture: a cut along its rows leaves no corner to one side."""
    pose, middle = anatomy.pose, float(geometry.airway(anatomy, np.array([anatomy.carina]))[0])
    return pose.a * (y - anatomy.carina) < pose.b * (x - middle)


def _bones(anatomy: Anatomy, x: Grid, y: Grid) -> dict[str, Mask]:
    """Return shoulder blades, the right posterior ribs, and the right half of the diaphragm as a band one rib high."""
    down, away = (y - anatomy.apex - BLADE_TOP) / BLADE_HEIGHT, np.abs(x)
    masks = {}
    for side, name in enumerate(SIDES):
        inner = anatomy.scapulae[side] + BLADE.lean * down + BLADE.bow * down * down
        outer = anatomy.scapulae[side] + BLADE.width - BLADE.taper * down
        masks[f"{name}_scapula"] = (down > 0) & (down < 1) & (away > inner) & (away < outer) & ((x > 0) == (side == 1))
    inside = (x < -0.02) & (away < geometry.at(anatomy.cage, y) + CAGE.wall) & (y > anatomy.apex - 0.03)
    phase = np.full(x.shape, -1.0, np.float32)
    phase[inside] = geometry.rib_phase(anatomy, x[inside], y[inside])
    number = np.floor(phase).astype(np.int8)
    on_rib = np.abs(phase - number - 0.5) < geometry.RIB_HALF
    for rib in range(1, len(anatomy.posterior.table) // PHASES + 1):
        masks[f"rib_{rib}"] = on_rib & (number == rib - 1)
    dome = geometry.at(anatomy.dome, x)
    masks["right_hemidiaphragm"] = inside & (y >= dome) & (y < dome + 0.5 * anatomy.posterior.spacing)
    return masks


def _landmarks(scene: Scene, size: int) -> dict[str, Any]:
    anatomy = scene.anatomy

    def point(x: float, y: float, scale: float = size) -> tuple[float, float]:
        u, v = geometry.to_picture(anatomy.pose, np.array([[x, y]]))[0]
        return float(u * scale) - 0.5, float(v * scale) - 0.5

    middle = float(geometry.airway(anatomy, np.array([anatomy.carina]))[0])
    vertebrae = np.arange(math.floor(anatomy.apex / anatomy.vertebra), math.ceil(0.8 / anatomy.vertebra))
    points: dict[str, Any] = {
        "content_box": content_box(scene, size),
        "mid_clavicular_x": point(*geometry.midclavicular(anatomy))[0],
        "spinous_points": [point(anatomy.spinous, float((k + SPINE.spinous) * anatomy.vertebra)) for k in vertebrae],
        "vertebra_points": [point(0.0, float((k + 0.5) * anatomy.vertebra)) for k in vertebrae],
        "carina": point(middle, anatomy.carina),
        "trachea_bottom": point(middle, anatomy.carina),
        "heart_right_extreme": point(*geometry.heart_extremes(anatomy, scene.heart, scene.heart_ratio)[0]),
        "descending_edge_points": [
            point(float(x), float(y), REFERENCE_WIDTH) for x, y in geometry.descending_edge(anatomy)
        ],
    }
    for side, name in enumerate(SIDES):
        sign = 1.0 if side else -1.0
        height = float(clavicle_line(0.0, anatomy.clavicle_y[side], anatomy.clavicle_rise))
        points[f"medial_end_{name}"] = point(sign * anatomy.clavicle_x, height)
        points[f"costophrenic_{name}"] = point(*geometry.costophrenic(anatomy, side))
        for share in _DEPTHS:
            depth = share * _BRONCHUS
            off = sign * anatomy.bronchi[side] * depth
            points[f"{name}_{round(100 * share)}"] = point(middle + off, anatomy.carina + depth)
    return points
