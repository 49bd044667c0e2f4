"""Repeated models: agreement of members and their range, counted by hand."""

from __future__ import annotations

from itertools import combinations
from statistics import mean
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.base import Entry
from medground.benchmarks.comparable import Comparable, Sample, side_by_side
from medground.benchmarks.repeats import with_repeats
from medground.benchmarks.results import ModelFacts, Summary
from medground.metrics.spec import MetricSpec

ACCURACY = MetricSpec("accuracy", "Accuracy")
FURTHER = [
    Entry("m, sample 2", "repeated", object, repeat_of="m", repeat="sample 2"),
    Entry("m, sample 3", "repeated", object, repeat_of="m", repeat="sample 3"),
    Entry("m, prompt short", "repeated", object, repeat_of="m", repeat="prompt short"),
]


def samples(side: Any) -> list[Sample]:
    return [Sample(ACCURACY, side.rows), Sample(ACCURACY, side.rows.with_columns(group=pl.lit("x")), groups="class")]


COMPARABLE = Comparable({}, side_by_side(samples))
SUMMARY = Summary((), (), {}, {}, "b", "", (ModelFacts(label="m"),), (ACCURACY,))


def rows(*values: float | None) -> pl.DataFrame:
    names = [f"i{i}" for i in range(len(values))]
    columns = {"item": names, "patient": names, "group": [""] * len(values), "value": values}
    return pl.DataFrame(columns, schema_overrides={"value": pl.Float64})


def repeated(*members: list[float | None]) -> Summary:
    labels = ["m", *(entry.label for entry in FURTHER)]
    tables = {(label, "d"): rows(*values) for label, values in zip(labels, members, strict=True)}
    return with_repeats(SUMMARY, COMPARABLE, tables, FURTHER, {"m": "sample 1"})


def test_agreement_and_range_by_hand() -> None:
    summary = repeated([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, None])
    drawn, worded = summary.tables["repeats"].to_dicts()
    # Pairs of the three samples that agree, item by item: 3, 1, 1, 3 of 3.
    assert drawn["agreement"] == pytest.approx((3 + 1 + 1 + 3) / 12)
    assert (drawn["lowest"], drawn["highest"], drawn["mean"]) == (0.25, 0.75, 0.5)
    assert drawn["range"] == 0.5
    assert drawn["agreement_low"] < drawn["agreement"] < drawn["agreement_high"]
    assert (drawn["members"], drawn["n"], drawn["n_undefined"]) == (3, 4, 0)
    # An item without a value in one of the two is not agreed upon.
    assert worded["kind"] == "prompt"
    assert worded["agreement"] == pytest.approx(2 / 4)
    assert worded["n_undefined"] == 1
    each = summary.tables["repeats_each"]
    assert each["member"].to_list() == ["sample 1", "sample 2", "sample 3", "prompt of the table", "prompt short"]
    assert each["value"].to_list() == [0.5, 0.25, 0.75, 0.5, 1.0]
    assert summary.notes[0] == (
        "m on d, 3 samples: agree with each other on 66.7 % of 4 items; Accuracy lies between 25.0 and 75.0"
    )


def test_means_over_groups_are_means_of_means() -> None:
    def grouped(side: Any) -> list[Sample]:
        table = side.rows.with_columns(group=pl.Series(["x", "y", "y", "y"][: len(side.rows)]))
        return [Sample(MetricSpec("dice", "Dice"), table, groups="class")]

    labels = ["m", *(entry.label for entry in FURTHER)]
    each = [rows(0.5, 0, 0, 1), rows(0.5, 1, 1, 1), rows(0.1, 0, 0, 1), rows(0, 0, 0, 0)]
    tables = {(label, "d"): table for label, table in zip(labels, each, strict=True)}
    comparable = Comparable({}, side_by_side(grouped))
    summary = with_repeats(SUMMARY, comparable, tables, FURTHER, {"m": "sample 1"})
    line = summary.tables["repeats"].to_dicts()[0]
    assert line["highest"] == pytest.approx((0.5 + 1) / 2)
    assert line["lowest"] == pytest.approx((0.1 + 1 / 3) / 2)
    # Shares of a region are no hits or misses.
    assert line["agreement"] is None
    assert line["words"] == "m on d, 3 samples: Dice lies between 21.7 and 75.0"


def test_undefined_throughout_stays_undefined() -> None:
    line = repeated(*[[None, None]] * 4).tables["repeats"].to_dicts()[0]
    assert line.get("range") is None
    assert line["agreement"] == 1.0


def test_a_model_that_is_not_repeated_adds_nothing() -> None:
    assert with_repeats(SUMMARY, COMPARABLE, {("m", "d"): rows(1)}, [], {}).tables == {}


values = st.lists(st.sampled_from([0.0, 1.0]), min_size=5, max_size=5)


@settings(max_examples=25, deadline=None)
@given(values, values, values)
def test_agreement_is_that_of_all_pairs(one: list[float], two: list[float], three: list[float]) -> None:
    line = repeated(one, two, three, one).tables["repeats"].to_dicts()[0]
    pairs = [a == b for first, second in combinations((one, two, three), 2) for a, b in zip(first, second, strict=True)]
    assert line["agreement"] == pytest.approx(mean(pairs))
    assert line["range"] == pytest.approx(max(map(mean, (one, two, three))) - min(map(mean, (one, two, three))))
