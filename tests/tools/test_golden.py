"""The twelve tools against drawn cases with known values."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from medground.tools import RULES, TASKS, Anatomy, frontal, tool

GOLDEN = Path(__file__).parents[1] / "golden" / "cxreasondial" / "tools"


def cases():
    for task in TASKS:
        for case in json.loads((GOLDEN / f"{task}.json").read_text())["cases"]:
            yield pytest.param(task, case, id=f"{task}-{case['id']}")


def anatomy(task: str, case: dict) -> Anatomy:
    masks = {}
    if case["masks"]:
        packed = np.load(GOLDEN / f"{task}.npz")
        for name in case["masks"]:
            bits = np.unpackbits(packed[f"{case['id']}__{name}"], count=case["width"] * case["height"])
            masks[name] = bits.reshape(case["height"], case["width"]).astype(bool)
    return Anatomy(case["width"], case["height"], case["view"], masks, case["landmarks"])


def flat(value, path=""):
    """Every number and word of a nested value, by its path."""
    if isinstance(value, dict):
        return {k: v for name, part in value.items() for k, v in flat(part, f"{path}/{name}").items()}
    if isinstance(value, (list, tuple)):
        return {k: v for i, part in enumerate(value) for k, v in flat(part, f"{path}/{i}").items()}
    return {path: value}


def differing(got, expected) -> dict:
    """The paths of which the values differ by more than 1e-9, among those of ``expected``."""
    got, expected = flat(got), flat(expected)
    close = (int, float)
    return {
        path: (got.get(path), value)
        for path, value in expected.items()
        if not (
            math.isclose(got[path], value, rel_tol=1e-9, abs_tol=1e-12)
            if isinstance(value, close) and isinstance(got.get(path), close)
            else got.get(path) == value
        )
    }


@pytest.mark.parametrize(("task", "case"), list(cases()))
def test_a_drawn_case(task, case):
    expected = case["expected"]
    result = tool(task).measure(anatomy(task, case))

    assert (result.status, result.reason) == (expected["status"], expected["reason"])
    assert differing(result.value, expected["value"]) == {}
    assert result.rounded == expected["value_rounded"] or result.rounded is None
    assert result.decision.label == expected["label"]
    assert result.decision.conclusion == expected["conclusion"]
    assert sorted(result.decision.acceptable) == sorted(expected["accepted"])
    assert result.decision.near == expected["near_threshold"]
    shared = {k: v for k, v in flat(dict(result.parts)).items() if k in flat(expected)}
    assert differing(shared, {k: flat(expected)[k] for k in shared}) == {}
    assert shared or result.status == "dropped"


@pytest.mark.parametrize(("task", "case"), list(cases()))
def test_a_case_under_every_view(task, case):
    expected = case["expected"]
    for view, other in expected.get("by_view", {}).items():
        decision = tool(task).rule.decide(expected["value_rounded"], view if view != "unknown" else None)
        assert (decision.label, decision.near) == (other["label"], other["near_threshold"])
        assert sorted(decision.acceptable) == sorted(other["accepted"])
    if (other := expected.get("by_cutoff_pa_0.28")) is not None:
        decision = tool(task, {"pa_cutoff": 0.28}).rule.decide(expected["value_rounded"], "PA")
        assert (decision.label, decision.near) == (other["label"], other["near_threshold"])


def test_the_frontal_filter():
    for case in json.loads((GOLDEN / "frontal_filter.json").read_text())["cases"]:
        assert frontal(case["masks"], case["window"]) == case["reason"]


def test_rules_agree_with_the_drawn_cases():
    for task, rule in RULES.items():
        golden = json.loads((GOLDEN / f"{task}.json").read_text())
        assert rule.tolerance in (golden["tolerance"], 0.0)
        assert list(rule.words) == [golden["label_words"]["0"], golden["label_words"]["1"]]
