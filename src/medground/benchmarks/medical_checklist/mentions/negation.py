"""Negated and hypothetical mentions, by cue and scope (NegEx: Chapman et al., J Biomed Inform 2001).

A caption stays true when a term that it denies is exchanged for another absent one: such mentions make no item.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from medground.benchmarks.medical_checklist.mentions.boundaries import fold

DENIED = (
    "no evidence of", "no evidence for", "no sign of", "no signs of", "no definite", "no obvious", "no", "not",
    "without",
    "absence of", "absent", "lack of", "lacking", "loss of", "free of", "free from", "clear of", "negative for",
    "denies",
    "denied", "never", "neither", "nor", "none of", "rule out", "rules out", "ruled out", "ruling out", "exclude",
    "excludes", "excluded", "excluding", "to exclude", "rather than", "instead of", "failed to show", "fails to show",
    "cannot see", "resolution of", "resolved", "disappearance of", "removal of", "non", "un", "history of", "previous",
)  # fmt: skip
OPEN = (
    "suspected", "suspicious for", "suspicion of", "suspicious of", "possible", "possibly", "probable", "probably",
    "presumed", "potential", "questionable", "concern for", "concerning for", "may be", "might be", "maybe",
    "may represent", "could be", "could represent", "likely", "if", "whether", "unless", "risk of", "versus", "vs",
    "mimicking", "mimics", "simulating", "differential diagnosis", "equivocal for",
)  # fmt: skip
AFTER = (
    "was ruled out", "were ruled out", "is ruled out", "are ruled out", "ruled out", "was excluded", "were excluded",
    "is excluded", "is absent", "are absent", "was absent", "were absent", "absent", "not seen", "not visible",
    "not identified", "not detected", "not present", "not demonstrated", "not visualized", "not shown", "not evident",
    "has resolved", "have resolved", "resolved", "had resolved", "disappeared", "has disappeared", "have disappeared",
    "unlikely", "is unlikely", "is suspected", "was suspected", "were suspected", "suspected", "cannot be excluded",
    "not excluded", "is possible", "not done", "no longer",
)  # fmt: skip

_STOP = re.compile(r"[.;:!?]\s|[.;:!?]$|\n|,|\b(?:but|however|although|though|except|yet|while|whereas|which|that)\b")
_STOP_AFTER = re.compile(r"[.;:!?]\s|[.;:!?]$|\n|,|\b(?:but|however|although|though|and|with|while|whereas)\b")
_LONGEST = 60
"""Characters of a cue's reach: beyond, another clause has begun even where no mark says so."""


def _cues(cues: Sequence[str]) -> re.Pattern[str]:
    ordered = "|".join(re.escape(c).replace(r"\ ", r"\s+") for c in sorted(cues, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{ordered})(?![\w-])")


_DENIED, _OPEN, _AFTER = _cues(DENIED), _cues(OPEN), _cues(AFTER)
_PREPOSITION = re.compile(r"\b(?:on|in|at|by|from|with|after|near|over|of the|for)\b")
_NOT_A_CUE = re.compile(
    r"\bno\.\s*\d|\bnot only\b|\bno (?:change|increase|difference)\b|\bnot (?:is it|to be confused)\b|"
    r"\b(?:was|were|is|are|been|be)\s+(?:then\s+|thus\s+)?(?:ruled out|excluded|suspected|resolved|absent|likely)\b|"
    r"\b(?:possible|likely) to\b|\bhistory of\s+(?=\d)"
)


def is_negated(caption: str, start: int, end: int) -> bool:
    """Whether a cue before or after a span, inside its clause, denies it or leaves it open.

    Args:
        caption: the whole caption.
        start: first code point of the span.
        end: one past its last.

    Example:
        >>> is_negated("No effusion, a nodule.", 3, 11), is_negated("No effusion, a nodule.", 15, 21)
        (True, False)
    """
    text = fold(caption)
    left = text[max(0, start - _LONGEST) : start]
    for mark in _STOP.finditer(left):
        left_from = mark.end()
        left = " " * left_from + left[left_from:]
    left = _NOT_A_CUE.sub(lambda m: " " * len(m[0]), left)
    if _DENIED.search(left):
        return True
    # "Suspected hernia on the film" leaves the hernia open, not the film: a doubt ends at the next preposition.
    for cue in _OPEN.finditer(left):
        if not _PREPOSITION.search(left, cue.end()):
            return True
    right = text[end : end + _LONGEST]
    right = _STOP_AFTER.split(right, maxsplit=1)[0]
    if re.match(r"\s*\(\?\)", text[end : end + 6]):
        return True
    found = _AFTER.search(right)
    return found is not None and len(right[: found.start()].split()) <= 3
