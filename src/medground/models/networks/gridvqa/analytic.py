"""Exact reasoning on what can be seen: the two analytic models share all but one thing, whether relations count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.worlds.gridvqa.coalitions import meaning
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, Clause, Form, Kind, Question
from medground.worlds.gridvqa.sight import evidence

Table = NDArray[np.float64]

MOST = 17
ANSWERS = (*(str(n) for n in range(MOST)), f"{MOST}+", "yes", "no")
OTHER_FORM = -60.0
"""Log-probability of answers that do not fit the form of the question."""


class Analytic:
    """Answers from the question's structure and soft evidence of cells; nothing is learnt.

    Log-probabilities of counts fall with the squared distance from the expected count, those of yes and no are
    logistic in it. A hidden cell holds no evidence, a removed word no condition: on every coalition of objects and
    words the answer is that of :mod:`medground.worlds.gridvqa.coalitions`.

    Args:
        grid: cells a side.
        relations: whether to obey directions and anchors.
    """

    answers: Sequence[str] = ANSWERS
    made_for: ClassVar[Mapping[str, int]] = {"grid": 5}
    """By default; ``grid`` in the run file says otherwise."""

    def __init__(self, grid: int, *, relations: bool) -> None:
        self.grid = grid
        self.relations = relations

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """Return ``(N, 20)`` log-probabilities; ``images`` are ``(N, H, W, 3)`` in [0, 1]."""
        seen = evidence(images, self.grid).reshape(len(images), self.grid**2, -1)
        return np.stack(
            [self._answer(cells, _read(text, self.relations)) for cells, text in zip(seen, questions, strict=True)]
        )

    def pair_logits(
        self,
        images: NDArray[np.floating[Any]],
        questions: Sequence[str],
        pairs: NDArray[np.integer[Any]],
        batch: int | None = None,  # noqa: ARG002  # the capability's: every pair is answered alone
    ) -> NDArray[np.floating[Any]]:
        """Return ``(N, 20)`` for pairs of positions in ``images`` and ``questions``."""
        seen = evidence(images, self.grid).reshape(len(images), self.grid**2, -1)
        known = [_read(text, self.relations) for text in questions]
        return np.stack([self._answer(seen[i], known[j]) for i, j in pairs])

    def _answer(self, cells: Table, question: Question) -> Table:
        counts = [self._count(cells, clause) for clause in question.clauses]
        return _log_probabilities(question.form, counts)

    def _count(self, cells: Table, clause: Clause) -> float:
        """Return the expected number of targets of a clause."""
        fits = _fits(cells, clause.target)
        for relation in clause.relations:
            # Beside some object that fits the anchor; where none does, nothing lies beside it.
            apart = _planes(self.grid)[relation.direction] * np.minimum(_fits(cells, relation.anchor), 1.0)
            fits = fits * (1 - np.prod(1 - apart, axis=1))
        return float(fits.sum())


def _read(text: str, relations: bool) -> Question:
    return meaning(tuple(text.split()), relations)


@lru_cache(maxsize=4096)
def _members(kind: Kind) -> list[int]:
    classes = [(colour, shape) for colour in COLOURS for shape in SHAPES]
    return [i for i, (colour, shape) in enumerate(classes) if kind.matches(colour, shape)]


def _fits(cells: Table, kind: Kind) -> Table:
    fits: Table = cells[:, _members(kind)].sum(1)
    return fits


@lru_cache(maxsize=8)
def _planes(grid: int) -> dict[str, Table]:
    """Return a direction's ``(cells, cells)`` table: 1 where the first lies in that direction of the second."""
    y, x = np.divmod(np.arange(grid * grid), grid)
    holds = (x[:, None] < x, x[:, None] > x, y[:, None] < y, y[:, None] > y)
    return {direction: table.astype(float) for direction, table in zip(DIRECTIONS, holds, strict=True)}


def _log_probabilities(form: Form, counts: Sequence[float]) -> Table:
    logits = np.full(len(ANSWERS), OTHER_FORM)
    if form == "count":
        steps = -((np.arange(MOST + 1) - min(counts[0], MOST)) ** 2.0)
        logits[: MOST + 1] = steps - np.logaddexp.reduce(steps)
    else:
        lean = 6 * (counts[0] - 0.5) if form == "exists" else 6 * (counts[0] - counts[1] - 0.5)
        logits[MOST + 1 :] = -np.logaddexp(0, -lean), -np.logaddexp(0, lean)
    return logits
