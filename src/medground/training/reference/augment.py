"""Augmentation: pictures and masks move together; grey values, a blank square, a flip."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.models.networks.reference.network import FINE, normalise
from medground.models.networks.reference.picture import SIZE
from medground.training.reference.examples import MASK, Examples


@dataclass(frozen=True)
class Batch:
    """What one step sees.

    Attributes:
        images: ``(N, 1, 224, 224)``, normalised.
        labels: ``(N, C)``: 1, 0 or -1.
        maps: ``(P, 28, 28)``: one map a pair with a mask, its maximum 1.
        pairs: ``(P, 2)``: picture and concept of every map.
    """

    images: Tensor
    labels: Tensor
    maps: Tensor
    pairs: Tensor


def _motion(rng: np.random.Generator, count: int) -> tuple[Tensor, NDArray[np.bool_]]:
    """Return affine matrices ``(N, 2, 3)`` in the coordinates of ``grid_sample``, and which are mirrored."""
    turn = np.deg2rad(rng.uniform(-7, 7, count))
    scale, aspect = rng.uniform(0.85, 1.15, count), np.exp(rng.uniform(-0.07, 0.07, count))
    mirrored = rng.random(count) < 0.3
    sx, sy = scale * aspect * np.where(mirrored, -1, 1), scale / aspect
    shift = rng.uniform(-0.10, 0.10, (count, 2))
    cos, sin = np.cos(turn), np.sin(turn)
    rows = np.stack([sx * cos, -sy * sin, shift[:, 0], sx * sin, sy * cos, shift[:, 1]], axis=1)
    return torch.from_numpy(rows.reshape(count, 2, 3).astype(np.float32)), mirrored


def batch(
    examples: Examples, index: NDArray[np.integer], sided: NDArray[np.bool_], rng: np.random.Generator | None
) -> Batch:
    """Return one batch.

    Args:
        examples: to draw from.
        index: which.
        sided: ``(C,)``: concepts whose name says a side; they are left out of mirrored pictures.
        rng: of the augmentation; None: none.
    """
    grey = torch.from_numpy(examples.images[index]).unsqueeze(1).float() / 255
    labels = examples.labels[index].copy()
    pictures, concepts = np.nonzero((examples.rows[index] >= 0) & (labels == 1))
    covered = torch.from_numpy(examples.masks[examples.rows[index][pictures, concepts]]).float() / 255
    if rng is not None:
        theta, mirrored = _motion(rng, len(index))
        grid = F.affine_grid(theta, [len(index), 1, SIZE, SIZE], align_corners=False)
        grey = F.grid_sample(grey, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        grey = _tone(grey, rng)
        small = F.affine_grid(theta[pictures], [len(pictures), 1, MASK, MASK], align_corners=False)
        covered = F.grid_sample(covered.unsqueeze(1), small, align_corners=False).squeeze(1)
        labels[np.ix_(mirrored, sided)] = -1
    maps = F.avg_pool2d(covered, MASK // FINE)
    most = maps.amax((1, 2))
    # A mask that the motion pushed out of the picture says nothing; a side's name in a mirrored one neither.
    keep = (most > 0.02) & torch.from_numpy(labels[pictures, concepts] == 1)
    pairs = torch.from_numpy(np.stack([pictures, concepts], axis=1))
    # A nodule covers a part of its cell: without this division it would be taught as mostly absent.
    maps = maps[keep] / most[keep, None, None]
    return Batch(normalise(grey), torch.from_numpy(labels), maps, pairs[keep])


def _tone(grey: Tensor, rng: np.random.Generator) -> Tensor:
    count = len(grey)

    def column(low: float, high: float) -> Tensor:
        return torch.from_numpy(rng.uniform(low, high, (count, 1, 1, 1)).astype(np.float32))

    grey = grey.clamp(0, 1) ** torch.exp(column(-0.35, 0.35))
    grey = (grey - 0.5) * column(0.75, 1.25) + 0.5 + column(-0.12, 0.12)
    noise = torch.from_numpy(rng.standard_normal(grey.shape, np.float32))
    grey = (grey + noise * column(0.0, 0.04)).clamp(0, 1)
    side = int(math.sqrt(0.18) * SIZE * 0.42)
    for picture in np.nonzero(rng.random(count) < 0.25)[0]:
        top, left = rng.integers(0, SIZE - side, 2)
        grey[picture, :, top : top + side, left : left + side] = 0.5
    return grey
