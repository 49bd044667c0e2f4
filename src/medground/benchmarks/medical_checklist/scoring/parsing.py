"""Which caption an answer in prose chooses, or none: an answer is never read by default.

Strict takes the two literal answers alone. Lenient takes "caption a/b" in any case and with marks between, first and
second, a bare letter where it is the answer, and the echo of one caption. An answer that names both captions or
none, or only denies one, is unparsed.
"""

from __future__ import annotations

import re
from typing import Literal

Choice = Literal["A", "B"]
Policy = Literal["excluded", "wrong", "half"]
POLICIES: tuple[Policy, ...] = ("excluded", "wrong", "half")

_STRICT = re.compile(r"[ \t\r\n]*Caption ([AB])\.?[ \t\r\n]*")
_CAPTION = re.compile(r"\bcaptions?[\s:*\"'(\[-]*\b([ab12])\b(?![-'\u2019\w])", re.IGNORECASE)
_OPTION = re.compile(
    r"\b(?:option|answer|answer is|choice)\s*[:*\"'(\[]*\s*\b([ab])\b(?![-'\u2019\w])(?!\s+[a-z]{3,})", re.IGNORECASE
)
_BARE = re.compile(r"[\s*\"'(\[]*([ab])[\s*\"').\]]*", re.IGNORECASE)
_OPENING = re.compile(r"\s*\(?([AB])\)?\s*,")
_ORDINAL = re.compile(r"\b(first|1st|second|2nd)\b", re.IGNORECASE)
_MARKS = re.compile(r"</?s>|<\|[^|<>]{1,40}\|>|\*+|`+")
_DENIAL = re.compile(
    r"\b(?:not|isn't|wrong|incorrect|false|neither|nor|inaccurate|cannot|rather than|unlikely|instead)\b", re.IGNORECASE
)
_LETTERS: dict[str, Choice] = {
    "a": "A",
    "b": "B",
    "1": "A",
    "2": "B",
    "first": "A",
    "1st": "A",
    "second": "B",
    "2nd": "B",
}


def strict(answer: str) -> Choice | None:
    """Return the choice of a literal "Caption A" or "Caption B" (a final full stop and outer blanks allowed)."""
    match = _STRICT.fullmatch(answer)
    return _LETTERS[match[1].lower()] if match else None


def lenient(answer: str, caption_a: str = "", caption_b: str = "") -> Choice | None:
    """Return the caption that an answer chooses, or None.

    Args:
        answer: the raw text.
        caption_a: caption A, to know its echo.
        caption_b: caption B.

    Example:
        >>> lenient("I think it is (b)."), lenient("caption b, since the lesion is small"), lenient("A or B?")
        (None, 'B', None)
    """
    text = _MARKS.sub(" ", answer).strip()
    rest, echoes = _without_echoes(text, caption_a, caption_b)
    named = {_LETTERS[m[1].lower()] for pattern in (_CAPTION, _OPTION) for m in pattern.finditer(rest)}
    if bare := _BARE.fullmatch(rest):
        named.add(_LETTERS[bare[1].lower()])
    if opening := _OPENING.match(rest):
        named.add(_LETTERS[opening[1].lower()])
    if not named or _ORDINAL.search(rest):
        named |= _ordinals(rest)
    choices = named | echoes
    if len(choices) != 1 or _DENIAL.search(rest):
        return None
    return choices.pop()


def _ordinals(text: str) -> set[Choice]:
    """Return first and second where they stand for a caption: alone, or beside the word."""
    if not re.search(r"caption|option|one\b|description", text, re.IGNORECASE) and len(text.split()) > 3:
        return set()
    return {_LETTERS[m[1].lower()] for m in _ORDINAL.finditer(text)}


def _without_echoes(text: str, caption_a: str, caption_b: str) -> tuple[str, set[Choice]]:
    """Return an answer without full copies of the captions, and which captions it copied."""
    echoes: set[Choice] = set()
    pairs: list[tuple[Choice, str]] = [("A", caption_a), ("B", caption_b)]
    for choice, caption in sorted(pairs, key=lambda p: -len(p[1])):
        core = caption.strip().rstrip(".")
        if len(core) < 3:
            continue
        pattern = re.compile(rf"(?<!\w){re.escape(core)}(?!\w)", re.IGNORECASE)
        if pattern.search(text):
            echoes.add(choice)
            text = pattern.sub(" ", text)
    return text, echoes
