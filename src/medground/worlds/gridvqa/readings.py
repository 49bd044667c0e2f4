"""What a question still asks under every subset of its words, and how likely each reading is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.worlds.gridvqa.coalitions import meaning
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, NOUN, SHAPES, Question, bare, functions

Table = NDArray[np.float64]
MOST_WORDS = 13
"""Players among the words that can change a reading; their subsets are tried one by one."""
_TELLING = {*COLOURS, *SHAPES, NOUN, "than", *(direction.split()[0] for direction in DIRECTIONS)}


@dataclass(frozen=True)
class Readings:
    """The readings of a question under all subsets of its word players.

    Attributes:
        players: one tuple of word positions a player; its words come and go together.
        telling: positions of the players that can change the reading; the others are null players.
        readings: the distinct questions.
        which: ``(2 ** telling,)`` position in ``readings`` under each subset, bit i being the i-th telling player.
    """

    players: tuple[tuple[int, ...], ...]
    telling: tuple[int, ...]
    readings: tuple[Question, ...]
    which: NDArray[np.int64]

    @property
    def _bits(self) -> NDArray[np.bool_]:
        subsets = np.arange(len(self.which))[:, None]
        return (subsets >> np.arange(len(self.telling)) & 1).astype(bool)

    def chances(self, nodes: Table) -> tuple[Table, Table, Table]:
        """Return how likely each reading is where every player speaks with one chance, and its differences.

        Args:
            nodes: ``(T,)`` chances.

        Returns:
            ``(T, readings)``; with minus without each player ``(players, T, readings)``; the second differences of
            every pair ``(players, players, T, readings)``, 0 on the diagonal.
        """
        bits, n = self._bits, len(self.telling)
        t = nodes[:, None, None]
        # Each player's factor in a subset's chance, and that factor's derivative by its own chance.
        factor = np.where(bits[None], t, 1 - t)
        sign = np.where(bits, 1.0, -1.0)
        whole = factor.prod(2)
        one = np.zeros((len(self.players), len(nodes), len(self.readings)))
        two = np.zeros((len(self.players), *one.shape))
        for i in range(n):
            first = whole / factor[..., i] * sign[:, i]
            one[self.telling[i]] = self._summed(first)
            for j in range(i):
                both = self._summed(first / factor[..., j] * sign[:, j])
                two[self.telling[i], self.telling[j]] = two[self.telling[j], self.telling[i]] = both
        return self._summed(whole), one, two

    def _summed(self, values: Table) -> Table:
        return np.stack([np.bincount(self.which, row, len(self.readings)) for row in values])


def readings(text: str, players: Sequence[tuple[int, ...]] | None = None, *, relations: bool = True) -> Readings:
    """Read a question under every subset of its words.

    Args:
        text: the question.
        players: groups of word positions; None: every word for itself. Words of no player are always there.
        relations: False for the counter.

    Raises:
        ConfigError: more than :data:`MOST_WORDS` players can change the reading.
    """
    words = text.split()
    groups = tuple(players) if players is not None else tuple((i,) for i in range(len(words)))
    telling = tuple(k for k, group in enumerate(groups) if any(_tells(words, i) for i in group))
    if len(telling) > MOST_WORDS:
        raise ConfigError(
            f"{len(telling)} words can change the reading of a question",
            got=repr(text),
            expected=f"at most {MOST_WORDS}, whose subsets are tried one by one",
            fix="players: phrases, in which the words of a description or a relation come and go together",
        )
    known: dict[Question, int] = {}
    which = np.zeros(1 << len(telling), np.int64)
    for subset in range(len(which)):
        gone = {i for bit, k in enumerate(telling) if not subset >> bit & 1 for i in groups[k]}
        left = meaning(tuple(word for i, word in enumerate(words) if i not in gone), relations)
        which[subset] = known.setdefault(left, len(known))
    return Readings(groups, telling, tuple(known), which)


def _tells(words: Sequence[str], i: int) -> bool:
    """Whether a word can matter in any subset: the first one, attributes, nouns, directions and "than"."""
    return i == 0 or bare(words[i]) in _TELLING


def phrases(text: str) -> list[tuple[int, ...]]:
    """Return the players by phrase: the head, each target, each relation with its anchor, "than"; in order."""
    form, parts = functions(text.split())
    groups: dict[tuple[int, int], list[int]] = {}
    for i, part in enumerate(parts):
        if part.use == "head" or (form == "compare" and part.word == "than"):
            groups[-1, i] = [i]
        elif part.word in _TELLING:
            groups.setdefault((part.side, part.relation), []).append(i)
    return sorted(map(tuple, groups.values()))
