"""``medground build gridvqa_x``: scenes and questions in a folder of the published layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from medground.worlds.gridvqa import build as drawing
from medground.worlds.gridvqa.generate import Confusers, Edition, Variant
from medground.worlds.gridvqa.shapley import Players
from medground.worlds.gridvqa.world import Only

Preset = Literal["paper", "both-densities", "six", "eight"]


def build(
    out: Path,
    *,
    preset: Preset = "paper",
    variant: Variant = "pure",
    per_bucket: int | None = None,
    confusers: Confusers = "strict",
    edition: Edition = "second",
    depths: tuple[int, ...] = (),
    types: tuple[str, ...] = (),
    forms: tuple[str, ...] = (),
    values: Players | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Path:
    """Draw scenes and questions with causal ground truth, for images and words.

    Args:
        out: a folder that is new or empty.
        preset: densities and grid; ``paper`` is the published validation set.
        variant: ``pure``, or ``spurious``, in which the target's words give the answer away.
        per_bucket: scenes of each kind; by default the preset's.
        confusers: ``strict`` as the proof asks, or as ``released``.
        edition: ``second``, or ``first`` for the scenes of earlier releases.
        depths: 1, 2, 3; by default all, as of the next two.
        types: A, SO, CO, M, CMP.
        forms: count, exists, compare.
        values: exact explanations in true_values.jsonl, over words, phrases or objects; by default none.
        seed: of every scene.
        workers: processes.

    Raises:
        ConfigError: the folder is not empty, or a number makes no sense.
    """
    only = Only(tuple(depths), tuple(types), tuple(forms))
    given = {
        "variant": variant,
        "confusers": confusers,
        "edition": edition,
        "only": only,
        "values": values,
        "seed": seed,
    }
    chosen: dict[str, Any] = drawing.PRESETS[preset] | given
    if per_bucket is not None:
        chosen["per_bucket"] = per_bucket
    return drawing.build(out, drawing.Plan(**chosen), workers=workers)
