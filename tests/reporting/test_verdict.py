"""Verdicts on hand-made cells: every answer, every reason, and what must be said at once."""

from __future__ import annotations

from typing import Any

import pytest

from medground.benchmarks.xbench.cells import Cell
from medground.reporting.verdict import NEGLIGIBLE, Verdict, judge


def cell(metric: str, value: float | None, low: float | None = None, high: float | None = None, **more: Any) -> Cell:
    return Cell("M", "D", "main", "macro", "", metric, value, low, high, n=8, **more)


GOOD = {
    "auc": (0.8, 0.75, 0.85),
    "pointing": (0.6, 0.55, 0.65),
    "pointing_prior": (0.3, 0.25, 0.35),
    "dice@0.5": (0.3, 0.28, 0.32),
    "dice@best": (0.35, 0.33, 0.37),
    "dice_floor": (0.12, 0.11, 0.13),
    "dice_gain": (0.23, 0.21, 0.25),
    "dice_gap": (0.05, 0.04, 0.06),
}


def task(**changes: Any) -> dict[str, Any]:
    plain = {
        "model": "M",
        "dataset": "D",
        "kind": "zero-shot",
        "seen": None,
        "unverified": None,
        "states": {"ok": 100},
        "pairs": 100,
        "cases": 90,
        "cases_failed": 0,
        "cases_seen": 0,
        "reasons": {},
    }
    return plain | changes


def verdict(changes: dict[str, Any] | None = None, *, optimistic: bool = True, **of_task: Any) -> Verdict:
    values: dict[str, Any] = GOOD | (changes or {})
    cells = {m: v if isinstance(v, Cell) else cell(m, *v) for m, v in values.items() if v is not None}
    return judge(task(**of_task), cells.get, fixed=0.5, optimistic=optimistic)


def test_better_than_both_maps_without_a_picture_is_a_yes() -> None:
    found = verdict()
    assert (found.answer, found.word, found.warnings) == ("yes", "Yes", ())
    assert "60.0 [55.0, 65.0] %" in found.sentences[1]
    assert "more often than that of the class prior: 30.0 [25.0, 35.0] %" in found.sentences[1]
    assert "35.0 [33.0, 37.0]: all foreground has 12.0, the gain is 23.00 [21.00, 25.00] points" in found.sentences[2]


@pytest.mark.parametrize(
    ("gain", "answer", "said"),
    [
        ((0.03, 0.02, 0.04), "yes", "overlap better"),
        ((0.004, 0.001, 0.006), "partly", "overlap no better"),
        ((0.02, -0.01, 0.05), "partly", "overlap not clearly better"),
        ((0.02, None, None), "partly", "overlap not clearly better"),
    ],
)
def test_overlap_parts_a_yes_from_in_part(gain: tuple[float, ...], answer: str, said: str) -> None:
    found = verdict({"dice_gain": gain})
    assert found.answer == answer
    assert said in found.headline


def test_a_gain_within_a_point_is_none_however_narrow_its_interval() -> None:
    found = verdict({"dice_gain": (NEGLIGIBLE / 2, NEGLIGIBLE / 3, NEGLIGIBLE)})
    assert "which is no gain" in found.sentences[2]


@pytest.mark.parametrize(
    ("pointing", "answer"),
    [
        ((0.36, 0.351, 0.4), "yes"),
        ((0.36, 0.34, 0.4), "undecided"),
        ((0.2, 0.15, 0.26), "undecided"),
        ((0.2, 0.15, 0.24), "no"),
        ((0.9, None, None), "undecided"),
    ],
)
def test_pointing_decides_where_the_intervals_are_apart(pointing: tuple[float, ...], answer: str) -> None:
    assert verdict({"pointing": pointing}).answer == answer


@pytest.mark.parametrize(
    ("gain", "answer"),
    [((0.02, 0.001, 0.04), "yes"), ((0.0, -0.005, 0.005), "no"), ((0.02, -0.01, 0.05), "undecided")],
)
def test_a_paired_difference_goes_before_two_intervals(gain: tuple[float, ...], answer: str) -> None:
    overlapping = {"pointing": (0.32, 0.28, 0.36)}
    assert verdict(overlapping).answer == "undecided"
    assert verdict(overlapping | {"pointing_gain": gain}).answer == answer


def test_overlap_alone_is_no_evidence_of_looking() -> None:
    found = verdict({"pointing": (0.1, 0.05, 0.15)})
    assert found.answer == "no"
    assert found.headline.endswith("What it recognises findings by, they do not show.")


def test_a_model_that_does_not_recognise_is_not_accused_of_a_shortcut() -> None:
    found = verdict({"pointing": (0.1, 0.05, 0.15), "auc": (0.5, 0.45, 0.55)})
    assert found.headline == "Its maps point no better than knowing where each finding usually lies."
    assert "not shown to tell present from absent findings: macro AUC 50.0 [45.0, 55.0]" in found.sentences[0]


def test_worse_than_chance_and_no_interval_are_said() -> None:
    assert "worse than chance" in verdict({"auc": (0.3, 0.2, 0.4)}).sentences[0]
    assert "without an interval" in verdict({"auc": (0.9, None, None)}).sentences[0]


def test_undefined_numbers_give_their_reason_and_no_answer() -> None:
    none = cell("pointing", None, reason="the model gives no maps")
    found = verdict({"pointing": none, "dice@best": cell("dice@best", None, reason="no class is defined")})
    assert found.answer == "undecided"
    assert found.headline == "Its maps could not be measured."
    assert found.sentences[1] == "Pointing is undefined: the model gives no maps."
    assert found.sentences[2] == "Dice is undefined: no class is defined."


def test_an_undefined_pointing_beside_a_floor_is_a_no() -> None:
    found = verdict({"pointing": cell("pointing", None, reason="x"), "dice_gain": (0.0, 0.0, 0.0)})
    assert found.answer == "no"
    assert found.headline.startswith("Its maps show nothing that maps without the picture do not show.")


def test_what_a_run_does_not_have_is_said() -> None:
    found = verdict(dict.fromkeys(GOOD))
    assert found.answer == "undecided"
    assert all("the run has no such number" in sentence for sentence in found.sentences)
    assert "floor beside it is undefined" in verdict({"dice_floor": None}).sentences[2]
    assert "class prior beside it is undefined" in verdict({"pointing_prior": None}).sentences[1]


def test_optimism_is_said_where_it_is() -> None:
    assert "optimistic" in verdict().sentences[2]
    assert "optimistic" not in verdict(optimistic=False).sentences[2]


@pytest.mark.parametrize(
    ("gap", "said"),
    [((0.05, 0.04, 0.06), "need a threshold of their own"), ((0.02, 0.005, 0.04), "the fixed threshold fits")],
)
def test_the_calibration_gap_is_said(gap: tuple[float, ...], said: str) -> None:
    assert said in verdict({"dice_gap": gap}).sentences[3]


def test_means_over_pairs_are_called_so() -> None:
    pairs = Cell("M", "D", "main", "pairs", "", "pointing", 0.6, 0.55, 0.65, n=100)
    assert "% of regions, more often" in verdict({"pointing": pairs}).sentences[1]
    assert "as a mean over classes" in verdict().sentences[1]


def test_warnings_come_with_the_verdict() -> None:
    states = {"ok": 80, "flat": 10, "invalid": 4, "absent": 3, "failed": 3}
    found = verdict(
        states=states,
        cases_failed=2,
        cases_seen=5,
        seen="boxes",
        unverified="weights of another run",
        reasons={"no map": 3, "NaN": 4},
    )
    assert list(found.warnings) == [
        "Seen in training: boxes; scored on the rest.",
        "Not the published model: weights of another run.",
        "10 of 100 maps are flat: the same value everywhere.",
        "7 of 100 pairs are undefined.",
        "2 of 90 cases could not be read.",
        "Reasons: NaN (4 pairs); no map (3 pairs).",
        "5 of 90 cases were seen in training and are left out.",
    ]
