"""Golden inputs through the shipped class itself: its constructor, ``predict`` and ``match``, as a run calls them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from medground.imaging.geometry import Geometry
from medground.models.base import Prepared
from medground.models.checkpoints import Weights
from medground.models.common.adapter import Parts
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.text import Prompts
from medground.verification.cases import Array


class _Tokens:
    """Stands for a tokenizer: a text is the number of a row of golden token ids."""

    def __init__(self, ids: Tensor) -> None:
        self.ids, self.length = ids, ids.shape[1]

    def __call__(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        rows = self.ids[[int(text) for text in texts]]
        return rows, torch.ones_like(rows)

    def alike(self, texts: Sequence[str]) -> list[int]:
        """Return the place of each text: golden rows are no copies of one another."""
        return list(range(len(texts)))

    def describe(self) -> dict[str, Any]:
        """Say that it is none."""
        return {"golden": True}


def shipped_outputs(name: str, network: nn.Module, pixels: Tensor, ids: Tensor, **options: Any) -> dict[str, Array]:
    """Return scores, maps and raw agreement as the shipped class of a model gives them.

    Args:
        name: of the model, as a run file names it.
        network: with stand-in weights in place.
        pixels: ``(N, 3, side, side)``, prepared.
        ids: ``(K, T)`` token ids, one row a finding.
        options: of the model's constructor.
    """
    side, findings = int(pixels.shape[-1]), [str(row) for row in range(len(ids))]
    preprocess = Preprocess("center_crop", side, "bicubic", CLIP_MEAN, CLIP_STD)
    tokens: Any = _Tokens(ids)
    parts = Parts(network, Weights({}, "", "golden"), preprocess, Prompts("{label}"), tokens)
    module = import_module(f"medground.models.radiology.{name}")
    cls = next(value for value in vars(module).values() if isinstance(value, type) and vars(value).get("name") == name)
    proven: type[Any] = type("Proven", (cls,), {"assemble": lambda _: parts})
    model = proven(checkpoint=None, device="cpu", **options)
    images = [
        Prepared(str(i), None, (side, side), np.asarray(one), Geometry.squash((side, side), (side, side)))
        for i, one in enumerate(pixels)
    ]
    said = model.predict(images, findings)
    matched = model.match(images, [findings] * len(images))
    return {"scores": said.scores, "maps": np.asarray(said.saliency), "scaled": matched.raw * matched.scale}
