"""Pictures to learn from: drawn once, kept as small integers, with the share of every finding in every region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.reference.vocabulary import CONCEPTS, FINDINGS
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.lesions import apply
from medground.worlds.phantom.questions import REGIONS
from medground.worlds.phantom.scene import make_scene

SIZE: Final = 224
GRID: Final = 28
LUNGS: Final[Mapping[str, tuple[str, ...]]] = {
    f"{side} lung": tuple(f"{side} {third} lung" for third in ("upper", "mid", "lower")) for side in ("right", "left")
}
COUNTS: Final = (0.12, 0.28, 0.30, 0.20, 0.10)
"""Share of training pictures with 0 to 4 findings: more than usual, so that "elsewhere" is a common truth."""


@dataclass(frozen=True)
class Scenes:
    """Pictures with their truth.

    Attributes:
        images: ``(N, 224, 224)`` grey values.
        masks: ``(N, 16, 28, 28)``, share of each cell that eight findings and eight anatomies cover, 0 to 255.
        share: ``(N, 10, 8)``: region by finding, largest share that the region holds of any single lesion, 0 to 1.
        present: ``(N, 8)``.
    """

    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    share: NDArray[np.float32]
    present: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.images)


def coverage(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the share of each of ``28 x 28`` cells that a mask ``(224, 224)`` covers, 0 to 255."""
    factor = SIZE // GRID
    counts = mask.reshape(GRID, factor, GRID, factor).sum((1, 3), dtype=np.uint32)
    cells: NDArray[np.uint8] = (counts * 255 // factor**2).astype(np.uint8)
    return cells


def region_masks(drawing: Drawing) -> dict[str, NDArray[np.bool_]]:
    """Return region -> mask, in the order of :data:`REGIONS`."""
    masks = dict(drawing.anatomies)
    for lung, thirds in LUNGS.items():
        masks[lung] = np.logical_or.reduce([masks[third] for third in thirds])
    return masks


def lesion_masks(drawing: Drawing) -> dict[str, list[NDArray[np.bool_]]]:
    """Return finding -> one mask a lesion; an enlarged heart is one lesion."""
    masks: dict[str, list[NDArray[np.bool_]]] = {}
    scene, size = drawing.scene, len(drawing.pixels)
    anatomy = scene.anatomy.numbers
    for finding, whole in drawing.findings.items():
        lesions = scene.lesions.get(finding, ())
        masks[finding] = [whole] if len(lesions) < 2 else []
        for lesion in lesions if len(lesions) > 1 else ():
            mask = np.zeros((size, size), np.bool_)
            air, total, vessels = (np.zeros((size, size), np.float32) for _ in range(3))
            apply(lesion, anatomy, anatomy.pose, air, drawing.labels, total, vessels, mask)
            masks[finding].append(mask)
    return masks


def shares(drawing: Drawing) -> NDArray[np.float32]:
    """Return ``(10, 8)``: the largest share that a region holds of any single lesion of a finding."""
    table = np.zeros((len(REGIONS), len(FINDINGS)), np.float32)
    regions = np.stack(list(region_masks(drawing).values())).reshape(len(REGIONS), -1).astype(np.float32)
    for finding, lesions in lesion_masks(drawing).items():
        for lesion in lesions:
            area = float(lesion.sum())
            if area:
                inside = regions @ lesion.reshape(-1).astype(np.float32)
                column = FINDINGS.index(finding)
                table[:, column] = np.maximum(table[:, column], inside / area)
    return table


def draw_scenes(count: int, seed: int, workers: int = 1) -> Scenes:
    """Draw cases 0 to ``count - 1`` of a seed, each with findings drawn here; the same for any number of workers."""
    bounds = np.linspace(0, count, max(1, min(workers * 4, count)) + 1).astype(int)
    spans = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    if workers == 1:
        return join([_drawn(span, seed) for span in spans])
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return join(list(pool.map(partial(_drawn, seed=seed), spans)))


def findings_of(seed: int, case: int) -> list[str]:
    """Return the findings of a training case, from a stream of their own."""
    rng = np.random.default_rng([seed, case, 14])
    count = int(rng.choice(len(COUNTS), p=COUNTS))
    return [FINDINGS[i] for i in sorted(rng.permutation(len(FINDINGS))[:count])]


def one(drawing: Drawing) -> Scenes:
    """Return a drawing as a set of one."""
    masks = drawing.masks
    planes = [coverage(masks[c]) if c in masks else np.zeros((GRID, GRID), np.uint8) for c in CONCEPTS]
    present = np.array([finding in drawing.findings for finding in FINDINGS])
    return Scenes(drawing.pixels[None], np.stack(planes)[None], shares(drawing)[None], present[None])


def _drawn(span: tuple[int, int], seed: int) -> Scenes:
    return join([one(draw(make_scene(seed, case, findings_of(seed, case)), SIZE)) for case in range(*span)])


def join(parts: Sequence[Scenes]) -> Scenes:
    """Return several sets as one."""
    return Scenes(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.masks for part in parts]),
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.present for part in parts]),
    )
