"""Verdicts of XBench on hand-made cells: every answer to each of the three questions, and why."""

from __future__ import annotations

from typing import Any

import pytest

from medground.benchmarks.results import Cell, Cells, Verdict
from medground.benchmarks.xbench.claims import ClaimResult
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.verdicts import verdicts
from medground.metrics.decide import Decision

PROTOCOL = resolve_protocol("xbench")
GOOD: dict[str, tuple[float | None, float | None, float | None]] = {
    "auc": (0.8, 0.75, 0.85),
    "pointing": (0.6, 0.55, 0.65),
    "pointing_prior": (0.3, 0.25, 0.35),
    "pointing_gain": (0.3, 0.25, 0.35),
    "dice@0.5": (0.3, 0.28, 0.32),
    "dice@best": (0.35, 0.33, 0.37),
    "dice_floor": (0.12, 0.11, 0.13),
    "dice_gain": (0.23, 0.21, 0.25),
}


def cell(metric: str, numbers: tuple[float | None, float | None, float | None], **more: Any) -> Cell:
    value, low, high = numbers
    reason = "no localised case" if value is None else None
    place = {"scope": "macro", "benchmark": "xbench", "model": "M", "dataset": "D"} | more
    return Cell(metric=metric, value=value, low=low, high=high, n=8, reason=reason, **place)


def claim(word: str = "better", *, metric: str, classes: dict[str, str] | None = None, **more: Any) -> ClaimResult:
    def said(word: str) -> Decision:
        return Decision(word, "the figures decide", 0.02, enough=word != "cannot be told")  # type: ignore[arg-type]

    by_class = {finding: said(each) for finding, each in (classes or {"Mass": "better", "Nodule": "better"}).items()}
    unsearched = said(more["unsearched"]) if "unsearched" in more else None
    return ClaimResult(said(word), by_class, metric, 0.02, unsearched)


def claims(**changes: ClaimResult) -> dict[str, ClaimResult]:
    return {
        "recognises": claim(metric="auc"),
        "points": claim(metric="pointing"),
        "overlaps": claim(metric="dice@best", unsearched="better"),
    } | changes


def answered(changes: dict[str, Any] | None = None, **more: Any) -> dict[str, Verdict]:
    cells = [cell(metric, values) for metric, values in (GOOD | (changes or {})).items()]
    task = {"model": "M", "dataset": "D", "findings": ["Mass", "Nodule"], "seen": None, "cases_seen": 0}
    task |= {"states": {"ok": 8}}
    said = claims(**{question: c for question, c in more.items() if isinstance(c, ClaimResult)})
    task |= {key: value for key, value in more.items() if not isinstance(value, ClaimResult)}
    return {v.question: v for v in verdicts(Cells(cells), [task], PROTOCOL, {("M", "D"): said})}


def test_a_model_that_looks_is_told_so_three_times_with_the_cells_that_decided() -> None:
    got = answered()
    assert {question: v.answer for question, v in got.items()} == dict.fromkeys(
        ("recognises", "points", "overlaps"), "yes"
    )
    assert got["points"].roles["difference"].value == 0.3
    assert got["points"].roles["floor"].value == 0.3
    assert set(got["overlaps"].roles) == {"headline", "floor", "difference", "companion"}
    assert got["overlaps"].notes == ("searched",)
    assert got["points"].notes == ()


@pytest.mark.parametrize(
    ("word", "answer"), [("better", "yes"), ("worse", "no"), ("equivalent", "no"), ("cannot be told", "cannot be told")]
)
def test_the_answer_is_the_decisions(word: str, answer: str) -> None:
    got = answered(points=claim(word, metric="pointing"))["points"]
    assert got.answer == answer
    assert "The figures decide." in got.because


def test_overlap_at_a_searched_threshold_alone_is_in_part() -> None:
    got = answered(overlaps=claim(metric="dice@best", unsearched="cannot be told"))["overlaps"]
    assert got.answer == "in part"
    assert "At the fixed threshold 0.5 this is not shown." in got.because


def test_too_little_evidence_is_noted() -> None:
    got = answered(recognises=claim("cannot be told", metric="auc"))["recognises"]
    assert got.notes == ("few",)


def test_what_was_seen_in_training_is_noted() -> None:
    assert all("seen" in verdict.notes for verdict in answered(seen="boxes").values())


def test_findings_that_fail_are_named() -> None:
    got = answered(points=claim(metric="pointing", classes={"Mass": "better", "Nodule": "worse"}))["points"]
    assert got.answer == "in part"
    assert got.because.endswith("Not so for Nodule.")
    untold = answered(points=claim(metric="pointing", classes={"Mass": "better", "Nodule": "cannot be told"}))["points"]
    assert untold.answer == "yes"
    assert untold.because.endswith("Cannot be told for Nodule.")


def test_scores_alone_are_asked_one_question() -> None:
    cells = Cells([cell("auc", (0.8, 0.75, 0.85))])
    task = {
        "model": "M",
        "dataset": "D",
        "findings": [],
        "seen": None,
        "cases_seen": 0,
        "patients_scored": 50,
        "states": {"ok": 8},
    }
    (verdict,) = verdicts(cells, [task], PROTOCOL, {("M", "D"): {"recognises": claim(metric="auc")}})
    assert verdict.question == "recognises"


@pytest.mark.parametrize(
    ("states", "why"),
    [({}, "The dataset has no regions."), ({"absent": 8}, "It gives no maps."), ({"absent": 7, "flat": 1}, "")],
)
def test_maps_that_nobody_could_give_are_not_asked_for(states: dict[str, int], why: str) -> None:
    told = answered(states=states)
    assert told["recognises"].answer == "yes"
    for question in ("points", "overlaps"):
        assert (told[question].answer == "not asked") == bool(why)
        assert not why or (told[question].because, told[question].headline) == (why, None)
