"""A claim names the findings that fail, and a figure that only a searched threshold has is no full yes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.xbench.claims import ClaimResult, grounding_claims
from medground.benchmarks.xbench.grounding import How
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.benchmarks.xbench.specs import specs
from medground.datasets.base import Case
from medground.imaging.regions import Region
from medground.metrics.decide import DEFAULTS, Decision

PROTOCOL = resolve_protocol({"base": "xbench", "grid": [16, 16], "name": "small"})


def said(word: str) -> Decision:
    return Decision(word, "")  # type: ignore[arg-type]  # one of the words


@pytest.mark.parametrize(
    ("whole", "classes", "unsearched", "answer"),
    [
        ("better", ("better", "cannot be told"), None, "yes"),
        ("better", ("better", "worse"), None, "in part"),
        ("better", ("better", "equivalent"), None, "in part"),
        ("better", ("better",), "better", "yes"),
        ("better", ("better",), "cannot be told", "in part"),
        ("worse", ("better",), "better", "no"),
        ("cannot be told", ("better",), None, "cannot be told"),
    ],
)
def test_answers_follow_from_the_whole_and_its_parts(whole, classes, unsearched, answer):
    by_class = {f"f{i}": said(word) for i, word in enumerate(classes)}
    claim = ClaimResult(said(whole), by_class, unsearched=said(unsearched) if unsearched else None)
    assert claim.answer == answer
    assert claim.failing == [f for f, d in by_class.items() if d.word in {"worse", "equivalent"}]
    assert claim.untold == [f for f, d in by_class.items() if d.word == "cannot be told"]


def test_overlap_is_decided_on_the_cross_fitted_threshold_and_pointing_against_the_prior():
    rng = np.random.default_rng(0)
    cases, maps = [], {}
    for i in range(40):
        x, y = rng.integers(0, 12, 2).tolist()
        cases.append(
            Case(f"c{i}", Path("x.png"), f"p{i}", regions={"a": Region.from_boxes((16, 16), [(x, y, x + 4, y + 4)])})
        )
        maps[f"c{i}"] = np.zeros((16, 16))
        maps[f"c{i}"][y : y + 4, x : x + 4] = 1
    rows = rows_from_maps(cases, ["a"], lambda c, _: ScoredMap(maps[c]), PROTOCOL)
    known = {spec.name: spec for spec in specs(PROTOCOL)}
    claims = grounding_claims(Pairs.of(rows, PROTOCOL), ["a"], DEFAULTS, How(), known)
    assert claims["overlaps"].metric == "dice@crossfit"
    assert claims["overlaps"].answer == "yes"
    assert claims["points"].answer == "yes"
    few = grounding_claims(Pairs.of(rows.head(9), PROTOCOL), ["a"], DEFAULTS, How(), known)
    assert {claim.answer for claim in few.values()} == {"cannot be told"}
    assert not few["points"].whole.enough
