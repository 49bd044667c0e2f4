"""Limits: the whole interval on the right side passes, on the wrong side fails, and anything else cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from medground.benchmarks.limits import Limit, check_limits, read_limits, worst
from medground.benchmarks.results import Cell, ModelFacts, Summary, Verdict
from medground.errors import ConfigError
from medground.metrics.spec import MetricSpec

SPECS = [MetricSpec("auc", "AUC", floor_value=0.5), MetricSpec("brier", "Brier", unit="none", direction="lower")]


def cell(value: float | None = 0.8, **more: Any) -> Cell:
    reason = "no positives" if value is None else None
    given = {"benchmark": "b", "model": "m", "metric": "auc", "dataset": "d", "reason": reason, "n": 9} | more
    return Cell(value=value, **given)


def outcomes(limit: Limit, *cells: Cell, verdicts: tuple[Verdict, ...] = ()) -> list[tuple[str, str]]:
    facts = [ModelFacts(label="m"), ModelFacts(label="prior", kind="baseline")]
    summary = Summary(cells=cells, verdicts=verdicts, benchmark="b", metrics=SPECS, models=facts)
    return [(checked.model, checked.outcome) for checked in check_limits([limit], [summary])]


@pytest.mark.parametrize(
    ("bound", "low", "high", "outcome"),
    [
        ({"at_least": 70}, 0.71, 0.9, "passed"),
        ({"at_least": 70}, 0.69, 0.9, "cannot be told"),
        ({"at_least": 70}, 0.5, 0.69, "failed"),
        ({"at_most": 95}, 0.7, 0.94, "passed"),
        ({"at_most": 75}, 0.76, 0.94, "failed"),
        ({"at_most": 75}, 0.7, 0.94, "cannot be told"),
        ({"above_floor_by": 10}, 0.61, 0.9, "passed"),
        ({"above_floor_by": 10}, 0.55, 0.9, "cannot be told"),
        ({"above_floor_by": 10}, 0.4, 0.6, "failed"),
        ({"at_least": 70}, None, None, "cannot be told"),
    ],
)
def test_the_whole_interval_decides(bound: dict[str, float], low: float, high: float, outcome: str) -> None:
    assert outcomes(Limit(metric="auc", **bound), cell(low=low, high=high, floor=0.5)) == [("m", outcome)]


def test_plain_units_are_given_as_they_are() -> None:
    brier = cell(0.1, metric="brier", low=0.05, high=0.15)
    assert outcomes(Limit(metric="brier", at_most=0.2), brier) == [("m", "passed")]


def test_a_question_s_paired_difference_goes_before_the_floor() -> None:
    headline = cell(low=0.5, high=0.9, floor=0.5)
    roles = {"headline": headline, "difference": cell(0.3, low=0.25, high=0.35)}
    verdict = Verdict(benchmark="b", question="points", model="m", answer="yes", because="", dataset="d", roles=roles)
    assert outcomes(Limit(question="points", above_floor_by=20), verdicts=(verdict,)) == [("m", "passed")]
    assert outcomes(Limit(question="points", above_floor_by=40), verdicts=(verdict,)) == [("m", "failed")]


def test_baselines_are_not_held_unless_named_and_groups_are_chosen() -> None:
    cells = (
        cell(low=0.75, high=0.85),
        cell(model="prior", low=0.4, high=0.6),
        cell(0.6, scope="class", group="Mass", low=0.5, high=0.65),
    )
    assert outcomes(Limit(metric="auc", at_least=70), *cells) == [("m", "passed")]
    assert outcomes(Limit(metric="auc", model="prior", at_least=70), *cells) == [("prior", "failed")]
    assert outcomes(Limit(metric="auc", group="Mass", at_least=70), *cells) == [("m", "failed")]


def test_what_was_not_measured_cannot_be_told() -> None:
    assert outcomes(Limit(metric="auc", model="other", at_least=1), cell()) == [("other", "cannot be told")]
    assert outcomes(Limit(metric="auc", at_least=1), cell(None)) == [("m", "cannot be told")]
    assert outcomes(Limit(metric="brier", above_floor_by=1), cell(0.1, metric="brier", low=0.0, high=0.2)) == [
        ("m", "cannot be told")
    ]


def test_one_failed_limit_fails_the_whole() -> None:
    limits = [Limit(metric="auc", at_least=bound) for bound in (70, 95, 80)]
    summary = Summary(cells=[cell(low=0.75, high=0.85)], benchmark="b", metrics=SPECS)
    results = check_limits(limits, [summary])
    assert [r.outcome for r in results] == ["passed", "failed", "cannot be told"]
    assert [worst(results), worst(results[:1]), worst(results[::2])] == ["failed", "passed", "cannot be told"]
    assert worst([]) == "passed"
    assert results[0].figure == "80.0 [75.0, 85.0]"
    assert results[0].limit.in_words() == "auc at least 70"


@pytest.mark.parametrize(
    "entry",
    [
        {"metric": "auc"},
        {"at_least": 3},
        {"metric": "auc", "question": "points", "at_least": 3},
        {"metric": "auc", "at_least": 3, "at_most": 4},
        {"metric": "auc", "atleast": 3},
        {"metric": "auc", "at_least": "3"},
        {"metric": "auc", "at_least": True},
        {"metric": 3, "at_least": 3},
    ],
)
def test_a_limit_that_is_not_one_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read_limits([entry])


def test_limits_are_read_as_a_run_file_gives_them() -> None:
    assert read_limits([{"metric": "auc", "at_least": 80}]) == [Limit(metric="auc", at_least=80)]
