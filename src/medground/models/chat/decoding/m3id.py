"""M3ID (Favero et al., CVPR 2024, arXiv 2403.14003): against the same words without a picture, more every token.

``l + 1[max p < threshold] (1 - g) / g (l - l')`` with ``g = exp(-rate t)``, ``l'`` the logits without a picture and
``t`` the number of the new token, from 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from medground.models.chat.decoding.base import Branch, Prompt
from medground.models.chat.decoding.contrast import contrast


def prior_weight(rate: float, step: int) -> float:
    """Return ``(1 - g) / g`` for the new token number ``step``, from 0: how far words forget the picture."""
    return math.expm1(rate * (step + 1))


class M3id:
    """Contrasts with the text-only pass where the model is unsure.

    Args:
        rate: how fast a text forgets its picture (lambda).
        threshold: a token that is likelier than this is left alone; 1: the contrast always applies.
    """

    needs_region: ClassVar[bool] = False

    def __init__(self, *, rate: float = 0.02, threshold: float = 0.9) -> None:
        self.rate, self.threshold = rate, threshold

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the pass with the picture and that without."""
        return Branch(prompt.pixels), Branch(prompt.pixels, picture=False)

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:
        """Return log-probabilities, corrected where none of them is above the threshold."""
        plain = logits[0].log_softmax(-1)
        sure = plain.amax(-1, keepdim=True).exp() > self.threshold
        return torch.where(sure, plain, contrast(logits[0], logits[1], prior_weight(self.rate, step)))

    def record(self) -> dict[str, Any]:
        """Return its parameters."""
        return {"name": "m3id", "rate": self.rate, "threshold": self.threshold}
