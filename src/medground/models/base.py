"""What a model can do: the capabilities that benchmarks ask for.

A model is a class in a file of its own with a ``name``, an ``info`` card and one or more of the capabilities below.
Its constructor takes typed keywords, which the registry checks against the run file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.capabilities import (
    Capability,
    capabilities_of,
    require,
)
from medground.models.messages import (
    GenerationOptions,
    Message,
    Outcome,
    Reply,
    ToolCall,
    ToolSpec,
    conversation_hash,
    picture_hash,
)

__all__ = [
    "Capability",
    "CaptionMatcher",
    "ChatModel",
    "Chooser",
    "Fitted",
    "GenerationOptions",
    "Grounder",
    "Kind",
    "MatchScores",
    "Message",
    "Model",
    "ModelInfo",
    "Outcome",
    "Prediction",
    "Prepared",
    "Preparing",
    "QuestionAnswerer",
    "Repeatable",
    "Reply",
    "ToolCall",
    "ToolSpec",
    "capabilities_of",
    "conversation_hash",
    "picture_hash",
    "require",
    "seen_patients_of",
]


Kind = Literal["zero-shot", "supervised", "baseline", "unknown"]
Pretraining = Literal["general", "biomedical", "chest radiographs"]


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a model that need no weights: shown by ``medground describe``.

    Attributes:
        title: the name in the literature.
        kind: ``zero-shot``, ``supervised`` (trained with labels or boxes of the task), ``baseline``, or ``unknown``:
            nobody has said what it was trained on, so it is never ranked.
        licence: terms of code and weights in one sentence.
        citation: how to cite it.
        obtain: the files it needs, and where they come from.
        seen: dataset name -> what of it the model has seen in training (``images``, ``labels``, ``boxes`` or
            ``patients``); marked in every table.
        unverified: why results must not be read as the published model's, where that is so.
        query_dependent: whether one finding's score depends on the other findings of the same call.
        pretrained_on: what kind of pictures with texts it was pretrained on: ``general`` (of the web), ``biomedical``
            (figures of papers, radiographs among them), or ``chest radiographs`` (with reports or labels). None:
            unknown.
    """

    title: str
    kind: Kind = "unknown"
    licence: str = ""
    citation: str = ""
    obtain: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
    unverified: str | None = None
    query_dependent: bool = False
    pretrained_on: Pretraining | None = None


@dataclass(frozen=True)
class Prediction:
    """What a grounder says about N images and C findings, in the order asked.

    Attributes:
        scores: ``(N, C)`` float on the model's own scale.
        probabilities: ``(N, C)`` float in [0, 1].
        saliency: ``(N, C, h, w)`` float32 on the model's own grid, before any normalising, or nested sequences whose
            ``[i][j]`` is such a map where sizes differ. NaN marks an invalid map. None: the model gives no maps.
        geometry: one an image: how the grid's frame lies on the picture's pixels.
        absent: (image index, finding index) -> why there is no map.
        origin: (image index, finding index) -> (file, SHA-256) of a map that was made elsewhere.
        boxes: (image index, finding index) -> where a model that answers in boxes placed them: x0, y0, x1, y1 as shares
            of the picture's sides, and a score; an empty list where it says that there is none.
        replies: (image index, finding index) -> what a model that answers in words replied, JSON-like, kept as it came.
    """

    scores: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]]
    saliency: NDArray[np.float32] | Sequence[Sequence[NDArray[np.floating[Any]]]] | None
    geometry: Sequence[Geometry]
    absent: Mapping[tuple[int, int], str] = field(default_factory=dict)
    origin: Mapping[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    boxes: Mapping[tuple[int, int], Sequence[Sequence[float]]] = field(default_factory=dict)
    replies: Mapping[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)


class Model(Protocol):
    """What every model carries."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def fingerprint(self) -> str:
        """A hash over weights, prompts, preprocessing and dtype; part of every chunk's name."""


@runtime_checkable
class Grounder(Protocol):
    """Scores findings and says where they are."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """Return scores, probabilities and maps for every image and finding, in the order asked."""

    def fingerprint(self) -> str:
        """See :class:`Model`."""


@dataclass(frozen=True)
class Prepared:
    """A picture as a network takes it: made in a worker, so that the model's thread only runs the network.

    Attributes:
        case_id: of the case.
        patient_id: of the case.
        size: width and height of the original picture.
        content: the network's input.
        geometry: how the input's frame lies on the picture's pixels.
    """

    case_id: str | None
    patient_id: str | None
    size: tuple[int, int]
    content: NDArray[Any]
    geometry: Geometry


@runtime_checkable
class Preparing(Protocol):
    """A model that can do its preprocessing apart: ``predict`` and ``match`` take prepared pictures as well."""

    def prepare(self, image: Radiograph) -> Prepared:
        """Resize, crop, normalise; called from several threads."""


@runtime_checkable
class Repeatable(Preparing, Protocol):
    """A model whose prepared pictures follow from the pixels alone, so that they may be kept."""

    def preparation(self) -> str:
        """A hash of all that ``prepare`` depends on beside the pixels; equal for models that prepare alike."""


def seen_patients_of(model: object, dataset: str) -> frozenset[str]:
    """Return the patients of a dataset that a model, or the one inside it, was trained on, where it says so.

    Args:
        model: any model.
        dataset: its name.
    """
    lookup = getattr(model, "seen_patients", None)
    own = frozenset(lookup(dataset)) if lookup else frozenset()
    inner = getattr(model, "of", None)
    return own if inner is None else own | seen_patients_of(inner, dataset)


@dataclass(frozen=True)
class MatchScores:
    """Raw agreement of N images with K captions each.

    Attributes:
        raw: ``(N, K)`` on the model's own scale.
        scale: multiplier of ``raw`` before a softmax (CLIP's ``exp(logit_scale)``).
        kind: ``contrastive`` (cosine) or ``itm`` (image-text matching logit); the benchmark applies the rule.
        texts: ``(N, K)`` integers, equal in a row where the model read the same tokens: captions that differ beyond its
            token limit alone. None: the model does not say.
    """

    raw: NDArray[np.floating[Any]]
    scale: float
    kind: Literal["contrastive", "itm"]
    texts: NDArray[np.integer[Any]] | None = None


@runtime_checkable
class CaptionMatcher(Protocol):
    """Says how well captions fit images."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return raw agreement; ``captions[i]`` are the K captions of image i."""

    def fingerprint(self) -> str:
        """See :class:`Model`."""


@runtime_checkable
class ChatModel(Protocol):
    """Answers in words."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Return one reply a conversation; without options the model's defaults, greedy."""

    def fingerprint(self) -> str:
        """See :class:`Model`."""


@runtime_checkable
class Chooser(Protocol):
    """Says how likely given words are as its next ones."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> Sequence[NDArray[np.floating[Any]]]:
        """Return natural log-probabilities: one array ``(K,)`` a conversation, the sum over each choice's tokens."""

    def fingerprint(self) -> str:
        """See :class:`Model`."""


@runtime_checkable
class QuestionAnswerer(Protocol):
    """Answers questions from a fixed list of answers."""

    name: ClassVar[str]
    info: ClassVar[ModelInfo]
    answers: Sequence[str]

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """Return ``(N, len(answers))`` logits; ``images`` are ``(N, H, W, 3)`` in [0, 1]."""

    def fingerprint(self) -> str:
        """See :class:`Model`."""


@runtime_checkable
class Fitted(Protocol):
    """A model that learns from the truth of a dataset before it predicts, such as a class prior."""

    def fit(self, cases: Sequence[Any], findings: Sequence[str]) -> None:
        """Take what is needed from ``Case`` objects; a case's answer must not depend on its own patient."""
