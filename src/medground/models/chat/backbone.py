"""What an engine needs of a LLaVA-type model: words to ids and back, pictures to pixels, ``<SEG>`` to a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import Message
from medground.models.chat.decoding.runner import Runner


@dataclass(frozen=True)
class Encoded:
    """A conversation as the network takes it.

    Attributes:
        ids: with one place for every image token.
        pixels: ``(C, H, W)``.
        image: the picture itself.
    """

    ids: list[int]
    pixels: Tensor
    image: Radiograph


@dataclass(frozen=True)
class Declined:
    """Why a conversation is not answered."""

    reason: str


class Backbone(Protocol):
    """A LLaVA-type model with a mask head.

    Attributes:
        runner: of its forward passes.
        pad: id of the padding.
        ends: ids that end an answer.
        seg: id of ``<SEG>``, or None where the model has none.
        black: value of a black pixel, one a channel.
    """

    runner: Runner
    pad: int
    ends: tuple[int, ...]
    seg: int | None
    black: tuple[float, ...]

    def encode(self, conversation: Sequence[Message], *, locate: bool) -> Encoded | Declined:
        """Return a conversation as ids; ``locate`` asks for the place before the answer."""

    def words(self, text: str) -> list[int]:
        """Return the ids of a text that goes on with an answer."""

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""

    def masks(self, hidden: Tensor, encoded: Sequence[Encoded]) -> list[NDArray[np.bool_]]:
        """Return masks in the pictures' own pixels from hidden states of ``<SEG>``, ``(M, D)``."""

    def marks(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the image tokens that a mask of the original picture highlights, row by row."""

    def geometry(self, size: tuple[int, int]) -> Geometry:
        """Return how the network's frame lies on a picture of a size ``(width, height)``."""

    def onto_input(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the original picture in the network's frame, ``(H, W)``."""
