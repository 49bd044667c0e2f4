"""The small chat model: a LLaVA of two million parameters that ships with its weights, to try medground on.

It answers questions about phantoms in some hundred words, says where a region is and whether a caption fits, and can be
highlighted. It is an instrument, not a clinical model. ``docs/small_chat_model.md`` says how it was trained and what
was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.identity import fingerprint_of
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, MatchScores, Message, ModelInfo, Reply
from medground.models.chat import captions as reading
from medground.models.chat.answering import Answering
from medground.models.chat.decoding import decoding_of
from medground.models.chat.engine import Engine
from medground.models.common.runtime import Runtime
from medground.models.networks.chat import tokens, weights
from medground.models.networks.chat.backbone import SmallBackbone

SEEN: Mapping[str, str] = {
    "phantom": "same drawing, other seed",
    "nih_chestxray14": "its vision tower starts from the reference model: labels and boxes of half of the patients",
    "rsna_pneumonia": "by way of the reference model: some patients, labels and boxes",
    "siim_pneumothorax": "by way of the reference model: some patients, labels and boxes",
    "chestx_det": "by way of the reference model: some patients, labels and boxes",
}


class SmallChat(Answering):
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
        {"reply", "choose", "match", "pictures", "attention_bias", "masks", "look"}
    )
    info: ClassVar[ModelInfo] = ModelInfo(
        title="medground small chat model",
        kind="supervised",
        licence="Apache-2.0, code and weights; trained on drawn pictures, from a vision tower that saw ChestX-ray14",
        citation="none: it comes with this version of medground",
        obtain="ships with medground; `medground train chat` makes it anew",
        seen=SEEN,
    )
    backbone: SmallBackbone
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

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return log odds that every sentence of a caption is true; see :mod:`medground.models.chat.captions`.

        Args:
            images: N pictures.
            captions: K captions a picture.
        """
        scores = [[reading.logit(p) for p in self._fits(i, c)] for i, c in zip(images, captions, strict=True)]
        return MatchScores(np.array(scores, np.float64), 1.0, "itm")

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> Sequence[NDArray[np.floating[Any]]]:
        """Return log-probabilities of choices as the whole answer, one array ``(K,)`` a conversation.

        Where the last turn offers captions (``Caption A: ...``) and these are the choices, each caption is read by
        itself.
        """
        out = list(super().choose(conversations, choices))
        for row, (conversation, named) in enumerate(zip(conversations, choices, strict=True)):
            likely = self._offered(conversation)
            if likely and set(named) <= set(likely):
                out[row] = np.array([likely[name] for name in named])
        return out

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Return one reply a conversation; one without a picture, or with words never met, is a refusal.

        Where the last turn offers captions, the reply names the one that fits best; of captions that come out equal it
        names none.
        """
        replies = list(super().reply(conversations, options))
        for row, conversation in enumerate(conversations):
            likely = self._offered(conversation)
            if likely and max(likely.values()) > min(likely.values()):
                replies[row] = Reply(max(likely, key=lambda name: likely[name]), finish="stop")
        return replies

    def _offered(self, conversation: Sequence[Message]) -> dict[str, float]:
        """Return the captions that a conversation offers with their log-probabilities, or nothing."""
        offered, images = reading.offered(conversation), [i for m in conversation for i in m.images]
        if not offered or len(images) != 1:
            return {}
        return reading.shares(dict(zip(offered, self._fits(images[0], list(offered.values())), strict=True)))

    def _fits(self, image: Radiograph, captions: Sequence[str]) -> list[float]:
        """Return the log-probability of each caption that all its sentences are true."""
        claims = self.backbone.network.size == tokens.SIZE
        parts = [reading.questions(caption, claims=claims) for caption in captions]
        texts = list(dict.fromkeys(one.text for part in parts for one in part))
        with self._runtime.inference():
            odds = self.engine.odds([(Message("user", text, (image,)),) for text in texts])
        return [reading.log_probability(part, dict(zip(texts, odds, strict=True))) for part in parts]

    def fingerprint(self) -> str:
        """A hash over weights, switches, preprocessing and precision."""
        return fingerprint_of(
            self.name, self.backbone.sha256, self.engine.record(), "squash-224", self._runtime.describe()
        )
