"""Every number that describes a scene, under a name: what is held for independence, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from medground.worlds.phantom.findings import LESIONS
from medground.worlds.phantom.geometry import at
from medground.worlds.phantom.scene import Population, Scene, make_scene
from medground.worlds.phantom.shapes import WEDGE
from medground.worlds.phantom.streams import DEVICES, FINDINGS
from medground.worlds.phantom.tasks import TaskFact
from medground.worlds.phantom.values import task_facts

Pairs = Iterator[tuple[str, float]]

NONE: Final = float("nan")

DIRECTIONS: Final = ("flat", "right", "left")

WHOLE_LUNG: Final = ("Effusion", "Pneumothorax")
"""Findings without a place of their own."""


def scene_facts(seed: int, case: int, population: Population) -> dict[str, float]:
    """Return the facts of one case; not a number where there is none.

    Lesions are those of a scene in which all seven are, so that each has a place and a shape in every case.
    """
    free = make_scene(seed, case, population=population)
    full = make_scene(seed, case, list(LESIONS), population=population)
    parts = (_present(free), _pose(free), _soft(free), _bones(free), _exposure(free), _marks(free), _devices(free))
    return dict(pair for part in (*parts, _lesions(full), _tasks(free)) for pair in part)


def _present(scene: Scene) -> Pairs:
    yield "view", float(scene.view == "AP")
    for finding in FINDINGS:
        yield f"has {finding}", float(finding in scene.findings)


def _pose(scene: Scene) -> Pairs:
    pose = scene.anatomy.pose
    yield "scale", math.hypot(pose.a, pose.b)
    yield "turn", math.atan2(pose.b, pose.a)
    yield "shift across", pose.cx + 0.5 * pose.a - 0.5 * pose.b
    yield "shift down", pose.cy + 0.5 * pose.b + 0.5 * pose.a


def _soft(scene: Scene) -> Pairs:
    a = scene.anatomy
    yield "habitus", a.habitus
    yield "half width", a.cage_half_width
    yield "apex", a.apex
    yield "right dome", a.dome_peaks[0]
    yield "left dome, lower by", a.dome_peaks[1] - a.dome_peaks[0]
    steep = min(0.5 * a.cage_half_width / 0.16, 2.0) ** 2.2
    for side, name in enumerate(("right", "left")):
        yield f"{name} angle, deeper by", (a.bases[side] - a.dome_peaks[side]) / steep
        yield f"{name} inner border, high", float(at(a.medial[side], 0.25))
        yield f"{name} inner border, low", float(at(a.medial[side], 0.60))
    yield from zip(("knob across", "knob height", "knob radius"), a.knob, strict=True)
    yield "heart width", a.heart_ratio
    yield "heart share", a.heart_share
    yield "heart tilt", a.heart.tilt
    yield "descending width", a.descending
    yield "trachea width", a.trachea
    yield "trachea swing", a.trachea_wave
    yield "carina", a.carina
    yield "has breasts", float(a.breast > 0)
    yield "breast density", a.breast or NONE
    yield "breast height", a.breast_y
    across, height, radius, lucency = a.bubble
    yield "bubble across", across
    yield "bubble, below the dome by", height - a.dome_peaks[1]
    yield "bubble radius", radius
    yield "has bubble", float(lucency > 0)
    yield "bubble lucency", lucency or NONE
    yield "air", a.air
    yield "vessels", float(len(scene.vessels))


def _bones(scene: Scene) -> Pairs:
    a, back, front = scene.anatomy, scene.anatomy.posterior, scene.anatomy.anterior
    middle = len(back.slope) // 3  # before the ribs begin to drop
    arch = -float(back.slope[middle]) / math.sin(0.72 * math.pi * middle / (len(back.slope) - 1))
    yield "posterior ribs, below the apex by", back.origin - a.apex
    yield "rib spacing", back.spacing
    yield "rib arch", arch
    yield "rib drop", float(back.slope[-1]) + arch * math.sin(0.72 * math.pi)
    yield "first rib", float(back.table[:64].max())
    yield "sixth rib", float(back.table[320:384].max())
    yield "anterior ribs, below the apex by", front.origin - a.apex
    yield "anterior spacing", front.spacing / back.spacing
    yield "anterior slope", float(front.slope[0])
    for side, name in enumerate(("right", "left")):
        yield f"{name} clavicle, below the apex by", a.clavicle_y[side] - a.apex
    yield "clavicles apart", a.clavicle_x
    yield "clavicle rise", a.clavicle_rise
    yield "clavicle density", a.clavicle_contrast
    yield "shoulder", a.shoulder
    yield "arm", a.arm[0]
    yield "arm slope", a.arm[1]
    yield "spine density", a.spine
    yield "vertebra", a.vertebra


def _exposure(scene: Scene) -> Pairs:
    numbers = scene.exposure._asdict()
    edges = numbers.pop("edges")
    yield from numbers.items()
    for name, width in zip(("left", "upper", "right", "lower"), edges, strict=True):
        yield f"has {name} edge", float(width > 0)
        yield f"{name} edge", width or NONE


def _marks(scene: Scene) -> Pairs:
    (_, *letter), *others = scene.marker.words
    yield from zip(("letter across", "letter down", "letter size", "letter grey"), map(float, letter), strict=True)
    texts = {text for text, *_ in others}
    yield "portable", float("PORTABLE" in texts)
    yield "initials", float(bool(texts - {"AP", "PORTABLE"}))


def _devices(scene: Scene) -> Pairs:
    carina, dome = scene.anatomy.carina, scene.anatomy.dome_peaks[1]
    above = {"tube": carina, "line": carina, "pacemaker": dome, "lead": 0.0}
    for kind in DEVICES:
        there = [device for device in scene.devices if device.kind == kind]
        yield f"has {kind}", float(bool(there))
        yield f"{kind} side", float(there[0].side == "left") if there and kind != "tube" else NONE
        yield f"{kind} tip", there[0].tip[1] - above[kind] if there else NONE
        if kind == "lead":
            yield "leads", float(len(there)) if there else NONE
            yield "electrode", float(there[0].electrode) if there else NONE


def _lesions(scene: Scene) -> Pairs:
    for finding, lesions in scene.lesions.items():
        one = lesions[0]
        top, bottom = scene.anatomy.apex, scene.anatomy.dome_peaks[one.side]
        yield f"{finding}: lesions", float(len(lesions))
        yield f"{finding}: side", float(one.side) if len(lesions) == 1 else NONE
        yield f"{finding}: wedge", float(one.kind == WEDGE)
        if one.kind == WEDGE:  # a wedge's numbers mean other things than a plate's
            continue
        if finding not in WHOLE_LUNG:
            yield f"{finding}: height", (one.y - top) / (bottom - top)
            yield f"{finding}: across", abs(one.x)
        if finding == "Pneumothorax":
            yield f"{finding}: foot", (one.y - top) / (bottom - top)
        ball = finding in ("Mass", "Nodule")
        yield f"{finding}: size", math.sqrt(one.a * one.b) if ball else one.a
        yield f"{finding}: other size", one.a / one.b if ball else one.b
        for name in ("turn", "amount", "soft", "rough", "key"):
            yield f"{finding}: {name}", float(getattr(one, name))


def _tasks(scene: Scene) -> Pairs:
    for task, fact in task_facts(scene).items():
        yield task, _number(fact)


def _number(fact: TaskFact) -> float:
    if isinstance(fact.value, tuple):
        return fact.value[0]
    if isinstance(fact.value, str):
        return float(DIRECTIONS.index(fact.value))
    if fact.label is None:
        return NONE
    return float(fact.value) if isinstance(fact.value, int | float) else float(fact.label)
