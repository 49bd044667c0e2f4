"""Makes any chat model a grounder: is the finding there, by yes against no; where is it, by boxes in words.

Published comparisons of grounding have no such rows. A model that gives log-probabilities is scored by those of "Yes"
and "No"; any other answers in a fixed form. Boxes are asked for in one named format: pixels, shares of the sides, or
thousandths. A model with a mask head answers with ``<SEG>``; one that runs in this process shows its attention, or
what speaks for a yes. What cannot be read has no score and no map, with its reason.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from medground.errors import ConfigError, ModelError
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, ModelInfo, Prediction, Reply, capabilities_of, require
from medground.models.chat.looks import Look
from medground.models.chat.placing import FORMATS, GRID, BoxFormat, Where, cells_of, place_of, presence_of
from medground.models.common.patches import overlaps

Place = Literal["boxes", "masks", "attention", "gradient", "none"]
_NEEDED: Mapping[str, Sequence[str]] = {"attention": ["look"], "gradient": ["look"]}
_IN_WORDS: Mapping[BoxFormat, str] = {
    "thousandths": "in thousandths of the picture's width and height, from 0 to 1000",
    "shares": "as shares of the picture's width and height, from 0 to 1",
    "pixels": "in pixels of the picture, which is {width} wide and {height} high",
}
_ANSWER = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no", "uncertain"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
_BOXES = {
    "type": "object",
    "properties": {
        "boxes": {
            "type": "array",
            "maxItems": 50,
            "items": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4},
        }
    },
    "required": ["boxes"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class _Presence:
    """Whether findings are there: score and probability a pair, and what was said."""

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    unread: Mapping[int, str]
    replies: Sequence[Mapping[str, Any]]


class ChatGrounder:
    """A chat model as a grounder.

    Args:
        of: the chat model: ``{name: hf_chat, ...}`` or any other.
        question: about a finding, ``{label}`` in its place; answered by yes or no.
        prompts: finding -> question.
        answers: the two answers whose log-probabilities are held against each other.
        place: where a finding is: ``boxes`` asks in words; ``masks`` takes the mask of a ``<SEG>`` answer;
            ``attention`` is where the model looks as its answer begins, ``gradient`` what of the picture speaks for
            yes; ``none``: no maps.
        where: the question of ``masks``.
        box_format: in which boxes are asked for; ``probe`` takes the one in which the model places a drawn rectangle
            best.
    """

    name: ClassVar[str] = "chat_grounder"
    parts: ClassVar[Mapping[str, str]] = {"of": "model"}
    keeps_replies: ClassVar[bool] = True
    info: ClassVar[ModelInfo] = ModelInfo(
        title="chat model as a grounder", licence="the model's own", obtain="of: {name: hf_chat or api_chat, ...}"
    )

    def __init__(
        self,
        *,
        of: Any,
        question: str = "Is there evidence of {label} in this chest radiograph? Answer yes or no.",
        prompts: dict[str, str] | None = None,
        answers: tuple[str, str] = ("Yes", "No"),
        place: Place = "boxes",
        where: str = "Where is {label}?",
        box_format: BoxFormat | Literal["probe"] = "probe",
    ) -> None:
        for name, text in (("question", question), ("where", where)):
            if "{label}" not in text:
                raise ConfigError("the question does not name its finding", where=name, expected="{label} in it")
        self.of = of.build() if hasattr(of, "build") else of
        require(self.of, ["reply", "pictures", *_NEEDED.get(place, ())], by=f"chat_grounder with place: {place}")
        if place == "masks" and not callable(getattr(self.of, "located", None)):
            raise ModelError("this model does not answer with a mask", where=self.of.name, fix="place: boxes")
        self.answers, self.where = answers, where
        self.question, self.prompts, self.place = question, dict(prompts or {}), place
        self._wanted = box_format
        self._format: BoxFormat | None = None if box_format == "probe" else box_format
        self.capabilities = frozenset({"ground", "pictures"})
        self.concurrent = bool(getattr(self.of, "concurrent", False))

    @property
    def ledger(self) -> Any:
        """What was asked of a server, where the model is behind one."""
        return getattr(self.of, "ledger", None)

    def fingerprint(self) -> str:
        """A hash over the model's own, the questions and the format of boxes."""
        told = repr((self.of.fingerprint(), self.question, sorted(self.prompts.items()), self.place, self._wanted))
        told += repr((self.answers, self.where))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`; a score is log P(yes) - log P(no), or the answer itself."""
        pairs = [(image, finding) for image in images for finding in findings]
        shape = (len(images), len(findings))
        presence = self._presence(pairs)
        places = self._places(pairs)
        absent = {divmod(index, len(findings)): place.reason for index, place in enumerate(places) if place.map is None}
        for index, reason in presence.unread.items():
            absent.setdefault(divmod(index, len(findings)), reason)
        grid = next((place.map.shape for place in places if place.map is not None), (GRID, GRID))
        blank = np.full(grid, np.nan, np.float32)
        maps = np.stack([blank if place.map is None else place.map for place in places]) if places else None
        frames = {i // len(findings): place.geometry for i, place in enumerate(places) if place.geometry is not None}
        return Prediction(
            scores=presence.scores.reshape(shape),
            probabilities=presence.probabilities.reshape(shape),
            saliency=None if maps is None else maps.reshape(*shape, *grid),
            geometry=[frames.get(i) or Geometry.squash(image.size, (GRID, GRID)) for i, image in enumerate(images)],
            absent=absent if places else {},
            boxes={
                divmod(index, len(findings)): [[*box, _certainty(presence, index)] for box in place.boxes]
                for index, place in enumerate(places)
                if place.boxes is not None
            },
            replies={
                divmod(index, len(findings)): {**words, **(places[index].replies if places else {})}
                for index, words in enumerate(presence.replies)
            },
        )

    def _asked(self, image: Radiograph, finding: str) -> tuple[Message, ...]:
        text = self.prompts.get(finding) or self.question.format(label=finding.casefold())
        return (Message("user", text, (image,)),)

    def _presence(self, pairs: Sequence[tuple[Radiograph, str]]) -> _Presence:
        conversations = [self._asked(image, finding) for image, finding in pairs]
        if "choose" in capabilities_of(self.of):
            told = np.stack(self.of.choose(conversations, [list(self.answers)] * len(pairs)))
            scores = np.asarray(told[:, 0] - told[:, 1], dtype=np.float64)
            lost = {int(i): "unreadable: no log-probabilities" for i in np.flatnonzero(~np.isfinite(scores))}
            known = [[value if math.isfinite(value) else None for value in row] for row in told.tolist()]
            chosen = [{"log_probabilities": dict(zip(self.answers, row, strict=True))} for row in known]
            return _Presence(scores, np.asarray(expit(scores)), lost, chosen)
        replies = self.of.reply(conversations, GenerationOptions(max_new_tokens=64, schema=_ANSWER))
        answers = [presence_of(reply) for reply in replies]
        values = np.array([value for value, _ in answers])
        unread = {i: reason for i, (_, reason) in enumerate(answers) if reason}
        return _Presence(values, values.copy(), unread, [{"presence": reply.record()} for reply in replies])

    def _places(self, pairs: Sequence[tuple[Radiograph, str]]) -> list[Where]:
        match self.place:
            case "none":
                return []
            case "boxes":
                return self._boxed(pairs)
            case "masks":
                return self._masked(pairs)
            case "attention" | "gradient" as how:
                asked = [self._asked(image, finding) for image, finding in pairs]
                looks: Sequence[Look] = self.of.look(asked, [self.answers] * len(pairs), how)
                return [Where(look.map, geometry=look.geometry) for look in looks]

    def _masked(self, pairs: Sequence[tuple[Radiograph, str]]) -> list[Where]:
        """Return the masks that the model answers with, as shares of the cells of the grid that they cover."""
        asked = [(Message("user", self.where.format(label=f.casefold()), (image,)),) for image, f in pairs]
        masks: Sequence[NDArray[np.bool_] | None] = self.of.located(asked)
        return [Where(None, "no place named") if mask is None else Where(_shares(mask)) for mask in masks]

    def _boxed(self, pairs: Sequence[tuple[Radiograph, str]]) -> list[Where]:
        form = self.box_format()
        replies = self._boxes([(image, finding.casefold()) for image, finding in pairs], form)
        return [
            replace(place_of(reply, form, image.size), replies={"place": reply.record(), "box_format": form})
            for reply, (image, _) in zip(replies, pairs, strict=True)
        ]

    def _boxes(self, pairs: Sequence[tuple[Radiograph, str]], form: BoxFormat) -> Sequence[Reply]:
        conversations = []
        for image, thing in pairs:
            how = _IN_WORDS[form].format(width=image.size[0], height=image.size[1])
            text = (
                f"Where is {thing} in this picture? Give every place as a box [x0, y0, x1, y1], {how}; x runs to the "
                "right, y down. Give an empty list if it is nowhere."
            )
            conversations.append((Message("user", text, (image,)),))
        replies: Sequence[Reply] = self.of.reply(conversations, GenerationOptions(max_new_tokens=256, schema=_BOXES))
        return replies

    def box_format(self) -> BoxFormat:
        """Return the format that boxes are asked for in, probed once where none is named."""
        if self._format is None:
            fits = [self._fit(form) for form in FORMATS]
            # A model that places nothing in any format is asked in the commonest one.
            self._format = FORMATS[fits.index(max(fits))]
        return self._format

    def _fit(self, form: BoxFormat) -> float:
        """Return the IoU of a drawn rectangle and the model's box of it, in one format."""
        pixels = np.full((300, 400), 0.1, np.float32)
        pixels[60:150, 220:340] = 1.0
        drawn = Radiograph(pixels, case_id="probe", source="probe")
        place = place_of(self._boxes([(drawn, "the white rectangle")], form)[0], form, drawn.size)
        truth = cells_of([(220 / 400, 60 / 300, 340 / 400, 150 / 300)])
        if place.map is None or not place.map.any():
            return 0.0
        marked = place.map > 0
        return float((marked & (truth > 0)).sum() / (marked | (truth > 0)).sum())


def _shares(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the share of each cell of the grid that a mask of the picture covers."""
    rows, columns = (np.linspace(0, side, GRID + 1) for side in mask.shape)
    area = overlaps(rows, mask.shape[0]) @ mask.astype(np.float64) @ overlaps(columns, mask.shape[1]).T
    return (area / np.outer(np.diff(rows), np.diff(columns))).astype(np.float32)


def _certainty(presence: _Presence, index: int) -> float:
    """Return the score of a pair's boxes: the probability of the finding, 0 where it could not be read."""
    value = float(presence.probabilities[index])
    return value if math.isfinite(value) else 0.0
