"""The blind twin of any model: the same model, asked the same, without the case's own picture.

What the twin reaches can be had without looking; what the model reaches beyond it is what looking adds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import ModelError
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.base import (
    GenerationOptions,
    MatchScores,
    Message,
    ModelInfo,
    Prediction,
    Prepared,
    Preparing,
    Reply,
    capabilities_of,
)

Picture = Literal["none", "grey", "noise", "other_case"]
GREY = 0.5


class Blind:
    """A model without sight of the case: what can be had from the question, the captions or the findings alone.

    Args:
        of: the model: ``{name: ..., ...}`` as in a run file.
        picture: what takes the place of the picture: ``none`` (chat models alone), ``grey`` of the same size,
            ``noise`` seeded by case, or ``other_case``: a picture of another patient in the same view, where the
            benchmark hands its cases over. By default ``none`` for a chat model and ``grey`` for any other.
        seed: of noise and of the choice of the other case.
    """

    name: ClassVar[str] = "blind"
    parts: ClassVar[Mapping[str, str]] = {"of": "model"}
    info: ClassVar[ModelInfo] = ModelInfo(
        title="blind twin", kind="baseline", licence="the model's own", obtain="of: {name: any model}"
    )

    def __init__(self, *, of: Any, picture: Picture | None = None, seed: int = 0) -> None:
        self.of = of.build() if hasattr(of, "build") else of
        able = capabilities_of(self.of)
        self.picture: Picture = picture or ("none" if "reply" in able and "ground" not in able else "grey")
        if self.picture == "none" and not able & {"reply", "choose"}:
            raise ModelError(
                "this model cannot be asked without a picture", where="picture", got="none", fix="picture: grey"
            )
        self.seed = seed
        self.capabilities = able
        self.concurrent = bool(getattr(self.of, "concurrent", False))
        self._others: dict[str, Any] = {}
        if isinstance(self.of, Preparing):
            self.prepare = self._prepare

    @property
    def ledger(self) -> Any:
        """What was asked of a server, where the model is behind one."""
        return getattr(self.of, "ledger", None)

    def fingerprint(self) -> str:
        """A hash over the model's own and what takes the picture's place."""
        told = f"{self.of.fingerprint()}:{self.picture}:{self.seed}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def answers(self) -> Sequence[str]:
        """Of a model that answers from a fixed list."""
        answers: Sequence[str] = self.of.answers
        return answers

    def fit(self, cases: Sequence[Any], findings: Sequence[str]) -> None:
        """Choose each case's other case, of another patient and the same view; hand the cases on to the model."""
        if hasattr(self.of, "fit"):
            self.of.fit(cases, findings)
        if self.picture != "other_case":
            return
        by_view: dict[str | None, list[Any]] = {}
        for case in cases:
            by_view.setdefault(case.view, []).append(case)
        for case in cases:
            pool = [other for other in by_view[case.view] if _patient(other) != _patient(case)]
            if pool:
                self._others[case.case_id] = pool[_number(self.seed, case.case_id) % len(pool)]

    def _prepare(self, image: Radiograph) -> Prepared:
        """See :class:`medground.models.base.Preparing`; done here where the model can do it."""
        picture: Prepared = self.of.prepare(self._shown(image))
        return picture

    def predict(self, images: Sequence[Radiograph | Prepared], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`."""
        prediction: Prediction = self.of.predict([self._instead(image) for image in images], findings)
        return prediction

    def match(self, images: Sequence[Radiograph | Prepared], captions: Sequence[Sequence[str]]) -> MatchScores:
        """See :class:`medground.models.base.CaptionMatcher`."""
        scores: MatchScores = self.of.match([self._instead(image) for image in images], captions)
        return scores

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """See :class:`medground.models.base.ChatModel`."""
        replies: Sequence[Reply] = self.of.reply([self._blinded(one) for one in conversations], options)
        return replies

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> Sequence[NDArray[np.floating[Any]]]:
        """See :class:`medground.models.base.Chooser`."""
        scores: Sequence[NDArray[np.floating[Any]]] = self.of.choose(
            [self._blinded(one) for one in conversations], choices
        )
        return scores

    def masks(self, image: Radiograph) -> Mapping[str, NDArray[np.bool_]]:
        """See the capability ``masks``."""
        masks: Mapping[str, NDArray[np.bool_]] = self.of.masks(self._shown(image))
        return masks

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """See :class:`medground.models.base.QuestionAnswerer`; its pictures have no case."""
        if self.picture == "other_case":
            raise ModelError("pictures of this kind have no other case", where="picture", fix="picture: grey")
        shown = np.full_like(images, GREY)
        if self.picture == "noise":
            rows = [_noise(self.seed, hashlib.sha256(image.tobytes()).hexdigest(), image.shape) for image in images]
            shown = np.stack(rows).astype(images.dtype)
        logits: NDArray[np.floating[Any]] = self.of.logits(shown, questions)
        return logits

    def _blinded(self, conversation: Sequence[Message]) -> tuple[Message, ...]:
        if self.picture == "none":
            return tuple(replace(message, images=()) for message in conversation)
        return tuple(replace(m, images=tuple(self._shown(image) for image in m.images)) for m in conversation)

    def _instead(self, image: Radiograph | Prepared) -> Radiograph | Prepared:
        return image if isinstance(image, Prepared) else self._shown(image)

    def _shown(self, image: Radiograph) -> Radiograph:
        """Return what is shown in a picture's place; it keeps the case's name and size, and nothing of its pixels."""
        if self.picture == "other_case":
            other = self._others.get(image.case_id)
            if other is None:
                raise ModelError(
                    "there is no other case to show in the place of this one",
                    where=image.case_id or "a picture without a case",
                    expected="a picture of another patient in the same view, of a benchmark over a dataset",
                    fix="picture: grey, or noise",
                )
            shown = _read(str(other.image))
            if getattr(other, "augmentation", None) is not None:
                shown = other.augmentation.picture(shown, other.case_id)
            return replace(image, pixels=shown.pixels, colour=None, source="another case", steps=())
        shape = image.pixels.shape
        pixels = np.full(shape, GREY, np.float32)
        if self.picture == "noise":
            pixels = _noise(self.seed, image.case_id or image.source, shape)
        return replace(image, pixels=pixels, colour=None, source=self.picture, steps=())


@lru_cache(maxsize=16)
def _read(path: str) -> Radiograph:
    return read_radiograph(path)


def _patient(case: Any) -> str:
    return str(case.patient_id or f"case {case.case_id}")


def _number(seed: int, case_id: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{case_id}".encode()).digest()[:8], "big")


def _noise(seed: int, case_id: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return np.random.default_rng(_number(seed, case_id)).random(shape, dtype=np.float32)
