"""What an explainer is given, and what it gives back.

An explainer is a class in a file of its own with a ``name`` and typed keywords. A *local* one says which cells and
words an answer came from; a *global* one says how much of the answers of a whole pool came from image and text
together. Both take a :class:`Pool`: examples among which any text may be asked about any image, and the model behind
an :class:`Asker` that batches and counts its calls.

::

    Local.explain(pool, index) -> Attribution          Global.score(pool) -> Scores
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError, ModelError
from medground.models.base import QuestionAnswerer

if TYPE_CHECKING:
    from torch import Tensor

Table = NDArray[np.float64]
Pixels = NDArray[np.float32]
Fill = Literal["grey", "black", "white"]
_PAIRS = 64
FILLS: dict[str, float] = {"grey": 0.5, "black": 0.0, "white": 1.0}


@dataclass(frozen=True)
class Example:
    """An image ``(H, W, 3)`` in [0, 1] and a question about it."""

    example_id: str
    image: Pixels
    question: str

    @property
    def words(self) -> list[str]:
        """The question, split at blanks: the units of every text map."""
        return self.question.split()


@dataclass(frozen=True)
class Attribution:
    """Where one answer came from.

    Attributes:
        image: ``(g, g)`` one value a cell, or ``(H, W)`` one a pixel; None where the method says nothing.
        text: ``(words,)``; None where the method says nothing.
        target: position of the explained answer.
        calls: model calls that were spent; a forward pass with gradients counts once, a backward pass once more.
        reason: why there is no map, where both are None.
        extras: further maps and figures by name.
    """

    image: Table | None
    text: Table | None
    target: int
    calls: int = 0
    reason: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scores:
    """How much of a pool's answers came from both modalities together.

    Attributes:
        each: ``(N,)`` one score an example, in percent or nats as the method says; NaN where undefined.
        overall: the method's own figure for the pool.
        extras: further figures by name.
    """

    each: Table
    overall: float
    extras: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class PairAnswerer(Protocol):
    """A question answerer that encodes every image and every question once, however many pairs they make."""

    def pair_logits(
        self,
        images: NDArray[np.floating[Any]],
        questions: Sequence[str],
        pairs: NDArray[np.integer[Any]],
        batch: int | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Return ``(N, answers)`` for ``(N, 2)`` positions in images and questions.

        ``batch``: pairs a forward pass; None: as many as the model likes.
        """


@runtime_checkable
class Differentiable(Protocol):
    """A question answerer with gradients."""

    def embed(self, question: str) -> Tensor:
        """Return one vector a word, ``(words, width)``."""

    def answer_embedded(self, image: Tensor, question: str, words: Tensor) -> Tensor:
        """Return ``(answers,)`` logits of an image ``(H, W, 3)`` and embedded words, twice differentiable."""


class Asker:
    """Asks a model in batches and counts.

    Args:
        model: any question answerer.
        batch: pairs a forward pass; None: as many as a model likes that takes images and questions apart, else 64.
        told: is given the number of pairs after every batch.
    """

    def __init__(
        self, model: QuestionAnswerer, batch: int | None = None, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self.model = model
        self.calls = 0
        self._batch, self._told = batch, told

    def pairs(self, images: Pixels, questions: Sequence[str], pairs: NDArray[np.integer[Any]]) -> Table:
        """Return ``(N, answers)`` logits for ``(N, 2)`` positions in ``images`` (K, H, W, 3) and ``questions``."""
        self.calls += len(pairs)
        if isinstance(self.model, PairAnswerer):
            given = () if self._batch is None else (self._batch,)
            logits = np.asarray(self.model.pair_logits(images, questions, pairs, *given), np.float64)
            self._told(len(pairs))
            return logits
        parts, batch = [], self._batch or _PAIRS
        for start in range(0, len(pairs), batch):
            chosen = pairs[start : start + batch]
            parts.append(self.model.logits(images[chosen[:, 0]], [questions[j] for j in chosen[:, 1]]))
            self._told(len(chosen))
        return np.concatenate(parts).astype(np.float64)

    def all_pairs(self, images: Pixels, questions: Sequence[str]) -> Table:
        """Return ``(images, questions, answers)``."""
        n, m = len(images), len(questions)
        pairs = np.stack(np.divmod(np.arange(n * m), m), 1)
        return self.pairs(images, questions, pairs).reshape(n, m, -1)


class Pool:
    """Examples among which any text may be asked about any image.

    Args:
        examples: at least one, with images of one size.
        asker: the model.
        grid: cells a side: the units of every image map that is not made of pixels.

    Raises:
        ConfigError: images differ in size, or do not divide into cells.
    """

    def __init__(self, examples: Sequence[Example], asker: Asker, grid: int) -> None:
        shapes = {example.image.shape for example in examples}
        if len(shapes) != 1 or any(side % grid for side in next(iter(shapes))[:2]):
            raise ConfigError(
                "images of a pool have one size, a multiple of its grid", expected=f"grid {grid}", got=shapes
            )
        self.examples, self.asker, self.grid = list(examples), asker, grid

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def images(self) -> Pixels:
        """``(N, H, W, 3)``."""
        return np.stack([example.image for example in self.examples])

    @property
    def questions(self) -> list[str]:
        """``N`` texts."""
        return [example.question for example in self.examples]

    @cached_property
    def logits(self) -> Table:
        """``(N, N, answers)`` of every image with every text; computed once, for all methods that need it."""
        texts = sorted(set(self.questions))
        full = self.asker.all_pairs(self.images, texts)
        return full[:, [texts.index(question) for question in self.questions]]

    @cached_property
    def own(self) -> Table:
        """``(N, answers)`` of the matched pairs; taken from the full matrix where that is known already."""
        at = np.arange(len(self))
        if "logits" in self.__dict__:
            return self.logits[at, at]
        return self.asker.pairs(self.images, self.questions, np.stack([at, at], 1))

    def predicted(self, index: int) -> int:
        """Return the position of the model's answer."""
        return int(self.own[index].argmax())

    def rng(self, index: int, seed: int, method: str) -> np.random.Generator:
        """Return a generator that depends on the example, the method and the seed, and on nothing else."""
        key = zlib.crc32(self.examples[index].example_id.encode()), zlib.crc32(method.encode())
        return np.random.default_rng([seed, *key])


class Local(Protocol):
    """Explains one answer."""

    name: ClassVar[str]

    def calls(self, words: int, cells: int, pool: int) -> int:
        """Return how many model calls one explanation takes at most, the pool's matrix excepted."""

    def explain(self, pool: Pool, index: int) -> Attribution:
        """Explain the model's answer to one example."""


class Global(Protocol):
    """Scores a pool."""

    name: ClassVar[str]

    def calls(self, words: int, cells: int, pool: int) -> int:
        """Return how many model calls it takes an example beyond the pool's matrix."""

    def score(self, pool: Pool) -> Scores:
        """Score every example and the pool."""


def hide_cells(image: Pixels, keep: NDArray[np.bool_], fill: Fill) -> Pixels:
    """Return copies of an image with cells filled by one colour.

    Args:
        image: ``(H, W, 3)``.
        keep: ``(K, cells)`` row by row; False hides.
        fill: the colour.

    Returns:
        ``(K, H, W, 3)``.
    """
    if fill not in FILLS:
        raise ConfigError("unknown fill", expected=", ".join(FILLS), got=fill)
    grid = round(keep.shape[1] ** 0.5)
    height, width = image.shape[0] // grid, image.shape[1] // grid
    shown = keep.reshape(-1, grid, 1, grid, 1, 1)
    tiles = image.reshape(grid, height, grid, width, 3)
    return np.where(shown, tiles, np.float32(FILLS[fill])).reshape(-1, *image.shape)


def hide_words(question: str, keep: NDArray[np.bool_]) -> list[str]:
    """Return copies of a question without the words whose flag in ``keep`` ``(K, words)`` is False."""
    words = question.split()
    return [" ".join(word for word, kept in zip(words, row, strict=True) if kept) for row in keep]


def gradients(model: QuestionAnswerer) -> Differentiable:
    """Return a model as one with gradients.

    Raises:
        ModelError: it has none.
    """
    if not isinstance(model, Differentiable):
        raise ModelError("the model gives no gradients", where=model.name, expected="embed and answer_embedded")
    return model
