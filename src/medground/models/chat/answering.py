"""What the models around an :class:`Engine` share: replies, choices, places and looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, Reply
from medground.models.chat.backbone import Backbone
from medground.models.chat.engine import Engine, Mask
from medground.models.chat.looks import How, Look
from medground.models.chat.regions import region_masks
from medground.models.common.runtime import Runtime


class Answering:
    """A chat model that is an engine around a backbone; who inherits it sets the three attributes.

    Attributes:
        backbone: words, pictures and masks.
        engine: the decoding and its switches.
    """

    backbone: Backbone
    engine: Engine
    _runtime: Runtime

    def seen_patients(self, dataset: str) -> frozenset[str]:
        """Return the patients of a dataset whose pictures the vision tower has seen; a folder's tells none."""
        card = getattr(self.backbone, "card", {})
        return frozenset(card.get("seen_patients", {}).get(dataset, ()))

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Return one reply a conversation; one without a picture, or with words never met, is a refusal."""
        with self._runtime.inference():
            return self.engine.reply(conversations, options)

    def reply_highlighted(
        self,
        conversations: Sequence[Sequence[Message]],
        regions: Sequence[Mask | None],
        options: GenerationOptions | None = None,
    ) -> Sequence[Reply]:
        """Return replies with given regions (a truth, or a control) in place of those that it would locate.

        Args:
            conversations: each with one picture.
            regions: masks ``(height, width)`` on the pictures.
            options: None: greedy.
        """
        with self._runtime.inference():
            return self.engine.reply(conversations, options, regions)

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> Sequence[NDArray[np.floating[Any]]]:
        """Return log-probabilities of choices as the whole answer, one array ``(K,)`` a conversation."""
        with self._runtime.inference():
            return self.engine.choose(conversations, choices)

    def located(self, conversations: Sequence[Sequence[Message]]) -> list[Mask | None]:
        """Return where it says that the answer lies; see :class:`medground.models.chat.looks.Locating`."""
        with self._runtime.inference():
            return self.engine.located(conversations)

    def masks(self, image: Radiograph) -> dict[str, Mask]:
        """Return region -> where the model says that it is, ``(height, width)``, for ten regions.

        Raises:
            ModelError: the picture cannot be asked about, or the backbone has no ``<SEG>``.
        """
        with self._runtime.inference():
            return region_masks(self.backbone, self.engine, image)

    def look(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[tuple[str, str]], how: How
    ) -> list[Look]:
        """Return its attention before it answers; see :class:`medground.models.chat.looks.Looking`.

        Raises:
            ModelError: gradients are asked for, or the conversation is one that it declines.
        """
        del choices
        with self._runtime.inference():
            return self.engine.looks(conversations, how)
