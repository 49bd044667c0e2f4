"""Groups beside the rest, against counting by hand; and what must not be claimed of few."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from medground.benchmarks.xbench.operating import in_words, operating_measures, operating_records
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.recognition import answers, by_class
from medground.benchmarks.xbench.rows import SCHEMA
from medground.benchmarks.xbench.subgroups import banded_values, subgroup_results, subgroups, traits_of
from medground.metrics import decide

WHO = {"benchmark": "xbench", "reading": "xbench", "model": "m", "dataset": "d", "subset": "main"}
PROTOCOL = resolve_protocol("xbench")


def rows(n=200, sexes=("F", "M"), worse="M", seed=0, **more):
    """One finding, a patient a case; scores of one sex say nothing, and its maps miss."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        sex, label = sexes[i % len(sexes)], bool(i // len(sexes) % 2)
        score = rng.normal() + (0 if sex == worse else 3 * label)
        traits = {"sex": sex, "age": str(20 + i % 70)} | {k: v(i) for k, v in more.items()}
        made.append(
            dict.fromkeys(SCHEMA.names())
            | {"case_id": f"c{i}", "patient_id": f"p{i}", "view": "PA", "finding": "Mass", "seen": False}
            | {"localised": label, "label": label, "score": score, "probability": 1 / (1 + np.exp(-score))}
            | {"state": "ok" if label else "none", "traits": json.dumps(traits), "selected": [], "inside": []}
            | ({"ties": 1, "ties_inside": int(sex != worse), "first_inside": sex != worse} if label else {})
        )
    return pl.DataFrame(made, schema=SCHEMA)


def records(table, **more):
    cells, told = subgroup_results(table, ["Mass"], PROTOCOL, decide.rules(), 0.95, **WHO)
    return cells, {(r["metric"], r["trait"], r["group"]): r for r in told}


def test_a_group_that_does_worse_is_said_to_with_figures_of_counting():
    table = rows()
    cells, told = records(table)
    men = table.filter(pl.col("traits").str.contains('"M"'))
    women = table.filter(pl.col("traits").str.contains('"F"'))
    auc = told["auc", "sex", "M"]
    assert auc["value"] == pytest.approx(roc_auc_score(men["label"], men["score"]))
    assert auc["difference"] == pytest.approx(auc["value"] - roc_auc_score(women["label"], women["score"]))
    assert (auc["says"], told["auc", "sex", "F"]["says"]) == ("lower", "higher")
    pointing = told["pointing", "sex", "M"]
    assert (pointing["value"], pointing["difference"], pointing["says"]) == (0.0, -1.0, "lower")
    assert pointing["n"] == men["localised"].sum()
    (cell,) = [c for c in cells if (c.scope, c.group, c.metric) == ("sex", "M", "auc")]
    assert cell.value == auc["value"]


def test_a_fair_model_is_not_said_to_be_unfair():
    _, told = records(rows(worse="nobody", seed=3))
    assert {r["says"] for key, r in told.items() if key[1] == "sex"} == {"not shown"}


def test_of_few_nothing_is_claimed():
    table = rows(n=60, sexes=("F", "F", "F", "F", "F", "M"))
    _, told = records(table)
    assert told["pointing", "sex", "M"]["difference"] == -1.0
    assert told["pointing", "sex", "M"]["patients"] < 10
    assert told["pointing", "sex", "M"]["says"] == "few"


def test_intervals_widen_with_the_number_of_groups_that_are_looked_at():
    one = records(rows())[1]["pointing", "sex", "M"]
    many = records(rows(site=lambda i: f"site {i % 9}"))[1]["pointing", "sex", "M"]
    assert many["compared"] > one["compared"]
    assert many["difference_high"] > one["difference_high"]
    assert (many["low"], many["high"]) == (one["low"], one["high"])


def test_traits_that_part_nobody_make_no_groups():
    table = rows(device=lambda i: "one", number=lambda i: f"x{i}", **{"class": lambda i: "ab"[i % 2]})
    assert {g.trait for g in subgroups(table)} == {"sex", "age", "trait class"}  # one view; a name a case
    assert subgroups(table.drop("traits")) == []
    for group in subgroups(table):
        assert not (group.mask & group.rest).any()


def test_an_unknown_trait_is_in_no_group():
    table = rows().with_columns(
        pl.when(pl.int_range(pl.len()) < 50).then(pl.lit(None)).otherwise("traits").alias("traits")
    )
    for group in subgroups(table):
        assert not group.mask[:50].any()
        assert not group.rest[:50].any()
    assert traits_of(table)["sex"][:50] == ["not known"] * 50


@pytest.mark.parametrize(
    ("trait", "values", "bands"),
    [
        ("age", ["39", "40", "59", "60", "93", "not known"],
         ["below 40", "40 to below 60", "40 to below 60", "60 to below 80", "80 and above", "not known"]),
        ("age", ["young", "40"], ["young", "40"]),
        ("slices", ["1", "2"], ["1", "2"]),
        ("kvp", [str(k) for k in range(30)], ["below 9.66667"] * 10 + ["9.66667 to below 19.3333"] * 10
         + ["19.3333 and above"] * 10),
    ],
)  # fmt: skip
def test_numbers_are_cut_into_bands(trait, values, bands):
    assert banded_values(trait, values) == bands


def test_rates_at_a_stated_probability_are_those_of_counting():
    table = rows()
    given = answers(table, ["Mass"], "given")
    called = (table["probability"] >= 0.7).to_numpy()
    label = table["label"].to_numpy().astype(bool)
    wanted = [
        (called & label).sum() / label.sum(),
        (~called & ~label).sum() / (~label).sum(),
        (called & label).sum() / called.sum(),
        (~called & ~label).sum() / (~called).sum(),
    ]
    got = [by_class(given, measure, 0)[0].value for measure in operating_measures(0.7)]
    assert got == pytest.approx(wanted)
    (record,) = operating_records(given, 0.7, 0, {"model": "m", "dataset": "d"})
    assert record["thresholds"] == [0.7]
    assert sum(record["counts"].values()) == len(table)
    assert "0.7, as the run file states it" in record["source"]


def test_a_cross_fitted_point_has_two_thresholds_and_is_said_to_be_so():
    given = answers(rows(), ["Mass"], "given")
    (record,) = operating_records(given, None, 0, {"model": "m", "dataset": "d"})
    assert len(record["thresholds"]) == 2
    assert record["source"] == in_words(None)
    assert "other half" in record["source"]
    assert record["roc"][0] == [0.0, 0.0]
    assert record["roc"][-1] == [1.0, 1.0]
    sensitivity = by_class(given, operating_measures(None)[0], 0)[0]
    counts = record["counts"]
    assert sensitivity.value == pytest.approx(counts["tp"] / (counts["tp"] + counts["fn"]))


def test_a_finding_of_one_kind_has_no_operating_point():
    table = rows().with_columns(pl.lit(True).alias("label"))
    given = answers(table, ["Mass"], "given")
    assert list(operating_records(given, None, 0, {})) == []
    assert all(by_class(given, measure, 0)[0].value is None for measure in operating_measures(None))
