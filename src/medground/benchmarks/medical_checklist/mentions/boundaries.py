"""Case folding that keeps offsets, word boundaries, hyphen compounds."""

from __future__ import annotations

HYPHENS = frozenset("-\u2010\u2011\u2013")


def fold(text: str) -> str:
    """Return ``text`` in lower case, as long as before.

    A character whose lower-case form is longer keeps itself, so that offsets never move.

    Example:
        >>> len(fold("İ-marked")) == len("İ-marked")
        True
    """
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether a span ends at word boundaries and is not tied to a further word by a hyphen.

    Letters and digits on either side make it a part of a word. A hyphen does so when a letter or digit follows it:
    "left" is no mention in "left-sided". Slash and apostrophe are boundaries.
    """
    if start > 0:
        before = text[start - 1]
        if before.isalnum() or (before in HYPHENS and start > 1 and text[start - 2].isalnum()):
            return False
    if end < len(text):
        after = text[end]
        if after.isalnum() or (after in HYPHENS and end + 1 < len(text) and text[end + 1].isalnum()):
            return False
    return True


def is_part_of_compound(text: str, start: int, end: int) -> bool:
    """Whether a hyphen ties an edge of the span to a further letter or digit."""
    left = start > 1 and text[start - 1] in HYPHENS and text[start - 2].isalnum()
    right = end + 1 < len(text) and text[end] in HYPHENS and text[end + 1].isalnum()
    return left or right
