"""The pair of GridVQA-X, trained one network at a time: what the benchmark offers by its door ``train``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from medground.worlds.gridvqa.generate import Variant


def train_one(*, out: Path, variant: Variant = "pure", edition: Literal["second", "first"] = "second") -> str:
    """Train one network of the pair from scratch.

    Args:
        out: the .safetensors file; its accuracy tables go beside it.
        variant: which of the pair.
        edition: modules (second), or a transformer (first).
    """
    from medground.training import gridvqa, gridvqa_second

    train = gridvqa_second.train if edition == "second" else gridvqa.train
    train(variant, out)
    return str(out)
