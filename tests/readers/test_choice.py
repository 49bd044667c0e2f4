"""Choices between captions: golden answers, the published literal rule, more than two choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from medground.readers.base import Question
from medground.readers.choice import Choice

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "readers" / "choice.json").read_text())
QUESTION = Question(choices=(GOLDEN["caption_a"], GOLDEN["caption_b"]))


def letter(reader: Choice, text: str) -> str:
    value = reader.read(QUESTION, text).value
    return "unparsed" if value is None else "AB"[value]


@pytest.mark.parametrize("case", GOLDEN["answers"], ids=lambda case: repr(case["text"])[:40])
def test_golden_answers(case: dict[str, Any]) -> None:
    assert letter(Choice(), case["text"]) in case["accept"]
    if case["strict"] is not None:
        assert letter(Choice(strict=True), case["text"]) == case["strict"]


def test_more_than_two_choices() -> None:
    question = Question(choices=("a cat", "a dog", "a cow"))
    assert Choice().read(question, "The third one.").value == 2
    assert Choice().read(question, "Option C").value == 2
    assert Choice().read(question, "I see a dog").value == 1
    assert Choice().read(QUESTION, "Option C").value is None


def test_a_refusal_is_told_from_an_unreadable_answer() -> None:
    assert Choice().read(QUESTION, "I'm sorry, but I can't assist with that.").outcome == "refusal"
    assert Choice().read(QUESTION, "Both are fine.").outcome == "unreadable"


def test_strict_and_lenient_reading_are_two_readers() -> None:
    assert Choice().fingerprint() != Choice(strict=True).fingerprint()
