"""Words of one kind that can stand for one another, and questions with one of them replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Kinds = Sequence[Sequence[str]]

KINDS: Kinds = (
    ("red", "green", "blue", "yellow"),
    ("circle", "square", "triangle", "pentagon"),
    ("left of", "right of", "above", "below"),
    ("left", "right"),
)
"""Colours, shapes and directions; earlier kinds come first where a word is of two."""

_ENDS = ",.?!;:"


@dataclass(frozen=True)
class Phrase:
    """A phrase of a question that others of its kind could replace.

    Attributes:
        start: position of its first word.
        stop: position after its last word.
        others: what can stand in its place, in the order of the kind.
    """

    start: int
    stop: int
    others: tuple[str, ...]


def phrases(words: Sequence[str], kinds: Kinds = KINDS) -> list[Phrase]:
    """Return the phrases of a question that are of some kind, longest first at every word, without overlap.

    Plurals, capitals and marks at the end of a word are passed over when a phrase is read, and kept when it is
    replaced.

    Args:
        words: the question split at blanks.
        kinds: phrases that can stand for one another, a group each.

    Example:
        >>> [(p.start, p.stop, p.others[0]) for p in phrases("How many circles are left of red square?".split())]
        [(2, 3, 'square'), (4, 6, 'right of'), (6, 7, 'green'), (7, 8, 'circle')]
    """
    known = sorted(((tuple(p.lower().split()), kind) for kind in kinds for p in kind), key=lambda known: -len(known[0]))
    plain = [_plain(word) for word in words]
    phrases, at = [], 0
    while at < len(words):
        for spelt, kind in known:
            stop = at + len(spelt)
            if stop <= len(words) and all(_same(p, s) for p, s in zip(plain[at:stop], spelt, strict=True)):
                others = tuple(o for o in kind if tuple(o.lower().split()) != spelt)
                phrases.append(Phrase(at, stop, others))
                at = stop
                break
        else:
            at += 1
    return phrases


def replaced(words: Sequence[str], phrase: Phrase, other: str) -> str:
    """Return the question with a phrase replaced; its plural, capital and end mark are kept."""
    return " ".join([*words[: phrase.start], spelt_like(words, phrase, other), *words[phrase.stop :]])


def spelt_like(words: Sequence[str], phrase: Phrase, other: str) -> str:
    """Return another phrase with the plural, the capital and the end mark of the one in the question."""
    last = words[phrase.stop - 1]
    bare = last.rstrip(_ENDS)
    plural = bare.endswith("s") and not bare.endswith("ss") and not other.endswith("s")
    text = other + ("s" if plural else "") + last[len(bare) :]
    return text[:1].upper() + text[1:] if words[phrase.start][:1].isupper() else text


def _plain(word: str) -> str:
    return word.rstrip(_ENDS).lower()


def _same(word: str, known: str) -> bool:
    return word in (known, known + "s")
