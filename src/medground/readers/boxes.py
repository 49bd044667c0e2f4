"""Where a finding is, from a free reply: every four numbers in one pair of brackets are a box.

"[12, 40, 200, 310]", "(0.1, 0.2, 0.5, 0.6)" and JSON objects that hold such lists are read alike; what the numbers are
shares or pixels of is not guessed. A reply that says in words that the finding is nowhere holds no box, and is read as
such; one with neither is unreadable.
"""

from __future__ import annotations

import re
from typing import ClassVar

from medground.readers._claims import REFUSAL
from medground.readers._text import fold, overlong, without_frame, without_markup
from medground.readers.base import Question, Reading, fingerprint_of
from medground.readers.yes_no import YesNo

_NUMBER = r"\s*(-?\d{1,6}(?:\.\d{1,12})?)\s*"
_BOX = re.compile(rf"[\[(<]{','.join([_NUMBER] * 4)}[\])>]")
_NONE = re.compile(r"\[\s*\]")


class Boxes:
    """The rule-based reader of boxes; it needs no model. The value is a tuple of ``(x0, y0, x1, y1)``, or empty."""

    name: ClassVar[str] = "boxes"
    version: ClassVar[str] = "1"

    def fingerprint(self) -> str:
        """See :class:`medground.readers.base.Reader`."""
        return fingerprint_of(self.name, self.version, _BOX.pattern, _NONE.pattern, YesNo().fingerprint())

    def read(self, question: Question, reply: str) -> Reading:
        """Return the boxes of a reply, in the order in which they stand; numbers as they were written.

        Args:
            question: ``finding`` names what is sought.
            reply: as it came.
        """
        text = without_markup(without_frame(fold(reply)))
        if overlong(text) or not re.search(r"[\w\[]", text):
            return Reading(None, "empty or overlong", "unreadable", reason="the reply holds no answer")
        matches = list(_BOX.finditer(text))
        if matches:
            boxes = tuple(tuple(float(number) for number in match.groups()) for match in matches)
            return Reading(boxes, "numbers in brackets", span=(matches[0].start(), matches[-1].end()))
        empty = _NONE.search(text)
        if empty:
            return Reading((), "an empty list", span=empty.span())
        if REFUSAL.search(text):
            return Reading(None, "refusal", "refusal", reason="it declines the task")
        told = YesNo().read(question, reply)
        if told.value == "no":
            return Reading((), f"none: {told.rule}", span=told.span)
        return Reading(None, "no box", "unreadable", reason="no four numbers stand in brackets")
