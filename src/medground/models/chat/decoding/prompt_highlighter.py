"""Prompt Highlighter (Zhang et al., CVPR 2024, arXiv 2312.04302): favour a region, and contrast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from medground.errors import ModelError
from medground.models.chat.decoding.base import Branch, Prompt
from medground.models.chat.decoding.contrast import contrast
from medground.models.common.highlight import Highlight, Strength


class PromptHighlighter:
    """Biases the language model's attention on the region's tokens up in one pass and down in the other.

    Args:
        weight: odds of a highlighted key in the answering pass: ``ln weight`` is added; in the other pass
            ``2 + ln weight`` is taken away.
        scale: ``s`` of ``s (c - u) + u``; 1.3 is a contrast of 0.3.
        perturb: factor of the highlighted input embeddings in the other pass.
    """

    needs_region: ClassVar[bool] = True

    def __init__(self, *, weight: float = 2.0, scale: float = 1.3, perturb: float = 0.01) -> None:
        self.strength, self.scale, self.perturb = Strength(weight, "weight"), scale, perturb

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the favouring pass and the suppressing one."""
        if prompt.marks is None:
            raise ModelError("Prompt Highlighter highlights a region, and none was located", where="decoding")
        marks = prompt.spread(prompt.marks)
        up, down = self.strength.bias, -(2 + math.log(self.strength.value))
        weaker = 1 - (1 - self.perturb) * marks
        return (
            Branch(prompt.pixels, Highlight(language=marks * up)),
            Branch(prompt.pixels, Highlight(language=marks * down), scale=weaker),
        )

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:  # noqa: ARG002 - every step is alike
        """Return ``s (c - u) + u`` of log-probabilities."""
        return contrast(logits[0], logits[1], self.scale - 1)

    def record(self) -> dict[str, Any]:
        """Return its parameters."""
        return {
            "name": "prompt_highlighter",
            "strength": self.strength.record(),
            "scale": self.scale,
            "perturb": self.perturb,
        }
