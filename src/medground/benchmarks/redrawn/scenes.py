"""The pictures of an item: a phantom, and the same phantom drawn again without each of its findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.scene import make_scene

Mask = NDArray[np.bool_]
LEVELS = 2
"""A pixel shows a finding where it differs by more levels of 255 without it."""

_PRIOR_SEED, _PRIOR_CASES = 90_001, 16


@dataclass(frozen=True)
class Redrawn:
    """A phantom and what it is without its findings.

    Attributes:
        whole: ``(size, size, 3)`` in [0, 1].
        without: finding -> the picture without it.
        regions: finding -> the pixels that show it: those that change when it goes.
    """

    whole: NDArray[np.float32]
    without: Mapping[str, NDArray[np.float32]]
    regions: Mapping[str, Mask]


def findings_of(seed: int, case: int) -> tuple[str, ...]:
    """Return the findings of a case, without drawing it."""
    return make_scene(seed, case).findings


def redrawn(seed: int, case: int, size: int) -> Redrawn:
    """Draw a case, and again without each of its findings."""
    scene = make_scene(seed, case)
    whole = draw(scene, size).pixels
    without = {finding: draw(scene.without(finding), size).pixels for finding in scene.findings}
    regions = {f: np.abs(whole.astype(np.int16) - other.astype(np.int16)) > LEVELS for f, other in without.items()}
    return Redrawn(_in_colours(whole), {f: _in_colours(pixels) for f, pixels in without.items()}, regions)


def _in_colours(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.repeat((pixels / np.float32(255)).astype(np.float32)[..., None], 3, 2)


@lru_cache(maxsize=64)
def class_prior(finding: str, size: int) -> NDArray[np.float64]:
    """Return how often each pixel shows a finding in other phantoms, ``(size, size)`` in [0, 1]."""
    shown = [draw(make_scene(_PRIOR_SEED, case, [finding]), size).findings[finding] for case in range(_PRIOR_CASES)]
    return np.asarray(np.mean(shown, 0), np.float64)
