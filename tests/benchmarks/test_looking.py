"""A model's figures beside its blind twin's."""

from __future__ import annotations

from typing import Any

from medground.benchmarks.base import Entry
from medground.benchmarks.looking import beside_twins
from medground.benchmarks.results import Cell, ModelFacts, Summary


def cell(model: str, metric: str, value: float | None, **more: Any) -> Cell:
    reason = None if value is not None else "nothing to measure"
    return Cell(benchmark="b", model=model, metric=metric, dataset="d", value=value, n=5, reason=reason, **more)


def test_every_figure_of_a_model_stands_beside_its_twins() -> None:
    cells = [
        cell("sees", "accuracy", 0.9),
        cell("sees", "accuracy", 0.8, scope="class", group="Mass"),
        cell("sees", "tpt", 0.5),
        cell("blind", "accuracy", 0.6),
        cell("blind", "accuracy", 0.5, scope="class", group="Mass"),
        cell("blind", "tpt", None),
        cell("other", "accuracy", 0.1),
    ]
    facts = [ModelFacts(label=label) for label in ("sees", "blind", "other")]
    entries = [Entry("sees", "x", object), Entry("blind", "blind", object, {}, "sees"), Entry("other", "x", object)]
    summary = beside_twins(Summary(cells=cells, models=facts), entries)
    assert [f.twin_of for f in summary.models] == [None, "sees", None]
    table = summary.tables["looking"]
    assert table.select("metric", "group", "value", "twin_value").rows() == [
        ("accuracy", "", 0.9, 0.6),
        ("accuracy", "Mass", 0.8, 0.5),
        ("tpt", "", 0.5, None),
    ]
    assert [None if d is None else round(d, 9) for d in table["difference"]] == [0.3, 0.3, None]
    assert any("without intervals" in note for note in summary.notes)


def test_a_run_without_twins_is_left_alone() -> None:
    summary = Summary(cells=[cell("sees", "accuracy", 0.9)], models=[ModelFacts(label="sees")])
    assert beside_twins(summary, [Entry("sees", "x", object)]) is summary
