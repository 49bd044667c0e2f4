"""What a reader is: it says what a reply means, by a named and versioned rule, and never by default.

A reader is a class in a file of its own with a ``name`` and a ``version``. It sees a question and the text of a reply,
no model and no picture, so that a finished run can be read again by another reader.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

Status = Literal["read", "uncertain", "refusal", "unreadable"]


@dataclass(frozen=True)
class Question:
    """What was asked.

    Attributes:
        text: the words of the question.
        finding: the finding that a yes or no is about, by any of its names.
        region: the anatomy that is asked about, in words ("right lower lung"); empty: the whole picture.
        choices: the texts that a choice is among.
        vocabulary: findings by their names in the dataset; empty: all that the lexicon knows.
    """

    text: str = ""
    finding: str = ""
    region: str = ""
    choices: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the question as JSON-like data."""
        return {
            "text": self.text,
            "finding": self.finding,
            "region": self.region,
            "choices": list(self.choices),
            "vocabulary": list(self.vocabulary),
        }


@dataclass(frozen=True)
class Reading:
    """What a reply means.

    Attributes:
        value: what was read: ``"yes"`` or ``"no"``, the index of a choice, or a sorted tuple of findings. None unless
            the outcome is ``read``.
        rule: name of the rule that decided.
        outcome: ``read``; ``uncertain``: the task was taken and not committed to; ``refusal``: the task was declined,
            or no picture was seen; ``unreadable``: nothing that answers, or two answers that exclude each other.
        span: start and end of the words that decided, in the reply as it came; None: the whole of it.
        reason: one sentence, where the outcome needs one.
        details: more of what was read, JSON-like; see each reader.
    """

    value: Any
    rule: str
    outcome: Status = "read"
    span: tuple[int, int] | None = None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the reading as JSON-like data."""
        return {
            "value": list(self.value) if isinstance(self.value, tuple) else self.value,
            "rule": self.rule,
            "outcome": self.outcome,
            "span": None if self.span is None else list(self.span),
            "reason": self.reason,
            "details": dict(self.details),
        }


@runtime_checkable
class Reader(Protocol):
    """Says what a reply means."""

    name: ClassVar[str]
    version: ClassVar[str]

    def read(self, question: Question, reply: str) -> Reading:
        """Return what a reply means; an answer that cannot be read stays undefined."""

    def fingerprint(self) -> str:
        """A hash over the rules' version and everything that they read with; part of a reading's identity."""


def fingerprint_of(*parts: Any) -> str:
    """Return a short hash (16 hex digits) of JSON-like parts."""
    text = json.dumps(parts, sort_keys=True, default=repr, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
