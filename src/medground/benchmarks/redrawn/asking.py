"""Any model of radiographs as one that answers "is there this finding?", as explainers ask it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.imaging.reading import Radiograph
from medground.models.base import MatchScores, Message, ModelInfo, capabilities_of
from medground.models.capabilities import Capability
from medground.worlds.phantom.questions import PRESENT

ABLE: tuple[Capability, ...] = ("ground", "choose", "match")
"""What a model may be asked by; the first that it can is taken."""

ANSWERS = ("yes", "no")
_SURE = 1e-9


class FindingAnswerer:
    """A model and a finding: the question decides nothing but the words that a chat model reads.

    Logits are the log-odds of yes beside 0: of a grounder's probability, of a chat model's log-probabilities of "yes"
    and "no", of a matcher's scores of two captions, scaled as the model scales them.

    Args:
        model: a grounder, a chat model that chooses, or a matcher of captions.
        finding: as the model calls it.
    """

    name: ClassVar[str] = "finding"
    info: ClassVar[ModelInfo] = ModelInfo("a model, asked for one finding")
    answers: Sequence[str] = ANSWERS

    def __init__(self, model: Any, finding: str) -> None:
        self.model, self.finding = model, finding
        able = capabilities_of(model)
        self.asked_by = next(capability for capability in ABLE if capability in able)

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.float64]:
        """Return ``(N, 2)`` for pictures ``(N, H, W, 3)`` in [0, 1]."""
        shown = [Radiograph(np.ascontiguousarray(image.mean(-1), np.float32)) for image in images]
        odds = {"ground": self._ground, "choose": self._choose, "match": self._match}[self.asked_by](shown, questions)
        return np.stack([odds, np.zeros_like(odds)], 1)

    def _ground(self, shown: Sequence[Radiograph], _: Sequence[str]) -> NDArray[np.float64]:
        p = np.asarray(self.model.predict(shown, [self.finding]).probabilities, np.float64)[:, 0]
        p = np.clip(p, _SURE, 1 - _SURE)
        return np.asarray(np.log(p) - np.log1p(-p))

    def _choose(self, shown: Sequence[Radiograph], questions: Sequence[str]) -> NDArray[np.float64]:
        talks = [[Message("user", text, (image,))] for image, text in zip(shown, questions, strict=True)]
        rows = self.model.choose(talks, [list(ANSWERS)] * len(talks))
        return np.array([float(row[0] - row[1]) for row in rows])

    def _match(self, shown: Sequence[Radiograph], _: Sequence[str]) -> NDArray[np.float64]:
        captions = [f"There is {self.finding}.", f"There is no {self.finding}."]
        scores: MatchScores = self.model.match(shown, [captions] * len(shown))
        raw = np.asarray(scores.raw, np.float64)
        scale = float(scores.scale) if scores.kind == "contrastive" else 1.0
        return np.asarray(scale * (raw[:, 0] - raw[:, 1]))

    def fingerprint(self) -> str:
        """That of the model."""
        return str(self.model.fingerprint())


def question_of(finding: str) -> str:
    """Return the question about a finding."""
    return PRESENT.format(finding=finding)
