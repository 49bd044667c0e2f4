"""Verdicts of XBench on hand-made cells: every answer to each of the three questions, and why."""

from __future__ import annotations

from typing import Any

import pytest

from medground.benchmarks.results import Cell, Cells, Verdict
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.verdicts import verdicts

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


def answered(changes: dict[str, Any] | None = None, more: list[Cell] | None = None, **task: Any) -> dict[str, Verdict]:
    numbers = GOOD | (changes or {})
    cells = [cell(metric, values) for metric, values in numbers.items() if values is not None]
    plain = {"model": "M", "dataset": "D", "findings": ["Mass", "Nodule"], "seen": None, "cases_seen": 0}
    found = verdicts(Cells([*cells, *(more or [])]), [plain | {"patients_scored": 100} | task], PROTOCOL)
    return {verdict.question: verdict for verdict in found}


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
    ("question", "metric", "numbers", "answer"),
    [
        ("recognises", "auc", (0.6, 0.521, 0.7), "yes"),
        ("recognises", "auc", (0.6, 0.51, 0.7), "cannot be told"),
        ("recognises", "auc", (0.4, 0.3, 0.5), "no"),
        ("recognises", "auc", (0.9, None, None), "cannot be told"),
        ("points", "pointing_gain", (0.05, 0.021, 0.08), "yes"),
        ("points", "pointing_gain", (0.05, 0.019, 0.08), "cannot be told"),
        ("points", "pointing_gain", (0.0, -0.005, 0.005), "no"),
        ("overlaps", "dice_gain", (0.02, 0.011, 0.04), "yes"),
        ("overlaps", "dice_gain", (0.003, 0.001, 0.005), "no"),
        ("overlaps", "dice_gain", (0.02, -0.01, 0.05), "cannot be told"),
    ],
)
def test_the_interval_beyond_floor_and_margin_decides(
    question: str, metric: str, numbers: tuple[float, ...], answer: str
) -> None:
    assert answered({metric: numbers})[question].answer == answer


def test_overlap_at_a_searched_threshold_alone_is_in_part() -> None:
    got = answered({"dice@0.5": (0.1, 0.08, 0.12)})["overlaps"]
    assert got.answer == "in part"
    assert "at 0.5 it is not shown" in got.because


def test_nothing_is_claimed_on_few_patients() -> None:
    for verdict in answered(patients_scored=9).values():
        assert verdict.answer == "cannot be told"
        assert "few" in verdict.notes
        assert "Fewer than 10 patients" in verdict.because


def test_what_was_seen_in_training_is_noted() -> None:
    assert all("seen" in verdict.notes for verdict in answered(seen="boxes").values())


def test_findings_at_their_floor_are_named() -> None:
    groups = [
        cell("pointing_gain", (0.4, 0.3, 0.5), scope="class", group="Mass"),
        cell("pointing_gain", (0.1, -0.1, 0.3), scope="class", group="Nodule"),
    ]
    assert answered(more=groups)["points"].because.endswith("Not shown for Nodule.")


def test_what_is_undefined_is_not_answered() -> None:
    got = answered({"pointing": (None, None, None), "pointing_gain": (None, None, None)})["points"]
    assert got.answer == "cannot be told"
    assert "no localised case" in got.because


def test_scores_alone_are_asked_one_question() -> None:
    cells = Cells([cell("auc", (0.8, 0.75, 0.85))])
    task = {"model": "M", "dataset": "D", "findings": [], "seen": None, "cases_seen": 0, "patients_scored": 50}
    (verdict,) = verdicts(cells, [task], PROTOCOL)
    assert verdict.question == "recognises"
