"""From a scene to pixels, masks, landmarks and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.bones import bones
from medground.worlds.phantom.exposure import COARSE, develop, draw_texture, veil
from medground.worlds.phantom.heart import Heart
from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.landmarks import Point, landmarks, measurements
from medground.worlds.phantom.lesions import apply
from medground.worlds.phantom.markers import stamp
from medground.worlds.phantom.scene import Scene
from medground.worlds.phantom.silhouette import anatomies
from medground.worlds.phantom.streams import stream
from medground.worlds.phantom.tissue import HEART, TRACHEA, tissue
from medground.worlds.phantom.vessels import capsules

Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]

ANATOMIES: Final = (
    "right upper lung",
    "right mid lung",
    "right lower lung",
    "left upper lung",
    "left mid lung",
    "left lower lung",
    "heart",
    "aorta",
)
"""The eight anatomies; sides are the patient's, and thirds are of the lung's height."""

_VESSEL: Final = 0.25
"""Attenuation of a vessel of 0.01 image widths in radius, body units."""


_BODY: Final = 0.02
"""Attenuation from which a pixel shows the body."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """One case with pixels.

    Attributes:
        scene: what was drawn.
        pixels: ``(size, size)`` grey values, 0 black.
        findings: finding -> where it is, ``(size, size)``.
        labels: ``(size, size)`` bit field of :mod:`medground.worlds.phantom.tissue`.
    """

    scene: Scene
    pixels: NDArray[np.uint8]
    findings: Mapping[str, Mask]
    labels: NDArray[np.uint8]

    @cached_property
    def anatomies(self) -> Mapping[str, Mask]:
        """Anatomy -> its mask, in the order of ``ANATOMIES``."""
        return anatomies(self.labels)

    @property
    def masks(self) -> Mapping[str, Mask]:
        """Masks of the findings that are there and of the eight anatomies, by name."""
        return {**self.findings, **self.anatomies}

    @property
    def trachea(self) -> Mask:
        """The trachea and the main bronchi."""
        return (self.labels & TRACHEA) > 0

    @property
    def landmarks(self) -> Mapping[str, Point]:
        """See :func:`medground.worlds.phantom.landmarks.landmarks`."""
        return landmarks(self.scene, len(self.pixels))

    @property
    def measurements(self) -> Mapping[str, float]:
        """See :func:`medground.worlds.phantom.landmarks.measurements`."""
        return measurements(self.scene)


def _thorax(scene: Scene, heart: Heart, size: int) -> tuple[Plane, Plane, NDArray[np.uint8]]:
    """Return line integral, air and labels of tissue and bones."""
    total, air = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
    labels = np.empty((size, size), np.uint8)
    anatomy = scene.anatomy.numbers
    tissue(anatomy, anatomy.pose, heart, total, air, labels)
    bones(anatomy, anatomy.pose, total)
    return total, air, labels


def _lines(segments: Plane, scene: Scene, strength: float, size: int) -> Plane:
    canvas = np.zeros((size, size), np.float32)
    capsules(segments, scene.anatomy.pose, strength, canvas)
    return canvas


@kernel
def _fill(total: Plane, air: Plane, vessels: Plane, body: Plane, lung: Plane) -> None:
    """Add vessels and the lungs' texture where there is air, and the body's texture where there is a body."""
    for row in range(total.shape[0]):
        for col in range(total.shape[1]):
            before, gas = total[row, col], air[row, col]
            shown = min(gas * np.float32(1.2), np.float32(1.0))
            value = before + (vessels[row, col] * shown + lung[row, col] * gas)
            total[row, col] = value + body[row, col] if before > _BODY else value


def draw(scene: Scene, size: int) -> Drawing:
    """Draw a scene as a picture of ``size`` by ``size`` pixels."""
    total, air, labels = _thorax(scene, scene.heart, size)
    vessels = _lines(scene.vessels, scene, _VESSEL, size)
    findings: dict[str, Mask] = {}
    anatomy = scene.anatomy.numbers
    for finding in scene.findings:
        if finding == "Cardiomegaly":
            findings[finding] = (labels & HEART) > 0
            continue
        findings[finding] = np.zeros((size, size), np.bool_)
        for lesion in scene.lesions[finding]:
            apply(lesion, anatomy, anatomy.pose, air, labels, total, vessels, findings[finding])
    body, lung = draw_texture(stream(scene.seed, scene.case, "texture"), size)
    _fill(total, air, vessels, body, lung)
    if scene.devices:
        total += _lines(np.concatenate([device.segments for device in scene.devices]), scene, 1.0, size)
    np.maximum(total, 0, out=total)
    # Scatter and local mean come from the thorax as it would be without findings, see exposure.COARSE.
    mean, scatter = veil(_thorax(scene, scene.anatomy.heart, COARSE)[0], scene.exposure)
    grain = stream(scene.seed, scene.case, "noise").standard_normal((size, size), np.float32)
    pixels = np.empty((size, size), np.uint8)
    assert total.dtype == np.float32, "a float64 scalar has widened the picture"
    develop(total, mean, scatter, grain, scene.exposure, pixels)
    return Drawing(scene, stamp(pixels, scene.marker), findings, labels)
