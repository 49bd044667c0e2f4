"""Margins and minima are changed in the run file of every benchmark, decide there, and are printed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.benchmarks.gridvqa_x.test_verdicts import noise, rows_of

from medground import registry
from medground.benchmarks.gridvqa_x.verdicts import CANNOT, TELLS, local_checks
from medground.benchmarks.medical_checklist.verdicts import verdict
from medground.benchmarks.results import Cell, Cells
from medground.errors import ConfigError
from medground.metrics.decide import DEFAULTS, changes, rules
from medground.metrics.differences import Difference

BENCHMARKS = registry.names("benchmark")
STRICT: dict[str, dict[str, Any]] = {"mass": {"margin": 0.3}, "rate": {"least": 400}}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_takes_rules_and_refuses_families_that_are_none(name: str) -> None:
    cls = registry.load("benchmark", name)
    made = cls(rules=STRICT)
    assert rules(made.rules)["rate"].least == 400 if name == "xbench" else made.rules["rate"].least == 400
    with pytest.raises(ConfigError, match="no such family"):
        cls(rules={"rates": {"least": 20}})
    with pytest.raises(ConfigError, match="no such field"):
        cls(rules={"rate": {"lest": 20}})


def test_only_what_differs_is_said() -> None:
    assert changes(DEFAULTS) == []
    assert changes(rules(STRICT)) == [
        "decisions about rate: margin 2 points, least 400 patients, as the run file says",
        "decisions about mass: margin 30 points, least 30 scenes, test-retest correlation 0.7, as the run file says",
    ]


def test_an_explainer_is_held_against_the_margin_of_the_run() -> None:
    low = noise(60)
    rows = rows_of([x + 0.2 for x in low], low)
    word = {check["verdict"] for check in local_checks(rows, 0, 0.95) if check["modality"] == "image"}
    strict = {check["verdict"] for check in local_checks(rows, 0, 0.95, rules(STRICT)["mass"])}
    assert (word, TELLS in strict) == ({TELLS}, False)
    few = rules({"mass": {"least": 61}})["mass"]
    assert {check["verdict"] for check in local_checks(rows, 0, 0.95, few)} == {CANNOT}


def test_captions_are_held_against_the_minimum_of_the_run() -> None:
    place = {"benchmark": "medical_checklist", "model": "m", "dataset": "d"}
    cells = Cells(
        [Cell(**place, metric=name, value=0.9, low=0.85, high=0.95, n=50) for name in ("accuracy", "gain_blind")]
    )
    gain = Difference(0.3, 0.2, 0.4, 0.21, 0.39, 50, 0, (50,), p=0.001)
    told = [verdict(cells, "m", "d", {"gain_blind": gain}, given).answer for given in (DEFAULTS, rules(STRICT))]
    assert told[1] == "cannot be told" != told[0]
