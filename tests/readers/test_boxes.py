"""Boxes in free replies: numbers in brackets, nothing, and what holds none."""

from __future__ import annotations

import pytest

from medground.readers.base import Question
from medground.readers.boxes import Boxes

QUESTION = Question(finding="Mass")


@pytest.mark.parametrize(
    ("reply", "boxes"),
    [
        ("[10, 20, 30, 40]", [(10, 20, 30, 40)]),
        ('{"boxes": [[10, 20, 30, 40], [1, 2, 3.5, 4]]}', [(10, 20, 30, 40), (1, 2, 3.5, 4)]),
        ("The mass is at (0.1, 0.2, 0.5, 0.6).", [(0.1, 0.2, 0.5, 0.6)]),
        ("**[10,20,30,40]** is where I see it", [(10, 20, 30, 40)]),
        ("<think>maybe [1, 2, 3, 4]</think> [5, 6, 7, 8]", [(5, 6, 7, 8)]),
        ("[-3, 0, 12, 40]", [(-3, 0, 12, 40)]),
        ("[]", []),
        ('{"boxes": []}', []),
        ("There is no mass in this picture.", []),
    ],
)
def test_boxes_are_read_wherever_they_stand(reply: str, boxes: list[tuple[float, ...]]) -> None:
    reading = Boxes().read(QUESTION, reply)
    assert (reading.outcome, list(reading.value)) == ("read", boxes)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("", "unreadable"),
        ("It lies in the left lower lung.", "unreadable"),
        ("[10, 20, 30]", "unreadable"),
        ("[10, 20, 30, 40, 50]", "unreadable"),
        ("10, 20, 30, 40", "unreadable"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("[1, 2, 3, 4]" + "a" * 20_000, "unreadable"),
    ],
)
def test_what_holds_no_box_is_no_empty_place(reply: str, outcome: str) -> None:
    reading = Boxes().read(QUESTION, reply)
    assert (reading.outcome, reading.value) == (outcome, None)


def test_the_span_is_where_the_numbers_stand() -> None:
    reply = "Here: [1, 2, 3, 4] and [5, 6, 7, 8]."
    start, end = Boxes().read(QUESTION, reply).span or (0, 0)
    assert reply[start:end] == "[1, 2, 3, 4] and [5, 6, 7, 8]"
    assert Boxes().fingerprint() == Boxes().fingerprint()
