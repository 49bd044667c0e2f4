"""From a text to the name of a terminology: exact, normalised, then by character 3-grams.

A high similarity is not enough: "descending aorta" comes to .92 of "ascending aorta". Unless a profile says otherwise,
a fuzzy link needs the same head noun and the same modifiers, and 3-grams that no name has count in the norm (a library
that drops them lifts similarities when the terminology is small).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Measure = Literal["cosine", "jaccard", "dice", "set_cosine"]
TIE = 1e-9
_BLOCK = 2048


@dataclass(frozen=True, slots=True)
class Profile:
    """How texts are linked.

    Attributes:
        name: as it is printed.
        measure: similarity of 3-grams; ``cosine`` weighs them by tf-idf.
        threshold: least similarity of a fuzzy link.
        guarded: head noun and modifiers must agree.
        unknown_grams_count: 3-grams that no name has enter the norm.
    """

    name: str = "guarded"
    measure: Measure = "cosine"
    threshold: float = 0.85
    guarded: bool = True
    unknown_grams_count: bool = True


GUARDED = Profile()
PAPER = Profile("paper", threshold=0.7, guarded=False, unknown_grams_count=False)
PROFILES = {p.name: p for p in (GUARDED, PAPER)}


@dataclass(frozen=True, slots=True)
class Link:
    """The names that a text is linked to (all within 1e-9 of the best), and by which rule."""

    names: tuple[str, ...]
    score: float
    rule: Literal["exact", "folded", "normalised", "grams"]


def normalised(text: str) -> str:
    """Return ``text`` case-folded, hyphens as blanks, blanks collapsed.

    Example:
        >>> normalised("X-ray  Film")
        'x ray film'
    """
    return " ".join(re.sub(r"[-\u2010\u2011\u2013]", " ", text.casefold()).split())


def word_grams(text: str) -> list[str]:
    """Return 3-grams inside words, each word between two blanks; a word of one letter gives one gram.

    Example:
        >>> word_grams("CT x")
        [' ct', 'ct ', ' x ']
    """
    grams = []
    for word in text.lower().split():
        padded = f" {word} "
        grams += [padded[i : i + 3] for i in range(len(padded) - 2)]
    return grams


def plain_grams(text: str) -> list[str]:
    """Return 3-grams of the whole lower-cased text, blanks included."""
    low = text.lower()
    return [low[i : i + 3] for i in range(len(low) - 2)]


def set_similarity(first: Iterable[str], second: Iterable[str], measure: Measure) -> float:
    """Return Jaccard, Dice or cosine similarity of two sets of 3-grams; 0 where one is empty."""
    a, b = set(first), set(second)
    if not a or not b:
        return 0.0
    both = len(a & b)
    if measure == "jaccard":
        return both / len(a | b)
    return 2 * both / (len(a) + len(b)) if measure == "dice" else both / math.sqrt(len(a) * len(b))


def head_and_modifiers(text: str) -> tuple[str, frozenset[str]]:
    """Return the head noun (the last word before " of ") and all other words, each without endings of inflection.

    Example:
        >>> head_and_modifiers("fractures of the left femur")[0]
        'fracture'
    """
    words = normalised(text).split(" of ", 1)
    head_part = words[0].split()
    if not head_part:
        return "", frozenset()
    head = _singular(head_part[-1])
    rest = [*head_part[:-1], *(words[1].split() if len(words) > 1 else ())]
    return head, frozenset(_stem(w) for w in rest if w not in _SMALL)


def same_head(first: str, second: str) -> bool:
    """Whether two texts have the same head noun, plural s aside."""
    return head_and_modifiers(first)[0] == head_and_modifiers(second)[0]


def agree(first: str, second: str) -> bool:
    """Whether two texts say the same words: equal heads and equal modifiers up to inflection and British spelling."""
    (head_a, rest_a), (head_b, rest_b) = head_and_modifiers(first), head_and_modifiers(second)
    return _stem(head_a) == _stem(head_b) and rest_a == rest_b


_SMALL = frozenset({"the", "a", "an", "of", "and", "in", "to"})
_ENDINGS = ("ization", "isation", "ically", "ical", "ing", "ies", "ed", "es", "ic", "al", "s", "e", "y")


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _stem(word: str) -> str:
    """Return a word without one ending, ae and oe as e: enough for "image" and "imaging", never a shared prefix."""
    word = word.replace("ae", "e").replace("oe", "e")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


class NameIndex:
    """Names of a terminology, searched exactly: every similarity is computed, none approximated.

    Args:
        names: distinct names, in any order.
        profile: measure, threshold and guards.

    Example:
        >>> NameIndex(["computed tomography", "heart"]).link("Computed-Tomography").rule
        'normalised'
    """

    def __init__(self, names: Sequence[str], profile: Profile = GUARDED) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.profile = profile
        self._exact = set(self.names)
        self._folded = _group(self.names, str.casefold)
        self._normalised = _group(self.names, normalised)

    @cached_property
    def _grams(self) -> dict[str, int]:
        return {g: i for i, g in enumerate(sorted({g for n in self.names for g in word_grams(n)}))}

    @cached_property
    def idf(self) -> NDArray[np.float64]:
        """Smoothed inverse document frequency of each gram: ln((1 + n) / (1 + df)) + 1."""
        df = np.zeros(len(self._grams))
        for name in self.names:
            df[[self._grams[g] for g in set(word_grams(name))]] += 1
        return np.log((1 + len(self.names)) / (1 + df)) + 1

    @cached_property
    def _matrix(self) -> sparse.csc_array:
        return sparse.csc_array(self._vectors(self.names).T)

    def _vectors(self, texts: Sequence[str]) -> sparse.csr_array:
        """Return tf-idf (or 0/1) rows of unit length; unknown grams enter the norm where the profile says so."""
        binary = self.profile.measure != "cosine"
        unknown = math.log(1 + len(self.names)) + 1
        data: list[float] = []
        columns: list[int] = []
        starts = [0]
        for text in texts:
            counts = Counter(word_grams(text))
            known = {self._grams[g]: n for g, n in counts.items() if g in self._grams}
            weights = {c: 1.0 if binary else n * self.idf[c] for c, n in known.items()}
            square = sum(w * w for w in weights.values())
            if self.profile.unknown_grams_count or binary:
                square += sum((1.0 if binary else n * unknown) ** 2 for g, n in counts.items() if g not in self._grams)
            norm = math.sqrt(square) or 1.0
            columns += weights
            data += [w / norm for w in weights.values()]
            starts.append(len(columns))
        return sparse.csr_array((data, columns, starts), shape=(len(texts), len(self._grams)))

    def similarities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the similarity (texts, names) of every text to every name, in [0, 1]."""
        if not self.names or not texts:
            return np.zeros((len(texts), len(self.names)))
        cosine: NDArray[np.float64] = np.asarray((self._vectors(texts) @ self._matrix).todense())
        if self.profile.measure in ("cosine", "set_cosine"):
            return cosine
        a = np.array([len(set(word_grams(t))) for t in texts], dtype=float)[:, None]
        b = np.array([len(set(word_grams(n))) for n in self.names], dtype=float)[None, :]
        both = cosine * np.sqrt(a * b)
        below = a + b if self.profile.measure == "dice" else a + b - both
        above = 2 * both if self.profile.measure == "dice" else both
        table: NDArray[np.float64] = np.divide(above, below, out=np.zeros_like(both), where=below > 0)
        return table

    def link(self, text: str) -> Link | None:
        """Return the link of one text, or None."""
        return self.link_all([text])[0]

    def link_all(self, texts: Sequence[str]) -> list[Link | None]:
        """Return the link of each text, or None: equal texts are searched once, in blocks."""
        answers: dict[str, Link | None] = {}
        fuzzy = []
        for text in dict.fromkeys(texts):
            answers[text] = self._equal(text)
            if answers[text] is None and text.strip():
                fuzzy.append(text)
        for first in range(0, len(fuzzy), _BLOCK):
            block = fuzzy[first : first + _BLOCK]
            for text, row in zip(block, self.similarities(block), strict=True):
                answers[text] = self._nearest(text, row)
        return [answers[text] for text in texts]

    def _equal(self, text: str) -> Link | None:
        if text in self._exact:
            return Link((text,), 1.0, "exact")
        if names := self._folded.get(text.casefold()):
            return Link(names, 1.0, "folded")
        names = self._normalised.get(normalised(text))
        return Link(names, 1.0, "normalised") if names else None

    def _nearest(self, text: str, row: NDArray[np.float64]) -> Link | None:
        near = list(np.flatnonzero(row >= self.profile.threshold - TIE))
        if self.profile.guarded:
            near = [i for i in near if agree(text, self.names[i])]
        if not near:
            return None
        best = max(row[i] for i in near)
        return Link(tuple(self.names[i] for i in near if row[i] > best - TIE), float(best), "grams")


def _group(names: Sequence[str], key: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    held: dict[str, list[str]] = {}
    for name in names:
        held.setdefault(key(name), []).append(name)
    return {k: tuple(v) for k, v in held.items()}
