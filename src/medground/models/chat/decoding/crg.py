"""Contrastive region guidance (Wan et al., ECCV 2024, arXiv 2403.02325): against the picture with the region black."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from medground.errors import ModelError
from medground.models.chat.decoding.base import Branch, Prompt
from medground.models.chat.decoding.contrast import contrast


class Crg:
    """Contrasts with the picture whose region is blacked out, on raw logits and without a cut.

    Args:
        alpha: weight of the contrast.
    """

    needs_region: ClassVar[bool] = True

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the pass with the whole picture and that without the region."""
        if prompt.region is None:
            raise ModelError("CRG blacks out a region, and none was located", where="decoding crg")
        black = prompt.pixels.new_tensor(prompt.black)[:, None, None]
        return Branch(prompt.pixels), Branch(torch.where(prompt.region[:, None].bool(), black, prompt.pixels))

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:  # noqa: ARG002 - every step is alike
        """Return ``(1 + alpha) l - alpha l'``."""
        return contrast(logits[0], logits[1], self.alpha, log_space=False)

    def record(self) -> dict[str, Any]:
        """Return its parameters."""
        return {"name": "crg", "alpha": self.alpha}
