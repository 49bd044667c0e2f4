"""Responsibility (ours): which objects and which words the answer would not survive a change of.

A picture is changed as the world could have made it: an object is taken away and its cell is empty. An object is
responsible for an answer by 1 / m, where m is the size of a smallest set of objects with it whose removal changes the
answer (Chockler and Halpern 2004, with removal as the only intervention). A word is responsible by the share of other
words of its kind (colours, shapes, directions) that change the answer in its place.

An answer that nothing can be taken from, such as *no* to a question whether there is something, is explained by what
would have to be added: every kind of object that the pool shows is put on every empty cell, and where that changes the
answer, the objects are responsible without which it would not. ``extras["added"]`` tells the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.explainers._causes import Flags, SpentError, responsibilities
from medground.explainers._words import KINDS, Kinds, Phrase, phrases, replaced
from medground.explainers.base import FILLS, Attribution, Fill, Pixels, Pool, Table

_NEAR, _STEP = 1e-3, 1e-3
_LEAST = 64
_MOSTLY = 0.5
"""What is needed in half of the pictures at least counts; the rest is chance of a place."""


class Responsibility:
    """Responsibility of objects by removal, of words by swaps of their kind, both in [0, 1].

    Args:
        empty: what a cell without an object looks like; where no cell of a picture does, every cell is an object.
        budget: model calls of one explanation at most, the search for large sets stops there; at least 64.
        sets: rounds of the search for sets of two and more objects.
        donors: kinds of objects of the pool that are added, at most.
        kinds: phrases that can stand for one another, a group each; None: colours, shapes and directions.
    """

    name: ClassVar[str] = "responsibility"

    def __init__(
        self,
        empty: Fill = "white",
        budget: int = 570,
        sets: int = 3,
        donors: int = 16,
        kinds: list[list[str]] | None = None,
    ) -> None:
        if budget < _LEAST or min(sets, donors) < 1:
            raise ConfigError(
                "responsibility needs a budget of 64 calls, one set and one donor",
                got=(budget, sets, donors),
            )
        if empty not in FILLS:
            raise ConfigError("unknown fill", expected=", ".join(FILLS), got=empty)
        self.empty, self.budget, self.sets, self.donors = empty, budget, sets, donors
        self.kinds: Kinds = KINDS if kinds is None else kinds

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Local`."""
        return self.budget

    def explain(self, pool: Pool, index: int) -> Attribution:
        """See :class:`medground.explainers.base.Local`."""
        asked = _Asked(pool, index, self.budget)
        of = phrases(asked.words, self.kinds)
        shares = asked.changed_by_swaps(asked.image, of)
        image, added, other = self._image(asked)
        if not shares.any() and other is not None:
            shares = asked.changed_by_swaps(other, of) / 2
        text = np.zeros(len(asked.words))
        for phrase, share in zip(of, shares, strict=True):
            text[phrase.start : phrase.stop] = share / (phrase.stop - phrase.start)
        grid = pool.grid
        extras = {} if added is None else {"added": added.reshape(grid, grid)}
        return Attribution(image.reshape(grid, grid), text, asked.target, asked.spent, extras=extras)

    def _image(self, asked: _Asked) -> tuple[Table, Table | None, Pixels | None]:
        """Return the responsibility of every cell, where something added changes the answer, and such a picture.

        The second is None where the answer can be changed by removal; the third where nothing changes it.
        """
        tiles = tiles_of(asked.image, asked.grid)
        objects = np.flatnonzero(self._is_object(tiles))
        by_cell = np.zeros(len(tiles))
        by_cell[objects], gone = self._removals(asked, tiles, objects)
        if gone is not None:
            return by_cell, None, picture_of(self._emptied(tiles, objects, gone[None]), asked.grid)[0]
        added = np.zeros(len(tiles))
        try:
            free = np.setdiff1d(np.arange(len(tiles)), objects)
            worlds = self._additions(asked, tiles, free) or self._additions(asked, tiles, objects)
            if not worlds:
                return by_cell, added, None
            if not worlds[0].cells.size:
                others = objects[objects != worlds[0].cell]
                by_cell[others], _ = self._removals(asked, worlds[0].tiles, others)
                return by_cell, added, None
            told, by_cell = self._needed(asked, worlds, objects)
            for world in told:
                added[world.cells] = 1
            return by_cell, added, picture_of(told[0].tiles[None], asked.grid)[0]
        except SpentError:
            return by_cell, added, None

    def _needed(
        self, asked: _Asked, worlds: Sequence[_World], objects: NDArray[np.int64]
    ) -> tuple[list[_World], Table]:
        """Return the plainest of the pictures with something added, and how often the answer there needs each cell.

        An object is needed where the answer is the old one without it. Plainest is where the fewest are, of the
        pictures in which these and the added one are enough. A second anchor can turn an answer too, with more help.
        """
        needed, enough = np.zeros((len(worlds), asked.grid**2), bool), np.zeros(len(worlds), bool)
        for k, world in enumerate(worlds):
            others = objects[objects != world.cell]
            removed = np.eye(others.size, dtype=bool)
            needed[k, others] = self._without(asked, world.tiles, others, removed) >= 0
            enough[k] = self._without(asked, world.tiles, others, ~needed[k, others][None])[0] < 0
        fewest = np.where(enough, needed.sum(1), needed.shape[1])
        chosen = np.flatnonzero(fewest == fewest.min())
        shares = needed[chosen].mean(0)
        return [worlds[int(k)] for k in chosen], np.where(shares < _MOSTLY, 0.0, shares)

    def _removals(self, asked: _Asked, tiles: Pixels, objects: NDArray[np.int64]) -> tuple[Table, Flags | None]:
        looks = [_look(tile) for tile in tiles[objects]]
        margins = partial(self._without, asked, tiles, objects)
        return responsibilities(margins, objects.size, self.sets, [looks.index(look) for look in looks])

    def _is_object(self, tiles: Pixels) -> Flags:
        return np.asarray(np.abs(tiles - np.float32(FILLS[self.empty])).max((1, 2, 3)) > _NEAR)

    def _emptied(self, tiles: Pixels, objects: NDArray[np.int64], removed: Flags) -> Pixels:
        pictures = np.repeat(tiles[None], len(removed), 0)
        for picture, gone in zip(pictures, removed, strict=True):
            picture[objects[gone]] = FILLS[self.empty]
        return pictures

    def _without(self, asked: _Asked, tiles: Pixels, objects: NDArray[np.int64], removed: Flags) -> Table:
        return asked.margins(picture_of(self._emptied(tiles, objects, removed), asked.grid))

    def _additions(self, asked: _Asked, tiles: Pixels, cells: NDArray[np.int64]) -> list[_World]:
        """Return a picture for each object of the pool that changes the answer when put on one of some cells.

        Where none does, the one picture that comes nearest to it, with no cells; none where nothing comes nearer.
        """
        kinds = self._donors(asked, tiles)
        pictures = np.repeat(tiles[None], len(kinds) * len(cells), 0)
        trials = [(kind, int(cell)) for kind in range(len(kinds)) for cell in cells]
        for picture, (kind, cell) in zip(pictures, trials, strict=True):
            picture[cell] = kinds[kind]
        if not trials:
            return []
        margins = asked.margins(picture_of(pictures, asked.grid)).reshape(len(kinds), len(cells))
        best = margins.argmin(1)

        def world(kind: int, changed: NDArray[np.int64]) -> _World:
            return _World(int(cells[best[kind]]), pictures[kind * len(cells) + best[kind]], changed)

        changing = [world(k, cells[row < 0]) for k, row in enumerate(margins) if row.min() < 0]
        nearest = int(margins.min(1).argmin())
        if not changing and margins.min() < asked.lead - _STEP:
            return [world(nearest, cells[:0])]
        return changing

    def _donors(self, asked: _Asked, tiles: Pixels) -> list[Pixels]:
        """Return the different objects of a picture and its pool, in the order in which they come."""
        kinds: dict[bytes, Pixels] = {}
        for shown in [tiles, *(tiles_of(image, asked.grid) for image in asked.images)]:
            for tile in shown[self._is_object(shown)]:
                if len(kinds) < self.donors:
                    kinds.setdefault(_look(tile), tile)
        return list(kinds.values())


@dataclass(frozen=True)
class _World:
    """A picture with an object put on a cell; ``cells`` are all on which it changes the answer."""

    cell: int
    tiles: Pixels
    cells: NDArray[np.int64]


class _Asked:
    """One example of a pool: asks about changed pictures and questions, within a budget."""

    def __init__(self, pool: Pool, index: int, budget: int) -> None:
        self._pool, self._budget, self.spent = pool, budget, 0
        self._question, self.words = pool.examples[index].question, pool.examples[index].words
        self.image, self.target, self.grid = pool.examples[index].image, pool.predicted(index), pool.grid
        self.lead = float(margins_of(pool.own[index][None], self.target)[0])

    @property
    def images(self) -> Iterable[Pixels]:
        """The pictures of the pool."""
        return (example.image for example in self._pool.examples)

    def margins(self, images: Pixels) -> Table:
        """Return how far the answer about changed pictures is from another, below 0 where it is another."""
        pairs = [(i, 0) for i in range(len(images))]
        return margins_of(self._logits(images, [self._question], pairs), self.target)

    def changed_by_swaps(self, image: Pixels, of: Sequence[Phrase]) -> Table:
        """Return, a phrase each, the share of others of its kind that change the answer about a picture."""
        swaps = [(k, replaced(self.words, phrase, other)) for k, phrase in enumerate(of) for other in phrase.others]
        questions = [self._question, *(text for _, text in swaps)]
        shares, tried = np.zeros(len(of)), np.zeros(len(of))
        try:
            logits = self._logits(image[None], questions, [(0, j) for j in range(len(questions))])
        except SpentError:
            return shares
        answers = logits.argmax(1)
        for (k, _), answer in zip(swaps, answers[1:], strict=True):
            shares[k] += answer != answers[0]
            tried[k] += 1
        return shares / np.maximum(tried, 1)

    def _logits(self, images: Pixels, questions: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Table:
        if self.spent + len(pairs) > self._budget:
            raise SpentError
        self.spent += len(pairs)
        if not pairs:
            return np.zeros((0, self._pool.own.shape[1]))
        return self._pool.asker.pairs(images, questions, np.array(pairs))


def margins_of(logits: Table, target: int) -> Table:
    """Return by how much an answer leads over the next one, for logits ``(N, answers)``.

    Example:
        >>> margins_of(np.array([[2.0, 1.5, 0.0], [0.0, 3.0, 1.0]]), 0).tolist()
        [0.5, -3.0]
    """
    return np.asarray(logits[:, target] - np.delete(logits, target, axis=1).max(1), np.float64)


def tiles_of(image: Pixels, grid: int) -> Pixels:
    """Return the cells of a picture ``(H, W, 3)``, row by row, as ``(cells, h, w, 3)``."""
    height, width = image.shape[0] // grid, image.shape[1] // grid
    cut = image.reshape(grid, height, grid, width, 3).swapaxes(1, 2)
    return np.ascontiguousarray(cut.reshape(grid * grid, height, width, 3))


def picture_of(tiles: Pixels, grid: int) -> Pixels:
    """Return pictures ``(K, H, W, 3)`` of cells ``(K, cells, h, w, 3)``."""
    count, _, height, width, _ = tiles.shape
    cut = tiles.reshape(count, grid, grid, height, width, 3).swapaxes(2, 3)
    return cut.reshape(count, grid * height, grid * width, 3)


def _look(tile: Pixels) -> bytes:
    return np.round(tile * 255).astype(np.uint8).tobytes()
