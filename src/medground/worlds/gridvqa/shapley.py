"""True explanations: exact Shapley values and interactions of objects and words, from the executor.

The game asks whether an answer stays: a coalition of objects and words (:mod:`~medground.worlds.gridvqa.coalitions`)
is worth 1 where the executor gives the explained answer, else 0. Values and interactions (Grabisch and Roubens, Int. J.
Game Theory 28, 1999) are integrals of differences in coalitions that hold every player with chance t, over t from 0 to
1. These are polynomials, so Gauss' rule with enough nodes gives them to rounding. At one t, words and objects are
independent: the words decide a reading (:mod:`~medground.worlds.gridvqa.readings`), the objects what it comes to
(:mod:`~medground.worlds.gridvqa.games`). Empty cells, and words that tell nothing, are null players.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.worlds.gridvqa.coalitions import executor
from medground.worlds.gridvqa.games import Outcomes, odds
from medground.worlds.gridvqa.readings import phrases, readings
from medground.worlds.gridvqa.world import Answer, Thing

Table = NDArray[np.float64]
Players = Literal["words", "phrases", "objects"]


@dataclass(frozen=True)
class TrueValues:
    """The exact explanation of one answer.

    Attributes:
        answer: the explained one.
        things: the objects, in the order of the rows.
        words: one tuple of word positions a word player; empty where objects play alone.
        grid: cells a side.
        whole: worth of the whole scene and question, 0 or 1.
        nothing: worth of the empty coalition.
        objects: ``(n,)`` Shapley values of the objects.
        spoken: ``(players,)`` Shapley values of the word players.
        across: ``(n, players)`` interactions of objects with word players.
        among: ``(n + players, n + players)`` interactions of all pairs; None where they were not asked for.
    """

    answer: Answer
    things: tuple[Thing, ...]
    words: tuple[tuple[int, ...], ...]
    grid: int
    whole: float
    nothing: float
    objects: Table
    spoken: Table
    across: Table
    among: Table | None

    @property
    def image(self) -> Table:
        """``(grid, grid)`` Shapley values by cell; 0 where nothing lies."""
        return self._by_cell(self.objects)

    @property
    def synergy(self) -> Table:
        """``(grid, grid)`` sums of the absolute interactions of a cell with all words."""
        return self._by_cell(np.abs(self.across).sum(1))

    def text(self, words: int) -> Table:
        """Return ``(words,)`` Shapley values by word; a phrase's value is shared evenly by its words."""
        values = np.zeros(words)
        for group, value in zip(self.words, self.spoken, strict=True):
            values[list(group)] += value / len(group)
        return values

    def _by_cell(self, values: Table) -> Table:
        table = np.zeros((self.grid, self.grid))
        for thing, value in zip(self.things, values, strict=True):
            table[thing.y, thing.x] = value
        return table


def true_values(
    things: Sequence[Thing],
    text: str,
    grid: int,
    *,
    relations: bool = True,
    players: Players = "words",
    answer: Answer | None = None,
    pairs: bool = False,
) -> TrueValues:
    """Return the exact explanation of an answer.

    Args:
        things: the objects of a scene.
        text: the question.
        grid: cells a side.
        relations: True explains the executor, False the counter.
        players: beside the objects every word (``words``), phrases (``phrases``), or none: the question stays whole
            (``objects``).
        answer: the explained one; None: what the executor, or counter, answers to the whole.
        pairs: whether to give the interactions of objects with each other and of words with each other too.

    Raises:
        ConfigError: too many words that can change the reading, see :mod:`~medground.worlds.gridvqa.readings`.
    """
    own = executor(things, text.split(), grid, relations=relations)
    explained = own if answer is None else answer
    groups = {"words": None, "phrases": phrases(text), "objects": []}[players]
    spoken = readings(text, groups, relations=relations)
    n, m = len(things), len(spoken.players)
    nodes, weights = np.polynomial.legendre.leggauss((n + len(spoken.telling)) // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    chance, one_word, two_words = spoken.chances(nodes)
    form = _form(spoken.readings, explained)
    outcomes = {question: Outcomes(question, explained, n, nodes) for question in form}
    shapes = (len(nodes), len(spoken.readings))
    whole, one, two = np.zeros(shapes), np.zeros((*shapes, n)), np.zeros((len(nodes), n, n))
    for q, question in enumerate(spoken.readings):
        if question.form in form:
            chances = odds(question, things, outcomes[question.form], nodes, pairs=pairs)
            whole[:, q], one[:, q] = chances.whole, chances.one
            two += chance[:, q, None, None] * chances.two
    across = np.einsum("t,ptq,tqn->np", weights, one_word, one, optimize=True)
    among = np.zeros((n + m, n + m))
    if pairs:
        among[:n, :n] = np.einsum("t,tij->ij", weights, two)
        among[:n, n:], among[n:, :n] = across, across.T
        among[n:, n:] = np.einsum("t,pstq,tq->ps", weights, two_words, whole, optimize=True)
    nothing = executor(
        [], [w for i, w in enumerate(text.split()) if not _plays(i, spoken.players)], grid, relations=relations
    )
    return TrueValues(
        explained,
        tuple(things),
        spoken.players,
        grid,
        float(own == explained),
        float(nothing == explained),
        np.einsum("t,tq,tqn->n", weights, chance, one, optimize=True),
        np.einsum("t,ptq,tq->p", weights, one_word, whole, optimize=True),
        across,
        among if pairs else None,
    )


def _plays(i: int, players: Sequence[tuple[int, ...]]) -> bool:
    return any(i in group for group in players)


def _form(asked: Sequence[object], explained: Answer) -> set[str]:
    """Return the forms that can give an answer: counts are given by count questions alone."""
    forms = {"count"} if isinstance(explained, int) else {"exists", "compare"}
    if explained not in ("yes", "no") and not isinstance(explained, int):
        raise ConfigError("not an answer", expected='a count, "yes" or "no"', got=repr(explained))
    return forms & {getattr(question, "form", "") for question in asked}
