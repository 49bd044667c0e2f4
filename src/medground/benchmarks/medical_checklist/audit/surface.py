"""Rules about the surface of a text: length, case, article, rarity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from medground.benchmarks.medical_checklist.audit.base import Floats, Pair
from medground.benchmarks.medical_checklist.substitution.article import article
from medground.benchmarks.medical_checklist.words import tokens

_ARTICLE = re.compile(r"(?<![\w'\u2019-])(an?)\s+(\S+)", re.IGNORECASE)
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]")


class Surface:
    """One rule as a blind scorer; the higher value wins.

    Args:
        name: of the rule.
        rule: value of a caption.
    """

    def __init__(self, name: str, rule: Callable[[str], float]) -> None:
        self.name = name
        self._rule = rule

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return the rule's value of the true and of the false caption, (N, 2)."""
        return np.array([[self._rule(p.positive), self._rule(p.negative)] for p in pairs], dtype=float).reshape(-1, 2)


def rules(reference: Iterable[str] = ()) -> list[Surface]:
    """Return all rules; rarity is measured on a reference of other papers.

    Args:
        reference: true captions; without any, the two rules of rarity are left out.
    """
    held = [
        Surface("shorter_wins", lambda text: -len(text)),
        Surface("fewer_words_wins", lambda text: -len(tokens(text))),
        Surface("article_fits_wins", lambda text: -sum(_misfits(text))),
        Surface("fewer_capitals_wins", lambda text: -len(_CAPITAL.findall(text))),
    ]
    counts = Counter(w for text in reference for w in tokens(text.lower()))
    if counts:
        held += [
            Surface("known_words_win", lambda text: -sum(w not in counts for w in tokens(text.lower()))),
            Surface("rarest_word_loses", lambda text: min((counts[w] for w in tokens(text.lower())), default=0)),
        ]
    return held


def _misfits(text: str) -> list[bool]:
    return [article(m[2]) != m[1].lower() for m in _ARTICLE.finditer(text)]
