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
"""What an addition needs counts where it needs it in half of the pictures at least; the rest is chance of a place."""


class Responsibility:
    """Responsibility of objects by removal, of words by swaps of their kind, both in [0, 1].

    Args:
        empty: what a cell without an object looks like; where no cell of a picture does, every cell is an object.
        budget: model calls of one explanation at most, the search for large sets stops there; at least 64.
        sets: rounds of the search for sets of two and more objects.
        worlds: pictures with something added, in which the objects of an answer *no* are asked about.
        donors: kinds of objects of the pool that are added, at most.
        kinds: phrases that can stand for one another, a group each; None: colours, shapes and directions.
    """

    name: ClassVar[str] = "responsibility"

    def __init__(
        self,
        empty: Fill = "white",
        budget: int = 570,
        sets: int = 3,
        worlds: int = 8,
        donors: int = 16,
        kinds: list[list[str]] | None = None,
    ) -> None:
        if budget < _LEAST or min(sets, worlds, donors) < 1:
            raise ConfigError(
                "responsibility needs a budget of 64 calls, one set, one world and one donor",
                got=(budget, sets, worlds, donors),
            )
        if empty not in FILLS:
            raise ConfigError("unknown fill", expected=", ".join(FILLS), got=empty)
        self.empty, self.budget, self.sets, self.worlds, self.donors = empty, budget, sets, worlds, donors
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
        added, worlds = np.zeros(len(tiles)), []
        try:
            free = np.setdiff1d(np.arange(len(tiles)), objects)
            worlds = self._additions(asked, tiles, free, added) or self._additions(asked, tiles, objects, added)
            if worlds and not added.any():
                ((cell, shown),) = worlds
                others = objects[objects != cell]
                by_cell[others], _ = self._removals(asked, shown, others)
                return by_cell, added, None
            for cell, shown in worlds:
                others = objects[objects != cell]
                restored = self._without(asked, shown, others, np.eye(others.size, dtype=bool)) >= 0
                by_cell[others] += restored / len(worlds)
            by_cell[by_cell < _MOSTLY] = 0
        except SpentError:
            pass
        return by_cell, added, picture_of(worlds[0][1][None], asked.grid)[0] if worlds else None

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

    def _additions(
        self, asked: _Asked, tiles: Pixels, cells: NDArray[np.int64], added: Table
    ) -> list[tuple[int, Pixels]]:
        """Return cells with pictures in which an object was put there and the answer is another; marks ``added``.

        Where none changes the answer, the one that comes nearest, with nothing marked; none where nothing comes nearer.
        What the picture shows once already, such as the anchor of a relation, is added a second time only where nothing
        else changes the answer.
        """
        kinds, copies = self._donors(asked, tiles)
        nearest: tuple[float, list[tuple[int, Pixels]]] = (asked.lead - _STEP, [])
        for chosen in (copies != 1, copies == 1):
            trials = [(int(cell), kind) for kind in np.flatnonzero(chosen) for cell in cells]
            pictures = np.repeat(tiles[None], len(trials), 0)
            for picture, (cell, kind) in zip(pictures, trials, strict=True):
                picture[cell] = kinds[kind]
            if not trials:
                continue
            margins = asked.margins(picture_of(pictures, asked.grid)).reshape(-1, len(cells))
            if margins.min() < nearest[0]:
                at = int(margins.argmin())
                nearest = float(margins.min()), [(trials[at][0], pictures[at])]
            if (margins < 0).any():
                added[cells] = (margins < 0).any(0)
                best = margins.argmin(0)
                order = [c for c in np.argsort(margins.min(0), kind="stable") if added[cells[c]]][: self.worlds]
                return [(int(cells[c]), pictures[best[c] * len(cells) + c]) for c in order]
        return nearest[1]

    def _donors(self, asked: _Asked, tiles: Pixels) -> tuple[list[Pixels], NDArray[np.int64]]:
        """Return the different objects of the pool in the order in which they come, and copies in this picture."""
        kinds: dict[bytes, Pixels] = {}
        for shown in [tiles, *(tiles_of(image, asked.grid) for image in asked.images)]:
            for tile in shown[self._is_object(shown)]:
                if len(kinds) < self.donors:
                    kinds.setdefault(_look(tile), tile)
        here = [_look(tile) for tile in tiles]
        return list(kinds.values()), np.array([here.count(look) for look in kinds], np.int64)


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
