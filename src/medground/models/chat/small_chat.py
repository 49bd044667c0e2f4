"""The small chat model: a LLaVA of two million parameters that ships with its weights, to try medground on.

It answers questions about phantoms in some seventy words, says where a region is, and can be highlighted. It is an
instrument, not a clinical model. ``docs/small_chat_model.md`` says how it was trained and what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.identity import fingerprint_of
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply
from medground.models.chat.decoding import decoding_of
from medground.models.chat.engine import Engine, Mask
from medground.models.chat.looks import How, Look
from medground.models.chat.regions import region_masks
from medground.models.common.runtime import Runtime
from medground.models.networks.chat import weights
from medground.models.networks.chat.backbone import SmallBackbone

SEEN: Mapping[str, str] = {
    "phantom": "same drawing, other seed",
    "nih_chestxray14": "its vision tower starts from the reference model: labels and boxes of half of the patients",
    "rsna_pneumonia": "by way of the reference model: some patients, labels and boxes",
    "siim_pneumothorax": "by way of the reference model: some patients, labels and boxes",
    "chestx_det": "by way of the reference model: some patients, labels and boxes",
}


class SmallChat:
    """Answers questions about one picture in the words of the phantoms.

    Args:
        checkpoint: weights made by ``medground train chat``; by default those that ship with medground.
        decoding: how the next token is picked: ``{name: plain}``, ``vcd``, ``crg``, ``m3id``, ``prompt_highlighter`` or
            ``loba``, each with its parameters.
        locate: whether an answer begins with the place of what was asked about.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        deterministic: only deterministic kernels.
    """

    name: ClassVar[str] = "small_chat"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"reply", "choose", "pictures", "attention_bias", "masks", "look"}
    )
    info: ClassVar[ModelInfo] = ModelInfo(
        title="medground small chat model",
        kind="supervised",
        licence="Apache-2.0, code and weights; trained on drawn pictures, from a vision tower that saw ChestX-ray14",
        citation="none: it comes with this version of medground",
        obtain="ships with medground; `medground train chat` makes it anew",
        seen=SEEN,
    )
    _shipped: ClassVar[Path] = weights.SHIPPED

    def __init__(
        self,
        *,
        checkpoint: Path | None = None,
        decoding: dict[str, Any] | None = None,
        locate: bool = False,
        device: str = "auto",
        deterministic: bool = False,
    ) -> None:
        self._runtime = Runtime(device, "float32", deterministic=deterministic)
        self.backbone = SmallBackbone(checkpoint or self._shipped, self._runtime.device)
        self.engine = Engine(self.backbone, decoding_of(decoding), grounded=locate)
        self.card = self.backbone.card

    def seen_patients(self, dataset: str) -> frozenset[str]:
        """Return the patients of a dataset whose pictures the vision tower has seen."""
        return frozenset(self.card.get("seen_patients", {}).get(dataset, ()))

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
        """Return replies with given regions in place of those that the model would locate.

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

    def masks(self, image: Radiograph) -> dict[str, Mask]:
        """Return region -> where the model says that it is, ``(height, width)``, for ten regions.

        Raises:
            ModelError: the picture cannot be asked about.
        """
        with self._runtime.inference():
            return region_masks(self.backbone, self.engine, image)

    def fingerprint(self) -> str:
        """A hash over weights, switches, preprocessing and precision."""
        return fingerprint_of(
            self.name, self.backbone.sha256, self.engine.record(), "squash-224", self._runtime.describe()
        )
