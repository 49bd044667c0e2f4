"""Does a model know where the regions are? Its masks beside the true ones, once a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from medground.benchmarks.heal_medvqa.cells import Whose
from medground.benchmarks.heal_medvqa.masks import Mask
from medground.benchmarks.requests import Answer
from medground.benchmarks.results import Cell
from medground.imaging import rle
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean

PART: Final = "masks"
"""Part of the rows that hold masks."""

_PREFIX = "mask/"

Overlap = tuple[int, int, int]
"""Pixels of both masks, of the model's, of the true one."""


def coded(answer: Answer) -> Answer:
    """Return an answer with its masks as run lengths, which are a hundredth of the pixels."""
    arrays = {name: np.asarray(array) for name, array in answer.arrays.items()}
    shapes = {array.shape for array in arrays.values()}
    size = next(iter(shapes))[::-1] if len(shapes) == 1 else (0, 0)
    runs = {name: rle.counts_from_mask(array.astype(np.bool_)) for name, array in arrays.items()}
    return Answer({"size": [int(side) for side in size]}, runs, answer.outcome, answer.reason)


def overlaps(answer: Answer, true: Mapping[str, Mask]) -> dict[str, Overlap]:
    """Return anatomy -> how a model's mask lies on the true one; anatomies that either lacks are left out.

    Args:
        answer: from :func:`coded`.
        true: anatomy -> ``(height, width)``; all of one size.
    """
    width, height = answer.values.get("size", (0, 0))
    overlaps: dict[str, Overlap] = {}
    for name, runs in answer.arrays.items():
        mask = true.get(name.removeprefix(_PREFIX))
        if mask is None or not mask.any() or mask.shape != (height, width):
            continue
        drawn = rle.mask_from_counts(runs, (int(width), int(height)))
        overlaps[name.removeprefix(_PREFIX)] = (int((drawn & mask).sum()), int(drawn.sum()), int(mask.sum()))
    return overlaps


def dice(overlap: Overlap) -> float:
    """Return the Dice coefficient of two masks, of which the true one is not empty.

    >>> dice((2, 4, 4))
    0.5
    """
    both, drawn, true = overlap
    return 2 * both / (drawn + true)


def iou(overlap: Overlap) -> float:
    """Return the intersection over the union.

    >>> round(iou((2, 4, 4)), 3)
    0.333
    """
    both, drawn, true = overlap
    return both / (drawn + true - both)


def mask_cells(whose: Whose, rows: pl.DataFrame) -> list[Cell]:
    """Return mean Dice and IoU over pictures, and by anatomy; nothing where no masks were asked for."""
    kept = rows.filter(pl.col("part") == PART).to_dicts()
    if not kept:
        return []
    failed = sum(row["answer"] == "failed" for row in kept)
    scored = [row for row in kept if row["overlap"] is not None]
    cells = []
    for metric, measure in (("mask_dice", dice), ("mask_iou", iou)):
        values = [measure((row["overlap"], row["predicted"], row["outlined"])) for row in scored]
        cells.append(_cell(whose, metric, scored, values, failed=failed))
        for anatomy in dict.fromkeys(row["asked_anatomy"] for row in scored):
            own = [n for n, row in enumerate(scored) if row["asked_anatomy"] == anatomy]
            part = [scored[n] for n in own], [values[n] for n in own]
            cells.append(_cell(whose, metric, *part, scope="anatomy", group=anatomy))
    return cells


def _cell(whose: Whose, metric: str, rows: Sequence[Mapping[str, Any]], values: Sequence[float], **more: Any) -> Cell:
    estimate = estimate_mean(np.asarray(values, dtype=float), clusters([row["cluster"] for row in rows]))
    return whose.cell(metric, estimate, **more)
