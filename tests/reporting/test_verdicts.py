"""Verdicts in words: every figure is a cell's, and what it was held against stands beside it."""

from __future__ import annotations

from typing import Any

from medground.benchmarks.results import ANSWERS, Cell, Verdict
from medground.metrics.spec import MetricSpec
from medground.reporting.verdicts import SIGNS, WORDS, comparator, figures, signed

SPEC = MetricSpec("pointing", "Pointing", floor="class prior")


def spec(_: str) -> MetricSpec:
    return SPEC


def cell(value: float | None = 0.6, **more: Any) -> Cell:
    given = {"benchmark": "b", "model": "m", "metric": "pointing", "value": value, "n": 40} | more
    return Cell(**given)


def verdict(**roles: Cell) -> Verdict:
    return Verdict(benchmark="b", question="points", model="m", answer="yes", because="It does.", roles=roles)


def test_every_answer_has_a_sign_and_a_word() -> None:
    assert set(SIGNS) == set(WORDS) == set(ANSWERS)


def test_the_figure_stands_beside_what_it_was_held_against() -> None:
    roles = {"headline": cell(low=0.55, high=0.65, undefined=2), "floor": cell(0.3)}
    roles["difference"] = cell(0.3, low=0.25, high=0.35)
    assert figures(verdict(**roles), spec) == (
        "Pointing 60.0 [55.0, 65.0]; class prior 30.0; difference +30.0 [+25.0, +35.0]; n 40, 2 undefined"
    )


def test_a_twin_goes_before_the_floor_and_a_cell_s_own_floor_comes_last() -> None:
    assert comparator(verdict(headline=cell(), floor=cell(0.3), twin=cell(0.4, model="blind")), spec) == (
        "blind twin",
        0.4,
    )
    assert comparator(verdict(headline=cell(floor=0.2)), spec) == ("class prior", 0.2)
    assert comparator(verdict(headline=cell()), spec) is None


def test_what_was_not_asked_has_no_figure() -> None:
    unasked = Verdict(benchmark="b", question="points", model="m", answer="not asked", because="no maps")
    assert figures(unasked, spec) == ""


def test_a_difference_carries_its_sign() -> None:
    assert signed(cell(-0.012, low=-0.02, high=0.004), SPEC) == "-1.2 [-2.0, +0.4]"
    assert signed(cell(0.012), SPEC) == "+1.2"
