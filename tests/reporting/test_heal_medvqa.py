"""The report of HEAL-MedVQA: specimens are shown only where they are pictures."""

from __future__ import annotations

from medground.reporting.heal_medvqa.component import specimens

PNG = "data:image/png;base64,iVBORw0KGgo="


def specimen(**changes: object) -> dict[str, object]:
    return {
        "model": "m",
        "finding": "Mass",
        "anatomy": "heart",
        "base": "yes",
        "answer": "no",
        "residue_hard": 0.25,
        "before": PNG,
        "after": PNG,
    } | changes


def test_a_specimen_says_what_was_answered_before_and_after() -> None:
    (shown,) = specimens({"specimens": [specimen()]})
    assert shown["title"] == "Mass in the heart"
    assert shown["caption"] == "m: yes before, no after, 25 % of the lesion left"
    assert shown["before"] == PNG


def test_what_is_no_picture_is_not_shown() -> None:
    wrong = ["javascript:alert(1)", 'data:image/png;base64,x" onload="y', "data:image/svg+xml;base64,AA", None]
    assert not list(specimens({"specimens": [specimen(after=value) for value in wrong]}))
    assert not list(specimens({}))
