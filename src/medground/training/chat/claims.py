"""Sentences of captions as questions: "True: pleural effusion on the left?", so that no sentence predicts its answer.

Every statement is asked about as often where it is true as where it is false. False ones are of three kinds: the
finding is there and lies elsewhere (or is of another size), another finding lies in that very place, and neither.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.training.chat.sampling import Turn, turn
from medground.worlds.phantom import questions
from medground.worlds.phantom.facts import Facts
from medground.worlds.phantom.statements import Statement, wordings

STATEMENTS: Final[tuple[Statement, ...]] = tuple(wordings())
"""All that captions can say, in a fixed order."""

TRUE, FALSE, UNSAYABLE = 1, 0, -1

_WEIGHT: Final = {"present": 0.4, "absent": 0.5, "view": 0.4}
"""How often a kind is asked about; 1: as often as it can be without giving the answer away."""

_SHARES: Final = np.array([0.45, 0.35, 0.20])
"""Of the three kinds of false statements."""


def held(facts: Facts) -> NDArray[np.int8]:
    """Return what is true, false and unsayable of a scene, ``(S,)``."""
    answers = (statement.holds(facts) for statement in STATEMENTS)
    return np.array([UNSAYABLE if answer is None else int(answer) for answer in answers], np.int8)


def false_kinds(table: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return the false statements by kind, ``(3, N, S)``; see the module.

    Args:
        table: ``(N, S)``, a row a picture, see :func:`held`.
    """
    false, true = table == FALSE, table == TRUE
    there, instead = np.zeros_like(false), np.zeros_like(false)
    for number, one in enumerate(STATEMENTS):
        if one.kind in ("view", "device"):
            continue
        there[:, number] = true[:, STATEMENTS.index(Statement("present", one.finding))]
        alike = [
            other
            for other, s in enumerate(STATEMENTS)
            if (s.kind, s.value, s.third) == (one.kind, one.value, one.third) and s.finding != one.finding
        ]
        instead[:, number] = true[:, alike].any(1)
    return np.stack([false & there, false & ~there & instead, false & ~there & ~instead])


class Chances(NamedTuple):
    """Probabilities that a picture is asked about a statement: true ``(S,)``, false by kind ``(3, S)``."""

    true: NDArray[np.float64]
    false: NDArray[np.float64]


def chances(table: NDArray[np.int8]) -> Chances:
    """Return chances under which every statement is asked about as often true as false, over all pictures."""
    true = (table == TRUE).sum(0).astype(float)
    counts = false_kinds(table).sum(1).astype(float)
    weight = np.array([_WEIGHT.get(statement.kind, 1.0) for statement in STATEMENTS])
    goal = np.minimum(true, counts.sum(0)) * weight
    taken = np.zeros_like(counts)
    for _ in range(3):  # what a scarce kind cannot give is taken from the others
        room = counts - taken
        open_ = _SHARES[:, None] * (room > 0)
        parts = open_ / np.maximum(open_.sum(0), 1e-9)
        taken += np.minimum(room, parts * (goal - taken.sum(0)))
    return Chances(goal / np.maximum(true, 1), taken / np.maximum(counts, 1))


class Claims:
    """Draws the sentences that one picture is asked about.

    Args:
        table: ``(N, S)``, a row a picture, see :func:`held`.
    """

    def __init__(self, table: NDArray[np.int8]) -> None:
        self._table, self._kinds = table, false_kinds(table)
        self._chances = chances(table)
        self._wordings = tuple(wordings().values())

    def turns(self, case: int, rng: np.random.Generator) -> list[Turn]:
        """Return sentences about a picture in random order."""
        turns = [claim(self.worded(number, rng), true=true) for number, true in self.drawn(case, rng)]
        return [turns[i] for i in rng.permutation(len(turns))]

    def drawn(self, case: int, rng: np.random.Generator) -> list[tuple[int, bool]]:
        """Return the numbers of the statements that a picture is asked about, each with whether it is true."""
        draws = rng.random(len(STATEMENTS))
        true = (self._table[case] == TRUE) & (draws < self._chances.true)
        false = (self._kinds[:, case] & (draws < self._chances.false)).any(0)
        return [(int(number), bool(true[number])) for number in np.flatnonzero(true | false)]

    def worded(self, number: int, rng: np.random.Generator) -> str:
        """Return one of the sentences that a statement can be said in."""
        several = self._wordings[number]
        return several[int(rng.integers(len(several)))]


def question(sentence: str) -> str:
    """Return the question whether a sentence is true."""
    return questions.CLAIM.format(sentence=sentence)


def claim(sentence: str, *, true: bool) -> Turn:
    """Return a sentence as a question with its answer."""
    return turn(question(sentence), "yes" if true else "no")
