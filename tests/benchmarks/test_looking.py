"""A model beside its blind twin, item by item."""

from __future__ import annotations

import polars as pl
import pytest

from medground.benchmarks.base import Entry
from medground.benchmarks.comparable import Comparable, Contender, Sample, side_by_side
from medground.benchmarks.looking import with_looking
from medground.benchmarks.results import ModelFacts, Summary
from medground.metrics.bootstrap import clusters
from medground.metrics.differences import compare_means
from medground.metrics.spec import MetricSpec

HITS = MetricSpec("hits", "Hits")
ENTRIES = [Entry("sees", "x", object), Entry("blind", "blind", object, {}, "sees"), Entry("other", "x", object)]
SUMMARY = Summary(cells=[], models=[ModelFacts(label=entry.label) for entry in ENTRIES], notes=("first",))


def rows(values: list[int]) -> pl.DataFrame:
    items = [f"i{k}" for k in range(len(values))]
    return pl.DataFrame({"item": items, "patient": items, "group": "", "value": [float(v) for v in values]})


COMPARABLE = Comparable({}, side_by_side(lambda side: [Sample(HITS, side.rows)]))
SEEING, BLIND = [1] * 18 + [0] * 2, [1] * 3 + [0] * 17


def test_what_looking_adds_is_the_paired_difference() -> None:
    tables = {("sees", "d"): rows(SEEING), ("blind", "d"): rows(BLIND), ("other", "d"): rows(BLIND)}
    summary = with_looking(SUMMARY, COMPARABLE, tables, ENTRIES)
    assert [f.twin_of for f in summary.models] == [None, "sees", None]
    (line,) = summary.tables["looking"].to_dicts()
    expected = compare_means(SEEING, BLIND, clusters([f"i{k}" for k in range(20)]))
    assert (line["model"], line["twin"], line["dataset"], line["scope"]) == ("sees", "blind", "d", "all")
    assert (line["difference"], line["low"], line["high"]) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert line["decision"] == "better"
    assert summary.notes[1].startswith("sees: looking adds to Hits on d: +75.0 [")


def test_parts_and_places_meet_their_own_and_places_are_taken_together() -> None:
    def parts(model: str, place: str, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
        return {f"{place} {name}": table.filter(pl.col("item") < name) for name in ("i5", "i9")}

    def one(path: tuple[str, ...]) -> str:
        return path[1]

    comparable = Comparable({}, COMPARABLE.matched, place=one, parts=parts)
    later = rows(SEEING).with_columns(item=pl.lit("j") + pl.col("item"))
    tables = {("sees", "d", "1"): rows(SEEING), ("sees", "d", "2"): later, ("blind", "d", "1"): rows(BLIND)}
    sides = list(comparable.sides("sees", {path: t for path, t in tables.items() if path[0] == "sees"}))
    assert [(side.name, side.place, len(side.rows)) for side in sides] == [
        ("d i5 on sees", "d", sum(f"i{k}" < "i5" for k in range(20))),
        ("d i9 on sees", "d", sum(f"i{k}" < "i9" for k in range(20))),
    ]
    summary = with_looking(SUMMARY, comparable, tables, ENTRIES)
    assert summary.tables["looking"]["model"].to_list() == ["d i5 on sees", "d i9 on sees"]


def test_a_metric_that_only_one_has_is_left_out() -> None:
    def samples(side: Contender) -> list[Sample]:
        more = MetricSpec("more", "More")
        return [Sample(HITS, side.rows), *([Sample(more, side.rows)] if side.model == "sees" else [])]

    sides = [Contender(model, model, "", "d", rows(SEEING)) for model in ("sees", "blind")]
    assert [one.spec.name for one, _ in side_by_side(samples)(*sides)] == ["hits"]


def test_a_run_without_twins_is_left_alone() -> None:
    assert with_looking(SUMMARY, COMPARABLE, {("sees", "d"): rows(SEEING)}, ENTRIES[:1]) is SUMMARY
