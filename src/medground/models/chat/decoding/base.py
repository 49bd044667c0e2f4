"""What a decoding is, and the plain one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor

from medground.models.common.highlight import NO_HIGHLIGHT, Highlight


@dataclass(frozen=True)
class Prompt:
    """A batch of prompts about one picture each.

    Attributes:
        ids: ``(N, T)``, padded on the left, with one place for every image token.
        mask: ``(N, T)``, 1 where there is a token.
        pixels: ``(N, C, H, W)`` as the vision tower takes them.
        black: value of a black pixel, one a channel.
        marks: highlighted patches ``(N, P)`` of 0 and 1, row by row, or None.
        region: highlighted pixels ``(N, H, W)``, or None.
        image_token: id of an image token's place.
    """

    ids: Tensor
    mask: Tensor
    pixels: Tensor
    image_token: int
    black: tuple[float, ...] = (0.0,)
    marks: Tensor | None = None
    region: Tensor | None = None

    @property
    def image_places(self) -> Tensor:
        """Where image tokens are, bool ``(N, T)``."""
        return self.ids == self.image_token

    def spread(self, marks: Tensor) -> Tensor:
        """Return patch values ``(N, P)`` at their places in the sequence, 0 elsewhere: ``(N, T)``.

        Towers whose class token is kept have one place more than patches, the first; it gets 0.
        """
        out = marks.new_zeros(self.ids.shape)
        surplus = int(self.image_places[0].sum()) - marks.shape[1]
        for row, places in enumerate(self.image_places):
            out[row, places.nonzero()[surplus:, 0]] = marks[row]
        return out


@dataclass(frozen=True)
class Branch:
    """One way of running the model on the same tokens.

    Attributes:
        pixels: the picture, ``(N, C, H, W)``.
        highlight: biases of the attention; the vision part is given by patch.
        scale: factors of the input embeddings, ``(N, T)``, or None.
        picture: whether image tokens are seen at all.
    """

    pixels: Tensor
    highlight: Highlight = NO_HIGHLIGHT
    scale: Tensor | None = None
    picture: bool = True


class Decoding(Protocol):
    """Says which passes are needed, and what the next token's scores are."""

    needs_region: ClassVar[bool]

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the passes; the first is the one that answers, the others are held against it."""

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:
        """Return the scores of the next token ``(N, V)`` from the logits of every pass.

        Args:
            logits: one ``(N, V)`` a pass; a barred token is minus infinity in all of them.
            step: number of the new token, from 0.
        """

    def record(self) -> dict[str, Any]:
        """Return what a run's record says about it."""


class Plain:
    """The model's own logits."""

    needs_region: ClassVar[bool] = False

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the one pass."""
        return (Branch(prompt.pixels),)

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:  # noqa: ARG002 - every step is alike
        """Return the logits."""
        return logits[0]

    def record(self) -> dict[str, Any]:
        """Return its name."""
        return {"name": "plain"}
