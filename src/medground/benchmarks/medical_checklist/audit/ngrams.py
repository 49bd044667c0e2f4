"""Bigram model of captions of other papers: the likelier caption is taken for the true one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from medground.benchmarks.medical_checklist.audit.base import Floats, Pair
from medground.benchmarks.medical_checklist.words import tokens

SMOOTHING = 0.1
_START, _END, _UNKNOWN = "\x02", "\x03", "\x1a"


class BigramModel:
    """Add-k smoothed bigrams over lower-cased words and marks.

    P(b | a) = (n(a, b) + k) / (n(a) + k V); V counts the words of the reference, the end and one unknown word.

    Args:
        reference: captions to learn from.
        smoothing: k.
    """

    def __init__(self, reference: Iterable[str], smoothing: float = SMOOTHING) -> None:
        self.smoothing = smoothing
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.words: Counter[str] = Counter()
        for text in reference:
            held = [_START, *tokens(text.lower()), _END]
            self.pairs.update(pairwise(held))
            self.words.update(held[:-1])
        self.vocabulary = {w for pair in self.pairs for w in pair if w != _START} | {_END, _UNKNOWN}

    def log_probability(self, text: str) -> tuple[float, int]:
        """Return the natural log-probability of a caption, and its number of steps (tokens and the end)."""
        held = [_START, *(w if w in self.vocabulary else _UNKNOWN for w in tokens(text.lower())), _END]
        k, size = self.smoothing, self.smoothing * len(self.vocabulary)
        total = math.fsum(
            math.log((self.pairs.get(step, 0) + k) / (self.words.get(step[0], 0) + size)) for step in pairwise(held)
        )
        return total, len(held) - 1


class Bigram:
    """The blind scorer over a ``BigramModel``.

    Args:
        reference: captions of papers that share none with the items.
        per_token: mean instead of sum, which favours no length.
    """

    def __init__(self, reference: Iterable[str] | BigramModel, *, per_token: bool = False) -> None:
        self.model = reference if isinstance(reference, BigramModel) else BigramModel(reference)
        self.per_token = per_token
        self.name = "bigram_per_token" if per_token else "bigram_sum"

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return the log-probability of the true and of the false caption, (N, 2)."""
        cache: dict[str, float] = {}
        for text in {t for p in pairs for t in (p.positive, p.negative)}:
            total, steps = self.model.log_probability(text)
            cache[text] = total / steps if self.per_token else total
        return np.array([[cache[p.positive], cache[p.negative]] for p in pairs], dtype=float).reshape(-1, 2)
