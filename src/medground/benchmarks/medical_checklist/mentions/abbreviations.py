"""Abbreviations defined in a caption: "computed tomography (CT)" and "CT (computed tomography)".

Source: Schwartz and Hearst, A simple algorithm for identifying abbreviation definitions in biomedical text, PSB 2003.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BRACKET = re.compile(r"\(([^()]{2,120})\)")
_MOST_SHORT = 10


class Abbreviation(NamedTuple):
    """A short and a long form, each with its start."""

    short: str
    long: str
    short_start: int
    long_start: int


def find(text: str) -> list[Abbreviation]:
    """Return the abbreviations that a text defines, from left to right.

    Example:
        >>> find("Left ventricle (LV).")
        [Abbreviation(short='LV', long='Left ventricle', short_start=16, long_start=0)]
    """
    found = []
    for match in _BRACKET.finditer(text):
        inside, before = match[1].strip(), text[: match.start()].rstrip()
        inside_start = match.start(1) + len(match[1]) - len(match[1].lstrip())
        pair = _long_before(inside, inside_start, before) or _short_before(inside, inside_start, before)
        if pair:
            found.append(pair)
    return found


def _is_short(form: str) -> bool:
    return (
        2 <= len(form) <= _MOST_SHORT
        and len(form.split()) <= 2
        and any(c.isalpha() for c in form)
        and form[0].isalnum()
        and sum(c.isupper() for c in form) >= 2
    )


def _long_before(short: str, start: int, before: str) -> Abbreviation | None:
    """Match "long form (SF)"."""
    if not _is_short(short):
        return None
    most = min(len(short) + 5, len(short) * 2)
    words = list(re.finditer(r"\S+", before))
    window = words[max(0, len(words) - most)].start() if words else 0
    at = _match(short, before[window:])
    if at is None:
        return None
    return _checked(short, before[window + at :], start, window + at)


def _short_before(long: str, start: int, before: str) -> Abbreviation | None:
    """Match "SF (long form)"."""
    word = re.search(r"\S+$", before)
    if word is None or not _is_short(word[0]) or len(long) <= len(word[0]):
        return None
    return _checked(word[0], long, word.start(), start) if _match(word[0], long) == 0 else None


def _match(short: str, long: str) -> int | None:
    """Return where the best long form starts: letters of the short form from the right, the first at a word's start."""
    position = len(long) - 1
    for index in range(len(short) - 1, -1, -1):
        letter = short[index].lower()
        if not letter.isalnum():
            continue
        while position >= 0 and (
            long[position].lower() != letter or (index == 0 and position > 0 and long[position - 1].isalnum())
        ):
            position -= 1
        if position < 0:
            return None
        position -= 1
    first = long.rfind(" ", 0, position + 1) + 1
    return max(first, 0)


def _checked(short: str, long: str, short_start: int, long_start: int) -> Abbreviation | None:
    words = long.split()
    if len(long) <= len(short) or len(words) > len(short) + 5 or short in words:
        return None
    return Abbreviation(short, long, short_start, long_start)
