"""Which of several shown texts a reply chooses: "Caption A", "the second one", or an echo of one of them.

A reply that names two choices, or only denies one, chooses none. The article "a" is no choice.
"""

from __future__ import annotations

import re
from typing import ClassVar

from medground.readers._claims import REFUSAL
from medground.readers._text import fold, overlong, without_frame, without_markup
from medground.readers.base import Question, Reading, fingerprint_of

_ORDINALS = ("first|1st", "second|2nd", "third|3rd", "fourth|4th")
_NOUN = r"(?:captions?|options?|choices?|statements?|answers?|descriptions?|texts?|sentences?|reports?)"
_DENIAL = re.compile(
    rf"\b(?:not|neither|isn't|rather than|instead of)\s+(?:the\s+)?(?:{_NOUN}|first|second|1st|2nd|[ab]\b)"
    rf"|\b{_NOUN}[\W_]*[a-d]\b\W+(?:is|seems|looks|appears)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|inaccurate|not|worse)"
)


class Choice:
    """The rule-based reader of choices; it needs no model. The value is the index of the chosen text.

    Args:
        strict: take only the literal "Caption A" or "Caption B", outer blanks and one full stop aside, as published.
    """

    name: ClassVar[str] = "choice"
    version: ClassVar[str] = "1"

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def fingerprint(self) -> str:
        """See :class:`medground.readers.base.Reader`."""
        return fingerprint_of(self.name, self.version, self.strict, _DENIAL.pattern)

    def read(self, question: Question, reply: str) -> Reading:
        """Return the index of the chosen text among ``question.choices`` (A and B where none are given)."""
        count = max(2, len(question.choices))
        return _literal(reply, count) if self.strict else self._free(question, reply, count)

    def _free(self, question: Question, reply: str, count: int) -> Reading:
        text = without_markup(without_frame(fold(reply)))
        if overlong(text) or not re.search(r"\w", text):
            return Reading(None, "empty or overlong", "unreadable", reason="the reply holds no answer")
        named = _named(text, count)
        echoed = _echoed(text, question.choices)
        chosen = {index for index, _ in named} | set(echoed)
        if len(chosen) > 1:
            return Reading(None, "several choices", "unreadable", reason="it names more than one choice")
        denied = _DENIAL.search(text)
        if denied:
            return Reading(
                None, "denial", "unreadable", denied.span(), "it says which choice is wrong, not which is right"
            )
        if chosen:
            return Reading(named[0][0], "named", span=named[0][1]) if named else Reading(echoed[0], "echo")
        refused = REFUSAL.search(text)
        if refused:
            return Reading(None, "refusal", "refusal", refused.span(), "it declines the task")
        return Reading(None, "no rule", "unreadable", reason="it names no choice")


def _literal(reply: str, count: int) -> Reading:
    match = re.fullmatch(r"\s*Caption ([A-Z])\.?\s*", reply)
    index = ord(match[1]) - ord("A") if match else count
    if match is None or index >= count or "\u00a0" in reply:
        return Reading(None, "literal", "unreadable", reason="it is not literally the name of a choice")
    return Reading(index, "literal", span=match.span(1))


def _named(text: str, count: int) -> list[tuple[int, tuple[int, int]]]:
    """Return the choices that a folded text names by letter, number or ordinal, with the words' places."""
    letters = "".join(chr(ord("a") + index) for index in range(count))
    numbers = "".join(str(index + 1) for index in range(count))
    found = []
    both = re.search(rf"\b([{letters}])\s+(?:or|and|vs\.?|versus)\s+([{letters}])\b", text)
    if both:
        return [(letters.index(both[group]), both.span(group)) for group in (1, 2)]
    for pattern in (
        rf"\b{_NOUN}[\W_]*([{letters}{numbers}])\b(?!\s+(?:\w+\s+)?(?:is|are)\s+visible)",
        rf"\banswer(?:\s+is|\s+would be)?[\s:=\"']*(?:{_NOUN}\s+)?\(?([{letters}])\b(?=\W*\Z|\s*[.,;:)\"'}}])",
        rf"\A\W*([{letters}])\W*\Z",
        rf"\A\W*([{letters}])(?=\s*[,.:;)\]]|\s+(?:because|since|as|is\b))",
    ):
        for match in re.finditer(pattern, text):
            group = match.lastindex or 1
            mark = match[group]
            index = letters.index(mark) if mark in letters else numbers.index(mark)
            found.append((index, match.span(group)))
    for index, ordinal in enumerate(_ORDINALS[:count]):
        pattern = rf"\b(?:{ordinal})\b(?=\W*(?:{_NOUN}\b|one\b|\Z)|\W*(?:is|seems|fits|describes)\b)"
        found += [(index, match.span()) for match in re.finditer(pattern, text)]
    return sorted(found, key=lambda one: one[1])


def _echoed(text: str, choices: tuple[str, ...]) -> list[int]:
    said = _words(text)
    return [index for index, choice in enumerate(choices) if _words(choice) and _words(choice) in said]


def _words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} " if words else ""
