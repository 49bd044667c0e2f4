"""Landmarks and measurements that follow from the drawing, as a reader would take them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from medground.worlds.phantom import geometry
from medground.worlds.phantom.anatomy import Pose
from medground.worlds.phantom.bones import clavicle_line
from medground.worlds.phantom.outlines import AXIS, PHASES
from medground.worlds.phantom.scene import Scene

Point = tuple[float, float]

_RIB_SIDES = (("right", -1.0), ("left", 1.0))


def to_picture(pose: Pose, x: float, y: float, size: int) -> Point:
    """Return the pixel coordinates (x right, y down, origin at the picture's corner) of a point of the thorax."""
    dx, dy, norm = x - pose.cx, y - pose.cy, pose.a**2 + pose.b**2
    return size * (pose.a * dx + pose.b * dy) / norm, size * (pose.a * dy - pose.b * dx) / norm


def landmarks(scene: Scene, size: int) -> Mapping[str, Point]:
    """Return name -> point in the pixels of a picture of ``size``; sides are the patient's.

    A point can lie outside the picture, as in life.
    """
    a = scene.anatomy
    heart_right, heart_left = geometry.heart_extremes(a, scene.heart, scene.heart_ratio)
    edges = [geometry.lung_edge(a, side) for side in (0, 1)]
    right, left = (edge[np.abs(edge[:, 0]).argmax()] for edge in edges)
    points: dict[str, Point] = {
        "carina": (float(geometry.airway(a, np.array([a.carina]))[0]), a.carina),
        "aortic_knob": (a.knob[0], a.knob[1]),
        "heart_left": heart_left,
        "heart_right": heart_right,
        "thorax_left": (float(left[0]), float(left[1])),
        "thorax_right": (float(right[0]), float(right[1])),
    }
    for index, (side, sign) in enumerate(_RIB_SIDES):
        edge = 0.97 * a.cage_half_width
        points |= {
            f"clavicle_{side}_inner": (sign * a.clavicle_x, _clavicle(scene, index, 0.0)),
            f"clavicle_{side}_outer": (sign * (a.clavicle_x + 0.35), _clavicle(scene, index, 0.35)),
            f"dome_{side}": (sign * 0.47 * a.cage_half_width, a.dome_peaks[index]),
            f"costophrenic_{side}": (sign * edge, a.bases[index]),
        }
        for rib, y in enumerate(rib_heights(scene), start=1):
            points[f"rib_{side}_{rib}"] = (sign * 0.5 * float(np.interp(y, AXIS, a.cage)), y)
    return {name: to_picture(a.pose, x, y, size) for name, (x, y) in points.items()}


def _clavicle(scene: Scene, side: int, along: float) -> float:
    return float(clavicle_line(along, scene.anatomy.clavicle_y[side], scene.anatomy.clavicle_rise))


def rib_heights(scene: Scene) -> list[float]:
    """Return the heights (thorax frame) at which posterior ribs cross the middle of the half cage, top to bottom."""
    ribs, middle = scene.anatomy.posterior, len(scene.anatomy.posterior.slope) // 2
    fall = float(ribs.slope[middle])
    heights = []
    for phase in np.arange(0.5, len(ribs.table) / PHASES):
        # y = origin + slope * (0.75 + 0.6 (y - 0.2)) + phase * spacing, solved for y.
        y = (ribs.origin + float(phase) * ribs.spacing + fall * (0.75 - 0.12)) / (1 - 0.6 * fall)
        if scene.anatomy.apex < y < 0.95:
            heights.append(y)
    return heights


def measurements(scene: Scene) -> Mapping[str, float]:
    """Return what a reader would measure: lengths in image widths, ratios and counts without a unit.

    ``ribs_above_diaphragm`` counts posterior ribs over the right dome, the usual sign of a full breath.
    """
    a = scene.anatomy
    unit = 1 / float(np.hypot(a.pose.a, a.pose.b))
    thorax = geometry.lung_width(a) * unit
    return {
        "thoracic_width": thorax,
        "heart_width": 2 * a.cage_half_width * scene.heart_ratio * unit,
        "cardiothoracic_ratio": geometry.cardiothoracic(a, scene.heart_ratio),
        "trachea_width": 2 * a.trachea * unit,
        "aortic_knob_width": 2 * a.knob[2] * unit,
        "dome_difference": (a.dome_peaks[1] - a.dome_peaks[0]) * unit,
        "turn_degrees": float(np.degrees(np.arctan2(a.pose.b, a.pose.a))),
        "ribs_above_diaphragm": float(sum(y < a.dome_peaks[0] for y in rib_heights(scene))),
    }
