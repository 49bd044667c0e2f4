"""The one function from a scene to facts, for captions, region questions, measurements and dialogues alike.

Every question has three answers: True, False, and None for *unsayable*: the truth lies in a gap between true and false,
or there is no such fact. What is unsayable is neither asked nor said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from medground.worlds.phantom import geometry
from medground.worlds.phantom.landmarks import Point, landmarks
from medground.worlds.phantom.scene import HEART, RESIZABLE, Scene
from medground.worlds.phantom.shapes import BALL, PLATE, Lesion, extent
from medground.worlds.phantom.silhouette import SIDES, THIRDS, Mask, Silhouette, anatomies, silhouette
from medground.worlds.phantom.streams import FINDINGS
from medground.worlds.phantom.tasks import TaskFact
from medground.worlds.phantom.values import task_facts

ZONED: Final = ("Atelectasis", "Infiltration", "Mass", "Nodule", "Pneumonia")
"""Findings that may lie in any third; an effusion lies at the base and a pneumothorax at the apex."""

IN_THIRD: Final = 0.6
"""Share of a finding on a third of the lungs' height from which it lies there."""

OUTSIDE: Final = 0.05
"""Share of a finding below which it does not lie on a third, or on an anatomy."""

ON_REGION: Final = 0.5
"""Share of a single lesion on an anatomy above which it lies on it; below ``OUTSIDE`` it does not."""

GAP: Final = 0.08
"""Least difference of height, image widths, for one finding to lie above another."""

TWICE: Final = 2.0
"""Least ratio of areas for one finding to be larger than another."""

NEAREST: Final = (0.12, 0.6)
"""A landmark is near within the first (image widths), if no other lies nearer than it divided by the second."""

LUNGS: Final = {f"{side} lung": tuple(f"{side} {third} lung" for third in THIRDS) for side in SIDES}
"""Whole lungs, as unions of the eight anatomies."""


@dataclass(frozen=True)
class FindingFact:
    """What is true of one finding that is there.

    Attributes:
        finding: its name.
        side: "right", "left", "both" (of the patient); None for an enlarged heart.
        third: "upper", "mid", "lower", where most of it lies on one and the finding may lie on any.
        height: of a single lesion's middle in its lung, 0 at the apex to 1 at the dome.
        size: "small", "large"; None in between, or where size is not one number.
        extent: 0 smallest to 1 largest of its range.
        area: share of the picture.
        centre: of its mask, x and y in image widths from the picture's upper left corner; None if no pixel shows it.
        near: the one landmark that it is near to.
        regions: anatomy -> largest share of one single lesion on it.
        union: anatomy -> share of the whole finding on it.
    """

    finding: str
    side: str | None
    third: str | None
    height: float | None
    size: str | None
    extent: float | None
    area: float
    centre: tuple[float, float] | None
    near: str | None
    regions: Mapping[str, float]
    union: Mapping[str, float]


@dataclass(frozen=True)
class DeviceFact:
    """One device: its kind, the side it comes from ("" for a tube), where it ends (image widths in the picture)."""

    kind: str
    side: str
    tip: tuple[float, float]


class Facts:
    """What is true of one scene; see :func:`facts`.

    Attributes:
        scene: the scene.
        size: pixels a side of the masks.
        view: PA or AP.
        present: findings that are there, in the order of ``FINDINGS``.
        devices: what is on the patient.
    """

    def __init__(self, scene: Scene, size: int) -> None:
        self.scene, self.size = scene, size
        self.view, self.present = scene.view, scene.findings
        tips = [geometry.to_picture(scene.anatomy.pose, np.array([device.tip]))[0] for device in scene.devices]
        self.devices = tuple(
            DeviceFact(device.kind, device.side, (float(tip[0]), float(tip[1])))
            for device, tip in zip(scene.devices, tips, strict=True)
        )

    @cached_property
    def _parts(self) -> Silhouette:
        return silhouette(self.scene, self.size)

    @cached_property
    def anatomies(self) -> Mapping[str, Mask]:
        """The eight anatomies, ``(size, size)`` each."""
        return anatomies(self._parts.labels)

    @cached_property
    def lesions(self) -> Mapping[str, tuple[Mask, ...]]:
        """Finding -> one mask a lesion."""
        return self._parts.lesions

    @cached_property
    def masks(self) -> Mapping[str, Mask]:
        """Finding -> where it is."""
        return {finding: np.logical_or.reduce(masks) for finding, masks in self.lesions.items()}

    @cached_property
    def landmarks(self) -> Mapping[str, Point]:
        """Name -> point in pixels, see :func:`medground.worlds.phantom.landmarks.landmarks`."""
        return landmarks(self.scene, self.size)

    @cached_property
    def tasks(self) -> Mapping[str, TaskFact]:
        """Task -> value and label of the twelve diagnostic tasks, as drawn."""
        return task_facts(self.scene)

    @cached_property
    def findings(self) -> Mapping[str, FindingFact]:
        """Finding that is there -> what is true of it."""
        return {finding: self._finding(finding) for finding in self.present}

    def has(self, finding: str) -> bool:
        """Return whether a finding is there."""
        if finding not in FINDINGS:
            raise KeyError(finding)
        return finding in self.present

    def on_side(self, finding: str, side: str) -> bool | None:
        """Return whether a finding lies on a side; of one on both sides, a sentence about one is ambiguous."""
        if not self.has(finding):
            return False
        there = self.findings[finding].side
        return None if there in (None, "both") else there == side

    def in_third(self, finding: str, third: str) -> bool | None:
        """Return whether a finding lies in a third of the lungs' height."""
        if not self.has(finding):
            return False
        if finding not in ZONED:
            return None
        union = self.findings[finding].union
        share = sum(union[f"{side} {third} lung"] for side in SIDES)
        return True if share >= IN_THIRD else False if share < OUTSIDE else None

    def sized(self, finding: str, size: str) -> bool | None:
        """Return whether a finding is small, or large; the middle third of its range is neither."""
        if not self.has(finding):
            return False
        fact = self.findings[finding]
        return None if fact.size is None else fact.size == size

    def near(self, finding: str, landmark: str) -> bool | None:
        """Return whether a finding is near a landmark."""
        if not self.has(finding):
            return False
        there = self.findings[finding].near
        return None if there is None else there == landmark

    def in_region(self, finding: str, region: str) -> bool | None:
        """Return whether any single lesion lies on one of the eight anatomies, or on a whole lung."""
        if not self.has(finding):
            return False
        names = LUNGS.get(region, (region,))
        masks = [mask for mask in self.lesions[finding] if mask.any()]
        shares = [sum(self._share(mask, name) for name in names) for mask in masks]
        if not shares:
            return None
        return True if max(shares) > ON_REGION else False if max(shares) < OUTSIDE else None

    def above(self, one: str, other: str) -> bool | None:
        """Return whether one finding lies above another, by a clear gap between their middles."""
        gap = self._pair(one, other, lambda a, b: b.centre[1] - a.centre[1] if a.centre and b.centre else 0.0)
        return None if gap is None or abs(gap) < GAP else gap > 0

    def larger(self, one: str, other: str) -> bool | None:
        """Return whether one finding takes at least twice the area of another; False where it is the other way."""
        ratio = self._pair(one, other, lambda a, b: a.area / b.area if a.area and b.area else 1.0)
        return None if ratio is None or 1 / TWICE < ratio < TWICE else ratio > 1

    def other_side(self, one: str, other: str) -> bool | None:
        """Return whether two findings lie on different sides."""
        if not (self.has(one) and self.has(other)):
            return None
        sides = {self.findings[one].side, self.findings[other].side}
        return None if sides & {None, "both"} else len(sides) == 2

    def has_device(self, kind: str) -> bool:
        """Return whether a device is there; an electrode always hangs on a lead."""
        return any(device.kind == kind for device in self.devices)

    def inside(self, finding: str, regions: Sequence[str]) -> float:
        """Return the share of a finding inside these anatomies together; the rest is its residue outside them."""
        names = [name for region in regions for name in LUNGS.get(region, (region,))]
        mask = self.masks[finding]
        union = np.logical_or.reduce([self.anatomies[name] for name in names])
        return float((mask & union).sum() / max(int(mask.sum()), 1))

    def _share(self, mask: Mask, region: str) -> float:
        return float((mask & self.anatomies[region]).sum() / mask.sum())

    def _pair(self, one: str, other: str, measure: Callable[[FindingFact, FindingFact], float]) -> float | None:
        """Return a measure of two findings that are there, each as one lesion."""
        if not (self.has(one) and self.has(other)) or HEART in (one, other):
            return None
        a, b = self.findings[one], self.findings[other]
        if "both" in (a.side, b.side) or a.centre is None or b.centre is None:
            return None
        return measure(a, b)

    def _finding(self, finding: str) -> FindingFact:
        masks = [mask for mask in self.lesions[finding] if mask.any()]
        union = self.masks[finding]
        lesions = self.scene.lesions.get(finding, ())
        names = tuple(self.anatomies)
        one = lesions[0] if len(lesions) == 1 else None
        shares = {name: self._share(union, name) if union.any() else 0.0 for name in names}
        thirds = {third: sum(shares[f"{side} {third} lung"] for side in SIDES) for third in THIRDS}
        top = max(thirds, key=lambda third: thirds[third])
        sides = {SIDES[lesion.side] for lesion in lesions}
        extents = [extent(finding, lesion) for lesion in lesions] if finding in RESIZABLE else []
        rows, columns = np.nonzero(union)
        middle = ((columns.mean() + 0.5) / self.size, (rows.mean() + 0.5) / self.size) if len(rows) else None
        return FindingFact(
            finding=finding,
            side=None if not sides else "both" if len(sides) == 2 else sides.pop(),
            third=top if finding in ZONED and thirds[top] >= IN_THIRD else None,
            height=self._height(one) if one is not None and finding in ZONED else None,
            size=_size([share for share in extents if share is not None]),
            extent=extents[0] if len(extents) == 1 else None,
            area=float(union.mean()),
            centre=None if middle is None else (float(middle[0]), float(middle[1])),
            near=self._near(one) if one is not None and one.kind in (BALL, PLATE) else None,
            regions={name: max((self._share(mask, name) for mask in masks), default=0.0) for name in names},
            union=shares,
        )

    def _height(self, lesion: Lesion) -> float | None:
        anatomy = self.scene.anatomy
        if lesion.x == 0:  # a wedge has no middle of its own
            return None
        return (lesion.y - anatomy.apex) / (anatomy.dome_peaks[lesion.side] - anatomy.apex)

    def _near(self, lesion: Lesion) -> str | None:
        """Return the landmark that a lesion is near to, if it is near to one alone."""
        anatomy, away = self.scene.anatomy, abs(lesion.x)
        hilum = (0.066, anatomy.carina + (0.055 if lesion.side else 0.075))
        foot = geometry.costophrenic(anatomy, lesion.side)
        distances = {
            "chest wall": float(geometry.at(anatomy.cage, lesion.y)) - away,
            "diaphragm": float(geometry.at(anatomy.dome, lesion.x)) - lesion.y,
            "hilum": float(np.hypot(away - hilum[0], lesion.y - hilum[1])),
            "apex": lesion.y - anatomy.apex,
            "aortic knob": float(np.hypot(lesion.x - anatomy.knob[0], lesion.y - anatomy.knob[1])),
            "costophrenic angle": float(np.hypot(away - abs(foot[0]), lesion.y - foot[1])),
        }
        first, second = sorted(distances, key=lambda name: distances[name])[:2]
        reach, clear = NEAREST
        near = distances[first] < reach and distances[first] < clear * distances[second]
        return first if near else None


def _size(extents: Sequence[float]) -> str | None:
    """Return small or large, where all lesions are."""
    if extents and max(extents) < 1 / 3:
        return "small"
    return "large" if extents and min(extents) > 2 / 3 else None


def facts(scene: Scene, size: int = 128) -> Facts:
    """Return what is true of a scene.

    Masks are those that ``draw(scene, size)`` gives; grey values are not drawn. What costs time is made when it is
    first asked for.

    Args:
        scene: from :func:`medground.worlds.phantom.scene.make_scene`.
        size: pixels a side of the masks, 64 or more.

    Example:
        >>> from medground.worlds.phantom.scene import make_scene
        >>> said = facts(make_scene(7, 3, ["Mass"]))
        >>> said.has("Mass"), said.has("Effusion"), said.findings["Mass"].side
        (True, False, 'left')
    """
    return Facts(scene, size)
