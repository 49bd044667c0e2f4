"""GridVQA-X compared: answers between models, explanations between models and between explainers, on rows by hand."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting
from medground.benchmarks.comparable import Comparable, Contender, pair_of
from medground.benchmarks.comparing import compare_pairs
from medground.benchmarks.gridvqa_x import GridVQAX
from medground.benchmarks.gridvqa_x.compare import compare
from medground.benchmarks.gridvqa_x.rows import SCHEMA
from medground.errors import RunError
from medground.explainers.emap import Emap
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor

SCENES = 10
ONE, TWO = [1, 1, 1, 1, 1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 1, 0, 0, 1, 1]
MASS = {"emap": [0.6 + 0.02 * k for k in range(SCENES)], "dime": [0.3 + 0.01 * k for k in range(SCENES)]}


def bench(**given: Any) -> GridVQAX:
    made = GridVQAX(**given)
    models = [Entry("rule", "gridvqa_rule", RuleExecutor), Entry("words", "gridvqa_counter", WordCounter)]
    made.bind(Setting(models, explainers=[Entry("emap", "emap", Emap)]))
    return made


def rows(right: list[int], masses: dict[str, list[float]], retest: float | None = 0.9, **more: Any) -> pl.DataFrame:
    extra = None if retest is None else json.dumps({"image_retest": retest, "text_retest": retest})
    base = dict.fromkeys(SCHEMA) | {"type": "M", "form": "count", "depth": 2, "density": 0.7, "answer": "2"} | more
    made = []
    for k, hit in enumerate(right):
        scene = base | {"scene_id": f"s{k}", "question": f"how many {k}", "right": bool(hit)}
        made.append(scene | {"method": "model", "scope": "model"})
        for method, values in masses.items():
            made.append(scene | {"method": method, "scope": "local", "image_mass": values[k], "extra": extra})
    return pl.DataFrame(made, schema=SCHEMA)


def sides(how: Comparable, label: str, table: pl.DataFrame, name: str = "") -> list[Contender]:
    half = len(table) // 2
    parts = {(label, "pure", "first"): table.head(half), (label, "pure", "second"): table.tail(len(table) - half)}
    return list(how.sides(name or label, parts))


def records(how: Comparable, *both: list[Contender]) -> list[dict[str, Any]]:
    everything = [side for own in both for side in own]
    pairs = [pair_of(how, a, b) for i, a in enumerate(everything) for b in everything[i + 1 :]]
    return compare_pairs([pair for pair in pairs if pair.samples], how.rules, seed=how.seed)


def test_buckets_are_taken_together_and_the_answers_of_two_models_compared(exact: Any) -> None:
    how = compare(bench())
    got = records(how, sides(how, "rule", rows(ONE, {})), sides(how, "words", rows(TWO, {})))
    (record,) = got
    value, p = exact(ONE, TWO, [f"s{k}" for k in range(SCENES)])
    assert (record["first"], record["second"], record["dataset"]) == ("rule", "words", "pure")
    assert (record["metric"], record["scope"], record["n"]) == ("accuracy", "all", SCENES)
    assert (record["difference"], record["p"]) == pytest.approx((value, p))


def test_explainers_of_one_model_and_one_explainer_of_two_models_are_compared(exact: Any) -> None:
    how = compare(bench())
    other = {method: values[::-1] for method, values in MASS.items()}
    got = records(how, sides(how, "rule", rows(ONE, MASS)), sides(how, "words", rows(TWO, other)))
    mass = {(r["first"], r["second"]): r for r in got if r["metric"] == "image_mass"}
    assert set(mass) == {
        ("emap on rule", "dime on rule"),
        ("emap on words", "dime on words"),
        ("emap on rule", "emap on words"),
        ("dime on rule", "dime on words"),
    }
    record = mass["emap on rule", "dime on rule"]
    value, p = exact(MASS["emap"], MASS["dime"], [f"s{k}" for k in range(SCENES)])
    assert (record["difference"], record["p"]) == pytest.approx((value, p))
    assert record["family"].startswith("4 comparisons")
    assert record["p_family"] >= record["p"]
    assert "of the 30 scenes" in record["because"]


@pytest.mark.parametrize(("retest", "word"), [(0.9, "better"), (0.3, "cannot be told"), (None, "cannot be told")])
def test_a_method_that_does_not_repeat_itself_wins_nothing(retest: float | None, word: str) -> None:
    how = compare(bench())
    masses = {"emap": [0.6] * 40, "dime": [0.3 + 0.001 * k for k in range(40)]}
    (record,) = [
        r for r in records(how, sides(how, "rule", rows([1] * 40, masses, retest))) if r["metric"] == "image_mass"
    ]
    assert record["decision"] == word


def test_right_answers_alone_are_kept_where_the_run_says_so_and_never_in_cross() -> None:
    how = compare(bench(only_right=True))
    kept = {side.name: len(side.rows) for side in sides(how, "rule", rows(TWO, MASS))}
    assert kept == {"rule": SCENES, "emap on rule": sum(TWO), "dime on rule": sum(TWO)}
    crossed = {side.name: len(side.rows) for side in sides(how, "words", rows(TWO, MASS))}
    assert crossed["emap on words"] == SCENES


def test_other_scenes_are_another_setting_and_another_question_is_refused() -> None:
    assert compare(bench()).settings != compare(bench(per_bucket=3)).settings
    how = compare(bench())
    with pytest.raises(RunError, match="another one in the two"):
        records(how, sides(how, "rule", rows(ONE, {})), sides(how, "words", rows(TWO, {}, answer="3")))
