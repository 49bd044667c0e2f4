"""LobA's second pass (arXiv 2505.00744, equations 4 to 6): highlighted attention, contrasted with plain attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from medground.errors import ModelError
from medground.models.chat.decoding.base import Branch, Prompt
from medground.models.chat.decoding.contrast import contrast
from medground.models.common.highlight import Highlight, Reading, Strength


class LobaDecoding:
    """Highlights the located region in the vision tower and in the language model, and contrasts with the plain pass.

    Args:
        vision: beta of the vision tower; 0: no bias there.
        language: beta of the language model; 0: no bias there.
        reading: what beta is: ``additive`` (odds rise by e to the beta), or ``weight`` (odds rise by beta).
        alpha: weight of the contrast; 0: none.
    """

    needs_region: ClassVar[bool] = True

    def __init__(
        self, *, vision: float = 2.0, language: float = 2.0, reading: Reading = "additive", alpha: float = 0.3
    ) -> None:
        none = 1.0 if reading == "weight" else 0.0
        self.vision, self.language = Strength(vision or none, reading), Strength(language or none, reading)
        self.alpha = alpha

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the highlighted pass and the plain one; without a contrast, or without a bias, one pass."""
        plain = Branch(prompt.pixels)
        if prompt.marks is None:
            raise ModelError("LobA highlights a region, and none was located", where="decoding loba")
        vision = prompt.marks * self.vision.bias if self.vision.bias else None
        language = prompt.spread(prompt.marks) * self.language.bias if self.language.bias else None
        if vision is None and language is None:
            return (plain,)
        marked = Branch(prompt.pixels, Highlight(vision, language))
        return (marked, plain) if self.alpha else (marked,)

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:  # noqa: ARG002 - every step is alike
        """Return the contrasted log-probabilities."""
        return contrast(logits[0], logits[1], self.alpha) if len(logits) > 1 else logits[0]

    def record(self) -> dict[str, Any]:
        """Return the strengths with their readings, and alpha."""
        return {
            "name": "loba",
            "vision": self.vision.record(),
            "language": self.language.record(),
            "alpha": self.alpha,
        }
