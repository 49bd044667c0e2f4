"""Patterns of words, searched in small letters: an order of magnitude faster than ignoring the case."""

from __future__ import annotations

import re
from collections.abc import Iterator


class Words:
    """Alternatives that begin at the start of a word.

    Args:
        pattern: in small letters.
        also: what may stand anywhere, such as signs and endings.

    Example:
        >>> Words("heart|lungs?").search("The Heart").start()
        4
    """

    def __init__(self, pattern: str, also: str = "") -> None:
        self._compiled = re.compile(rf"(?<![a-z])(?:{pattern})" + (f"|{also}" if also else ""))

    def search(self, text: str) -> re.Match[str] | None:
        """The first place, as in ``re``; the text of the match is in small letters."""
        return self._compiled.search(small(text))

    def match(self, text: str) -> re.Match[str] | None:
        """At the beginning alone."""
        return self._compiled.match(small(text))

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Every place, in order."""
        return self._compiled.finditer(small(text))


def small(text: str) -> str:
    """The text in small letters, every letter in its place."""
    low = text.lower()
    return low if len(low) == len(text) else text
