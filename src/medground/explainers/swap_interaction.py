"""Swap interaction (ours): how many words an answer rests on together with the picture.

A word rests on the picture where another word of its kind in its place (see ``explainers._words``) changes the answer
about this picture otherwise than about other pictures of the pool. A phrase counts by the share of its swaps, and of
the other pictures, for which that is so: a model that intersects relations counts with every relation more phrases, one
that goes by the target's words never more than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.explainers._words import KINDS, Kinds, phrases, replaced
from medground.explainers.base import Pool, Scores, Table

Answers = NDArray[np.int64]
_WORDS_A_PHRASE = 1.5
"""At least so many words a phrase, for the plan of calls: "left of" is one of two."""


class SwapInteraction:
    """The number of phrases whose swap changes the answer about a picture otherwise than about others.

    Args:
        others: other pictures of the pool that each picture is held against.
        kinds: phrases that can stand for one another, a group each; None: colours, shapes and directions.
        seed: of the choice of other pictures.
    """

    name: ClassVar[str] = "swap_interaction"

    def __init__(self, others: int = 4, kinds: list[list[str]] | None = None, seed: int = 0) -> None:
        if others < 1:
            raise ConfigError("swap_interaction needs one other picture at least", got=others)
        self.others, self.seed = others, seed
        self.kinds: Kinds = KINDS if kinds is None else kinds

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Global`."""
        most = max((len(kind) for kind in self.kinds), default=1) - 1
        return round(words / _WORDS_A_PHRASE) * most * (1 + min(self.others, pool - 1))

    def score(self, pool: Pool) -> Scores:
        """Return the number of phrases an example; NaN in a pool of one, which has no other picture."""
        each = np.array([self._of(pool, index) for index in range(len(pool))])
        return Scores(each, float(each.mean()))

    def _of(self, pool: Pool, index: int) -> float:
        if len(pool) < 2:
            return float("nan")
        words, of = pool.examples[index].words, phrases(pool.examples[index].words, self.kinds)
        swaps = [(k, replaced(words, phrase, other)) for k, phrase in enumerate(of) for other in phrase.others]
        if not swaps:
            return 0.0
        chosen = self._pictures(pool, index)
        before = pool.logits[chosen, index].argmax(1)
        after = pool.asker.all_pairs(pool.images[chosen], [text for _, text in swaps]).argmax(2)
        return float(interacting(before, after, [k for k, _ in swaps]).sum())

    def _pictures(self, pool: Pool, index: int) -> NDArray[np.int64]:
        """Return the example itself and others of the pool, drawn without repeats."""
        rest = np.delete(np.arange(len(pool)), index)
        drawn = pool.rng(index, self.seed, self.name).permutation(rest)[: self.others]
        return np.concatenate([[index], drawn]).astype(np.int64)


def interacting(before: Answers, after: Answers, phrase: Sequence[int]) -> Table:
    """Return, a phrase each, the share of its swaps and of the other pictures where the change differs.

    Two changes differ where one is none and the other is one, or where both answers move by different steps.

    Args:
        before: ``(pictures,)`` positions of the answers to the question as it is; the explained picture comes first.
        after: ``(pictures, swaps)`` the same with a phrase swapped.
        phrase: which phrase each swap replaces, counted from 0.

    Example:
        >>> interacting(np.array([3, 3]), np.array([[2, 3, 5], [2, 3, 3]]), [0, 0, 1]).tolist()
        [0.0, 1.0]
    """
    steps = after - before[:, None]
    differs = (steps[:1] != steps[1:]).mean(0)
    at = np.asarray(phrase)
    return np.array([differs[at == k].mean() for k in range(at.max() + 1)])
