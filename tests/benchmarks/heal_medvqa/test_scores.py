"""Scores of the perturbation tests, of closed and of open answers, against golden counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.heal_medvqa.scores import closed_scores, flips, open_counts, open_scores

TURN = ("tpt_anatomy", "tpt_disease", "vpt")


@pytest.fixture(scope="module")
def tables(heal_golden: Path) -> tuple[Any, Any, Any]:
    folder = heal_golden / "perturbation_scores"
    names = ("items", "predictions", "expected")
    return tuple(json.loads((folder / f"{name}.json").read_text()) for name in names)  # type: ignore[return-value]


def near(value: float | None, expected: float | None) -> bool:
    return value is None if expected is None else value == pytest.approx(expected, abs=1e-9)


def held(items: Sequence[Mapping[str, Any]], said: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for variant, one in expected.items():
        answers = [said[i["item_id"]].get(variant) if i["available"][variant] else None for i in items]
        result = flips(answers, "no" if variant in TURN else "yes")
        assert (result.pool, result.n, result.not_made) == (one["n_pool"], one["n"], one["n_not_made"])
        assert {answer: result.counts[answer] for answer in one["counts"]} == one["counts"]
        assert near(result.score, one["score_pct"])
        assert near(result.score_of_answers, one["score_pct_non_answers_left_out"])
        assert near(result.non_answers, one["non_answer_pct"])


def pool(items: Sequence[Mapping[str, Any]], said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [i for i in items if i["gold"] == "yes" and said[i["item_id"]]["base"] == "yes"]


def test_tests_and_controls_of_every_model(tables: tuple[Any, Any, Any]) -> None:
    items, predictions, expected = tables
    for model, one in expected["models"].items():
        said = predictions[model]
        held(pool(items, said), said, {v: one[v] for v in items[0]["available"]})
        held([i for i in items if i["gold"] == "yes"], said, one["fixed_set"])
        for source, scores in one["by_source"].items():
            held(pool([i for i in items if i["source"] == source], said), said, scores)
        both = [said[i["item_id"]].get(v) for v in TURN[:2] for i in pool(items, said)]
        assert near(flips(both, "no").score, one["tpt_all_pooled_pct"])


def test_pools_shared_by_several_models(tables: tuple[Any, Any, Any]) -> None:
    items, predictions, expected = tables
    for one in expected["intersections"]:
        shared = list(items)
        for model in one["models"]:
            shared = pool(shared, predictions[model])
        assert len(shared) == one["n"]
        for model in one["models"]:
            held(shared, predictions[model], one["scores"][model])


def test_closed_scores_under_both_conventions(tables: tuple[Any, Any, Any]) -> None:
    items, predictions, expected = tables
    for model, one in expected["models"].items():
        answers = [predictions[model][i["item_id"]]["base"] for i in items]
        for convention, scores in one["closed"].items():
            result = closed_scores([i["gold"] for i in items], answers, convention)
            counts = {key: getattr(result, key) for key in ("tp", "fp", "fn", "tn", "n", "left_out")}
            assert {key: scores[key] for key in counts} == counts
            for name, value in result.values().items():
                assert near(value, scores[name]), (model, convention, name)


@pytest.mark.parametrize("suffix", ["", "_in_region"])
@pytest.mark.parametrize(
    ("convention", "key"),
    [
        ("no_finding_label", "no_finding_label"),
        ("ignored", "normal_items_ignored"),
        ("kept_empty", "normal_items_kept_as_empty_sets"),
    ],
)
def test_open_scores_under_three_conventions(heal_golden: Path, suffix: str, convention: Any, key: str) -> None:
    answers = json.loads((heal_golden / "open_scores/answers.json").read_text())
    expected = json.loads((heal_golden / "open_scores/expected.json").read_text())[f"findings{suffix}"][key]
    result = open_scores(
        open_counts(a["gold"], a[f"findings{suffix}"], a[f"states_normal{suffix}"], convention) for a in answers
    )
    assert (result.items, result.tp, result.fp, result.fn) == tuple(expected[k] for k in ("items", "tp", "fp", "fn"))
    assert near(result.precision, expected["precision"])
    assert near(result.recall, expected["recall"])
    assert near(result.micro_f1, expected["micro_f1"])


def test_nothing_asked_is_undefined() -> None:
    assert flips([], "no").score is None
    assert flips([None, None], "no").score is None
    assert all(value is None for value in closed_scores([], []).values().values())
    assert open_scores([]).micro_f1 is None
