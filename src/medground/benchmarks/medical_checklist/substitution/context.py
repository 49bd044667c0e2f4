"""How a mention stands in its sentence: what goes before and after it.

A terminology has no parts of speech. A form that was seen in the same place can take a mention's place: "coronal" that
of "axial" in "axial CT", not "apex"; a word without an article that of another without one.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from medground.benchmarks.medical_checklist.words import DETERMINERS, FUNCTION, MODIFIERS

Before = Literal["article", "determiner", "open"]
After = Literal["word", "of", "end"]

_LAST = re.compile(r"(?:[\w'\u2019-]+\s+)+$")
_NEXT = re.compile(r"\s+([\w'\u2019-]+)")


class Context(NamedTuple):
    """Class of the word before (a/an, another determiner, anything else) and after (a content word, "of", else).

    Modifiers are passed over: "a large mass" has an article before "mass".
    """

    before: Before
    after: After


def context(caption: str, start: int, end: int) -> Context:
    """Return the context of a span.

    Example:
        >>> context("An axial view of the liver.", 3, 8)
        Context(before='article', after='word')
    """
    last = _LAST.search(caption[max(0, start - 60) : start])
    words = [w.lower() for w in last[0].split()] if last else []
    word = next((w for w in reversed(words) if w not in MODIFIERS), "")
    before: Before = "article" if word in ("a", "an") else "determiner" if word in DETERMINERS else "open"
    following = _NEXT.match(caption, end)
    after: After = "end"
    if following:
        low = following[1].lower()
        after = "of" if low == "of" else "end" if low in FUNCTION else "word"
    return Context(before, after)
