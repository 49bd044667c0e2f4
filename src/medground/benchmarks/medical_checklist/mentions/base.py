"""A mention: a span of a caption that names one concept or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Mention:
    """A span, in code points of the caption, half open.

    Attributes:
        start: first code point.
        end: one past the last.
        text: the span as written.
        alias: the name of the terminology that it matched, in the terminology's spelling.
        concept_ids: all concepts that this name has, sorted.
        tuis: all types of those concepts, sorted; types outside the fifteen too.
        score: similarity of text and alias, 1 where they are equal but for case.
    """

    start: int
    end: int
    text: str
    alias: str
    concept_ids: tuple[str, ...]
    tuis: tuple[str, ...]
    score: float = 1.0


class MentionFinder(Protocol):
    """Finds mentions; one file a finder."""

    def find(self, caption: str) -> Sequence[Mention]:
        """Return mentions from left to right, without overlap."""
        ...

    def fingerprint(self) -> str:
        """Return what identifies the finder's answers: its terminology and its rules."""
        ...
