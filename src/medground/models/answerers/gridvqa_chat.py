"""Any chat model asked about coloured shapes: the scene as a picture, the question in words, its likeliest answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.imaging.reading import Radiograph
from medground.models.base import Message, ModelInfo, capabilities_of, require
from medground.models.networks.gridvqa.analytic import ANSWERS, MOST, OTHER_FORM

Way = Literal["auto", "choose", "reply"]
COUNTS, DECISIONS = ANSWERS[: MOST + 1], ANSWERS[MOST + 1 :]
UNREAD = "unread"
"""The answer of a reply that holds none, or several: never right, and never one of the others."""

_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_READ = re.compile(rf"\b(?:\d+|{'|'.join(_NUMBERS)}|yes|no)\b")


class ChatAnswerer:
    """A chat model as a question answerer.

    A model that gives log-probabilities chooses among the answers of the question's form: counts to ``How many``, else
    yes and no. Any other replies in words, and its answer is the one number, or the one yes or no, that the reply
    holds; else it is ``unread``.

    Args:
        of: the chat model: ``{name: hf_chat, ...}`` or any other.
        way: ``choose`` by log-probabilities, ``reply`` in words, ``auto``: the first that it can.
        prompt: what is asked, with ``{question}`` in its place.
        side: pixels a side of the picture at least; pixels are repeated until it is reached.
    """

    name: ClassVar[str] = "gridvqa_chat"
    parts: ClassVar[Mapping[str, str]] = {"of": "model"}
    info: ClassVar[ModelInfo] = ModelInfo(
        title="chat model on coloured shapes", licence="the model's own", obtain="of: {name: hf_chat or api_chat, ...}"
    )
    answers: Sequence[str] = (*ANSWERS, UNREAD)

    def __init__(
        self,
        *,
        of: Any,
        way: Way = "auto",
        prompt: str = "{question} Answer with one number, or with yes or no.",
        side: int = 320,
    ) -> None:
        if "{question}" not in prompt:
            raise ConfigError("the prompt does not hold the question", where="prompt", expected="{question} in it")
        if side < 1:
            raise ConfigError("a picture has a side", where="side", expected="1 or more", got=side)
        self.of = of.build() if hasattr(of, "build") else of
        able = capabilities_of(self.of)
        self.way = ("choose" if "choose" in able else "reply") if way == "auto" else way
        require(self.of, [self.way, "pictures"] if "pictures" in able else [self.way], by="gridvqa_chat")
        self.prompt, self.side = prompt, side

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.float64]:
        """Return ``(N, 21)`` log-probabilities, low ones for the other form and for all but the answer of a reply."""
        talks = [
            [Message("user", self.prompt.format(question=text), (picture_of(image, self.side),))]
            for image, text in zip(images, questions, strict=True)
        ]
        return self._chosen(talks, questions) if self.way == "choose" else self._replied(talks, questions)

    def _chosen(self, talks: Sequence[list[Message]], questions: Sequence[str]) -> NDArray[np.float64]:
        choices = [list(form_of(text)) for text in questions]
        told = np.full((len(talks), len(self.answers)), OTHER_FORM)
        # One call takes choices of one number a conversation.
        for form in (COUNTS, DECISIONS):
            at = [i for i, own in enumerate(choices) if len(own) == len(form)]
            if at:
                rows = self.of.choose([talks[i] for i in at], [choices[i] for i in at])
                for i, row in zip(at, rows, strict=True):
                    told[i, [self.answers.index(choice) for choice in form]] = row
        return told

    def _replied(self, talks: Sequence[list[Message]], questions: Sequence[str]) -> NDArray[np.float64]:
        told = np.full((len(talks), len(self.answers)), OTHER_FORM)
        for i, (reply, text) in enumerate(zip(self.of.reply(talks), questions, strict=True)):
            answer = read_answer(reply.text, form_of(text)) if reply.outcome == "ok" else UNREAD
            told[i, self.answers.index(answer)] = 0.0
        return told

    def fingerprint(self) -> str:
        """A hash over the model's own, the prompt and the size of the picture."""
        told = repr((self.of.fingerprint(), self.way, self.prompt, self.side))
        return f"gridvqa-chat-1-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def form_of(question: str) -> Sequence[str]:
    """Return the answers that fit a question: counts to "How many", else yes and no."""
    return COUNTS if question.lower().startswith("how many") else DECISIONS


def read_answer(reply: str, form: Sequence[str]) -> str:
    """Return the one answer of a form that a reply holds, else ``unread``.

    Example:
        >>> read_answer("There are three.", COUNTS), read_answer("20", COUNTS), read_answer("Yes or no?", DECISIONS)
        ('3', '17+', 'unread')
    """
    held = {_spelt(word) for word in _READ.findall(reply.lower())} & set(form)
    return held.pop() if len(held) == 1 else UNREAD


def _spelt(word: str) -> str:
    if word in _NUMBERS:
        return str(_NUMBERS.index(word))
    if word.isdigit():
        return COUNTS[min(int(word), MOST)]
    return word


def picture_of(image: NDArray[np.floating[Any]], side: int) -> Radiograph:
    """Return a picture ``(H, W, 3)`` in [0, 1] with its colours, enlarged by whole factors to a least side."""
    factor = max(1, -(-side // min(image.shape[:2])))
    levels = np.round(np.clip(image, 0, 1) * 255).astype(np.uint8).repeat(factor, 0).repeat(factor, 1)
    grey = (levels.astype(np.float32).mean(-1) / np.float32(255)).astype(np.float32)
    return Radiograph(grey, colour=levels)
