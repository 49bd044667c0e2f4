"""Checks of explainers on rows made by hand: what counts, what is left out, what may be claimed."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.gridvqa_x.rows import SCHEMA
from medground.benchmarks.gridvqa_x.summarise import IntervalOptions, summarise
from medground.benchmarks.gridvqa_x.verdicts import ALIKE, CANNOT, TELLS, WRONG, global_checks, local_checks, verdicts

COLUMNS = {**SCHEMA, "regime": pl.String}


def row(scene: str, regime: str, **fields: object) -> dict:
    start = dict.fromkeys(COLUMNS) | {"scene_id": scene, "regime": regime, "type": "M", "depth": 2, "method": "m"}
    return start | {"scope": "local", "form": "count", "density": 0.7, "right": True} | fields


def rows_of(first: list[float], second: list[float], retest: float | None = 0.9, **fields: object) -> pl.DataFrame:
    extra = None if retest is None else json.dumps({"image_retest": retest, "text_retest": retest})
    made = []
    for i, pair in enumerate(zip(first, second, strict=True)):
        for regime, value in zip(("pure", "cross"), pair, strict=True):
            words = {"text_directions": value / 2, "text_anchors": value / 2}
            made.append(row(f"s{i:03d}", regime, image_anchors=value, extra=extra, **words, **fields))
    return pl.DataFrame(made, schema=COLUMNS)


def check(rows: pl.DataFrame) -> dict:
    return next(c for c in local_checks(rows, 0, 0.95) if c["modality"] == "image")


def noise(n: int = 40, mean: float = 0.3) -> list[float]:
    return (mean + 0.05 * np.random.default_rng(0).uniform(-1, 1, n)).tolist()


def test_the_margin_parts_what_tells_from_what_is_alike() -> None:
    low = noise(300, 0.2)
    found = {gap: check(rows_of([x + gap for x in low], low))["verdict"] for gap in (0.2, 0.0, -0.2)}
    assert found == {0.2: TELLS, 0.0: ALIKE, -0.2: WRONG}
    assert check(rows_of([x + 0.04 for x in low], low))["verdict"] == ALIKE  # shown, and less than 5 points


@pytest.mark.parametrize(("retest", "word"), [(0.9, TELLS), (0.26, CANNOT), (None, CANNOT)])
def test_a_method_that_does_not_repeat_itself_has_no_verdict(retest: float | None, word: str) -> None:
    low = noise()
    found = check(rows_of([x + 0.2 for x in low], low, retest))
    assert found["verdict"] == word
    assert found["reliability"] == (None if retest is None else pytest.approx(retest))
    assert found["difference"] == pytest.approx(0.2)  # the figure stays


def test_below_30_scenes_nothing_is_claimed() -> None:
    low = noise(29)
    found = check(rows_of([x + 0.2 for x in low], low))
    assert (found["verdict"], found["answer"]) == (CANNOT, "cannot be told")
    assert "29 of the 30 scenes" in found["because"]


def test_ties_count_half_in_the_right_order() -> None:
    assert check(rows_of([0.4, 0.2, 0.3, 0.3], [0.1, 0.3, 0.3, 0.3]))["right_order"] == pytest.approx(
        (1 + 0 + 0.5 + 0.5) / 4
    )


def test_questions_without_a_relation_to_follow_are_left_out() -> None:
    low = noise(10)
    high = [x + 0.2 for x in low]
    kept = rows_of(high, low)
    attributes = rows_of(high, low, type="A").with_columns(scene_id=pl.lit("a") + pl.col("scene_id"))
    shallow = rows_of(high, low, type="CMP", depth=1).with_columns(scene_id=pl.lit("b") + pl.col("scene_id"))
    deep = rows_of(high, low, type="CMP", depth=2).with_columns(scene_id=pl.lit("c") + pl.col("scene_id"))
    assert check(pl.concat([kept, attributes, shallow, deep]))["n"] == 20


def test_the_shortcut_model_is_wrong_by_construction_and_never_filtered() -> None:
    low = noise(8)
    rows = rows_of([x + 0.2 for x in low], low)
    rows = rows.with_columns(right=pl.col("regime") == "pure")
    parts = {
        (model, "pure", "b"): rows.filter(pl.col("regime") == regime).drop("regime")
        for model, regime in (("reasoner", "pure"), ("counter", "cross"))
    }
    summary = summarise(
        parts, {("reasoner", "pure"): "pure", ("counter", "pure"): "cross"}, IntervalOptions(50, only_right=True)
    )
    assert summary.data["local"][0]["n"] == 8


def test_the_additive_check_says_what_cannot_be_told_and_keeps_the_old_rules() -> None:
    rng = np.random.default_rng(1)
    made = []
    for regime, means in (("pure", (10, 12, 14)), ("spurious", (5, 5, 5)), ("cross", (5, 5, 5))):
        for depth, mean in zip((1, 2, 3), means, strict=True):
            made += [
                row(f"{regime}{depth}{i}", regime, depth=depth, scope="global", score=mean + rng.normal())
                for i in range(40)
            ]
    many = pl.DataFrame(made, schema=COLUMNS)
    full = next(c for c in global_checks(many, 200, 0) if c["subset"] == "mixed")
    assert (full["answer"], full["rises"], full["flat"], full["low"]) == ("yes", "yes", "yes", "yes")
    few = next(c for c in global_checks(many.filter(pl.col("scene_id").str.ends_with("3")), 200, 0))
    assert few["answer"] == "cannot be told"
    assert {"rule_a", "rule_b", "by_means"} <= set(few)


def test_without_a_model_that_takes_the_shortcut_nothing_is_asked() -> None:
    (told,) = verdicts([], {"pure": ("reasons", "D_pure")}, [], [])
    assert (told.answer, told.model, told.dataset) == ("not asked", "reasons", "D_pure")
    assert told.because.startswith("The run has no second model")
    assert told.headline is None


@pytest.mark.parametrize(("mass", "answer"), [(0.9, "yes"), (0.22, "in part"), (0.1, "in part")])
def test_yes_asks_for_mass_on_the_cause_beyond_that_of_an_even_map(mass: float, answer: str) -> None:
    low = noise(60)
    rows = rows_of([x + 0.2 for x in low], low, image_mass=mass, image_area=0.2, text_mass=0.9, text_area=0.5)
    local = local_checks(rows, 0, 0.95)
    image = next(c for c in local if c["modality"] == "image")
    assert image["on_cause_gain"] == pytest.approx(mass - 0.2)
    assert (image["on_cause"] == "yes") == (answer == "yes")
    (told,) = verdicts([], {"pure": ("a", "pure"), "cross": ("b", "pure")}, local, [])
    assert told.answer == answer
