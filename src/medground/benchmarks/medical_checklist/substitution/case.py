"""Capital letters of a replacement: those of the mention that it takes the place of."""

from __future__ import annotations

import re

from medground.benchmarks.medical_checklist.mentions.dictionary import is_acronym

_OPENING = "\"'\u201c\u2018\u00ab"


def starts_sentence(caption: str, start: int) -> bool:
    """Whether a span stands at the start of the caption or of a sentence in it; opening quotes are skipped."""
    left = caption[:start].rstrip(_OPENING)
    if not left.strip():
        return True
    return left != left.rstrip() and left.rstrip()[-1] in ".!?" and not _ABBREVIATED.search(left.rstrip())


_ABBREVIATED = re.compile(
    r"(?:\b(?:fig|figs|vs|no|dr|e\.g|i\.e|cf|approx|al|st|resp|ca|nr)|\b[A-Za-z])\.$", re.IGNORECASE
)


def fitted(caption: str, start: int, end: int, alias: str, term: str) -> str:
    """Return ``term`` with the case pattern of the mention.

    A capital that the mention has against its name, or owes to the start of a sentence, goes over to the first letter
    of the term. Where every word of a mention of several words is capitalised against its name, each word of the term
    is. Otherwise the term keeps its own spelling: acronyms and proper names their capitals, ordinary words none.

    Args:
        caption: the whole caption.
        start: first code point of the mention.
        end: one past its last.
        alias: the mention's name as the terminology spells it.
        term: the replacement as its terminology spells it.
    """
    written = caption[start:end]
    words, names = written.split(), alias.split()
    titled = (
        len(words) > 1
        and len(words) == len(names)
        and all(w[:1].isupper() and n[:1].islower() for w, n in zip(words, names, strict=True))
    )
    if titled:
        return re.sub(r"(?<![\w\u2019'])[^\W\d_]", lambda m: m[0].upper(), term)
    if written.isupper() and not is_acronym(alias) and len(written) > 1:
        return term.upper()
    risen = written[:1].isupper() and alias[:1].islower()
    if risen or (written[:1].isupper() and starts_sentence(caption, start)):
        return term[:1].upper() + term[1:]
    return term
