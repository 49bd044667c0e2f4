"""Where everything lies in a scene, without its grey values: labels of the tissue, a mask for every lesion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.lesions import apply
from medground.worlds.phantom.scene import HEART as ENLARGED_HEART, Scene
from medground.worlds.phantom.shapes import Lesion
from medground.worlds.phantom.tissue import AORTA, HEART, LEFT_LUNG, RIGHT_LUNG, ZONE, tissue

Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]

SIDES = ("right", "left")
THIRDS = ("upper", "mid", "lower")


@dataclass(frozen=True, eq=False)
class Silhouette:
    """The parts of one scene.

    Attributes:
        labels: ``(size, size)`` bit field of :mod:`medground.worlds.phantom.tissue`.
        lesions: finding -> one mask a lesion; an enlarged heart is one.
    """

    labels: NDArray[np.uint8]
    lesions: Mapping[str, tuple[Mask, ...]]


class Stage:
    """A thorax on which lesions are tried out: its labels are made once.

    Args:
        scene: whose thorax and heart are taken.
        size: pixels a side.
    """

    def __init__(self, scene: Scene, size: int) -> None:
        self.scene, self.size = scene, size
        self._total, self._air = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
        self.labels = np.empty((size, size), np.uint8)
        self._anatomy = scene.anatomy.numbers
        tissue(self._anatomy, self._anatomy.pose, scene.heart, self._total, self._air, self.labels)
        self._vessels = np.zeros((size, size), np.float32)

    def masks(self, lesions: Sequence[Lesion]) -> tuple[Mask, ...]:
        """Return the mask of each lesion, ``(size, size)``."""
        anatomy, found = self._anatomy, []
        for lesion in lesions:
            mask = np.zeros((self.size, self.size), np.bool_)
            apply(lesion, anatomy, anatomy.pose, self._air, self.labels, self._total, self._vessels, mask)
            found.append(mask)
        return tuple(found)


def silhouette(scene: Scene, size: int) -> Silhouette:
    """Return the parts of a scene in a picture of ``size`` by ``size`` pixels: the masks that ``draw`` gives."""
    stage = Stage(scene, size)
    lesions = {finding: stage.masks(scene.lesions[finding]) for finding in scene.findings if finding != ENLARGED_HEART}
    if ENLARGED_HEART in scene.findings:
        lesions[ENLARGED_HEART] = ((stage.labels & HEART) > 0,)
    return Silhouette(stage.labels, {finding: lesions[finding] for finding in scene.findings})


def anatomies(labels: NDArray[np.uint8]) -> dict[str, Mask]:
    """Return the eight anatomies by name; sides are the patient's, thirds are of the lung's height."""
    zone = labels // ZONE
    lungs = {"right": (labels & RIGHT_LUNG) > 0, "left": (labels & LEFT_LUNG) > 0}
    parts = {
        f"{side} {name} lung": lungs[side] & (zone == third) for side in SIDES for third, name in enumerate(THIRDS)
    }
    return {**parts, "heart": (labels & HEART) > 0, "aorta": (labels & AORTA) > 0}
