"""One row a scene and method: where attribution lies, or how much synergy there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.gridvqa_x.protocol import CAUSES, Protocol
from medground.benchmarks.gridvqa_x.specs import FIGURES
from medground.explainers.base import Attribution
from medground.metrics.relevance import overlap, relevance_mass, relevance_rank
from medground.worlds.gridvqa.checker import Truth, check
from medground.worlds.gridvqa.masks import shortcut_text_mask, text_mask, vision_mask, word_roles
from medground.worlds.gridvqa.world import Scene

MODEL = "model"
"""Method of the rows that hold the answers themselves."""

NO_ANNOTATION = "nothing is annotated"

SCHEMA = pl.Schema(
    {
        "scene_id": pl.String(),
        "variant": pl.String(),
        "depth": pl.Int8(),
        "type": pl.String(),
        "form": pl.String(),
        "density": pl.Float64(),
        "method": pl.String(),
        "scope": pl.String(),
        "question": pl.String(),
        "answer": pl.String(),
        "said": pl.String(),
        "right": pl.Boolean(),
        "target": pl.String(),
        **dict.fromkeys((figure.column for figure in FIGURES), pl.Float64()),
        "image_flat": pl.Boolean(),
        "text_flat": pl.Boolean(),
        "score": pl.Float64(),
        "pool_score": pl.Float64(),
        "calls": pl.Int64(),
        "image_map": pl.List(pl.Float32()),
        "text_map": pl.List(pl.Float32()),
        "extra": pl.String(),
        "scene": pl.String(),
        "reason": pl.String(),
    }
)
"""Shares are in 0..1, masks are causal unless a name says ``shortcut`` (everything that fits a target, the target's
words) or ``released`` (the published text mask). ``anchors``, ``lures`` and ``directions`` are shares of the mass;
``area`` is the share of the causal mask: the mass that an even map would put there."""


def blank(scene: Scene, method: str, scope: str) -> dict[str, Any]:
    """Return a row with everything about the scene and nothing else."""
    bucket = scene.bucket
    known = {
        "scene_id": scene.scene_id,
        "variant": scene.variant,
        "depth": bucket.depth,
        "type": bucket.type,
        "form": bucket.form,
        "density": scene.density,
        "method": method,
        "scope": scope,
        "question": scene.question.text,
        "answer": str(scene.answer),
    }
    return dict.fromkeys(SCHEMA.names()) | known


def local_row(
    scene: Scene, method: str, attribution: Attribution, answers: Mapping[str, Any], protocol: Protocol = CAUSES
) -> dict[str, Any]:
    """Return what an attribution says about a scene.

    Args:
        scene: with its objects.
        method: name of the explainer.
        attribution: maps of cells or pixels, and of words.
        answers: ``said``, ``right`` and ``target`` of the row.
        protocol: how the attribution is read; maps are kept as the explainer gave them.
    """
    truth = check(scene.things, scene.question, scene.grid)
    row: dict[str, Any] = (
        blank(scene, method, "local") | dict(answers) | {"calls": attribution.calls, "reason": attribution.reason}
    )
    figures = {name: value for name, value in attribution.extras.items() if isinstance(value, float)}
    row["extra"] = json.dumps(figures, sort_keys=True) if figures else None
    image, text = (None if m is None else protocol.counted(m) for m in (attribution.image, attribution.text))
    if attribution.image is not None and image is not None:
        row["image_map"] = by_cell(attribution.image, scene.grid).ravel().tolist()
        row["image_flat"] = is_flat(image)
    if attribution.text is not None and text is not None:
        row["text_map"] = attribution.text.tolist()
        row["text_flat"] = is_flat(text)
    if not truth.causal:
        return row | {"reason": NO_ANNOTATION}
    if image is not None:
        row |= _image_figures(scene, truth, image, protocol)
    if text is not None:
        row |= _text_figures(scene, text, protocol)
    return row


def _image_figures(scene: Scene, truth: Truth, values: NDArray[Any], protocol: Protocol) -> dict[str, float | None]:
    def mask(cells: frozenset[tuple[int, int]]) -> NDArray[np.bool_]:
        return vision_mask(cells, scene.grid, values.shape[0] // scene.grid)

    causal, shortcut = mask(truth.causal), mask(truth.shortcut)
    anchors = frozenset(anchor for clause in truth.clauses for anchor in clause.anchors)
    return {
        "image_mass": relevance_mass(values, causal),
        "image_rank": relevance_rank(values, causal).value,
        "image_iou": overlap(values, causal, protocol.binarise),
        "image_area": float(causal.mean()),
        # Where nothing fits a target, no cell is what a counter of words goes by.
        "image_mass_shortcut": relevance_mass(values, shortcut) if shortcut.any() else None,
        "image_iou_shortcut": overlap(values, shortcut, protocol.binarise) if shortcut.any() else None,
        "image_anchors": relevance_mass(values, mask(anchors)),
        "image_lures": relevance_mass(values, mask(truth.shortcut - truth.causal)),
    }


def _text_figures(scene: Scene, values: NDArray[Any], protocol: Protocol) -> dict[str, float]:
    text = scene.question.text
    causal, released, shortcut = (
        text_mask(text, protocol.words),
        text_mask(text, "released"),
        shortcut_text_mask(text),
    )
    roles = np.array(word_roles(text))
    return {
        "text_mass": relevance_mass(values, causal),
        "text_rank": relevance_rank(values, causal).value,
        "text_iou": overlap(values, causal, protocol.binarise),
        "text_area": float(causal.mean()),
        "text_mass_released": relevance_mass(values, released),
        "text_iou_released": overlap(values, released, protocol.binarise),
        "text_mass_shortcut": relevance_mass(values, shortcut),
        "text_iou_shortcut": overlap(values, shortcut, protocol.binarise),
        "text_directions": relevance_mass(values, roles == "direction"),
        "text_anchors": relevance_mass(values, roles == "anchor"),
    }


def by_cell(values: NDArray[Any], grid: int) -> NDArray[np.float64]:
    """Return a map of cells; one of pixels is summed within cells."""
    if values.shape == (grid, grid):
        return np.asarray(values, np.float64)
    side = values.shape[0] // grid
    summed: NDArray[np.float64] = values.reshape(grid, side, grid, side).sum((1, 3), dtype=np.float64)
    return summed


def is_flat(values: NDArray[Any]) -> bool:
    """Return whether a map says nothing: all of one value."""
    return bool(np.ptp(values) == 0)
