"""The page of Medical-Checklist: figures and tables by group hold the cells' own numbers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.medical_checklist import MedicalChecklist, phantom
from medground.benchmarks.medical_checklist.exposure import exposure
from medground.benchmarks.results import Cell
from medground.reporting.medical_checklist.figures import beside_the_blind, bins, lines
from medground.reporting.medical_checklist.terms import MOST, terms


def cell(metric: str, scope: str, group: str, value: float | None, model: str = "m") -> Cell:
    ends = {"low": 0.1, "high": 0.9} if value is not None else {"reason": "no item"}
    return Cell(
        benchmark="medical_checklist", reading="r", model=model, dataset="d", metric=metric, scope=scope, group=group,
        value=value, n=30, **ends,
    )  # fmt: skip


def test_bins_stand_in_their_order_and_unmeasured_ones_are_left_out() -> None:
    cells = [cell("accuracy", "length", f"{k}: {k} to {k + 1}", k / 10) for k in (9, 1, 5)]
    cells.append(cell("accuracy", "length", "7: 7 to 8", None))
    (trace,) = bins(cells, ["m"], "length", "Length", "words", "a").choices["accuracy"]
    assert trace["x"] == ["1-2", "5-6", "9-10"]
    assert trace["y"] == [10, 50, 90]


def test_models_share_a_line_without_hiding_each_other() -> None:
    cells = [cell("accuracy", "type", "Device", 0.6), cell("accuracy", "type", "Device", 0.7, "other")]
    first, second = lines(cells, ["m", "other"], "type", "Type", "", "a").choices["accuracy"]
    assert first["x"] == [60]
    assert second["x"] == [70]
    assert first["y"] != second["y"]


def test_what_was_not_measured_has_no_line() -> None:
    cells = [cell("accuracy", "all", "", 0.8), cell("blind", "all", "", 0.5)]
    figure = beside_the_blind(cells, ["m"], "a")
    assert figure.layout["yaxis"]["ticktext"] == ["the picture", "best blind scorer"]
    assert figure.choices["accuracy"][0]["x"] == [80, 50]


def test_terms_show_both_ends() -> None:
    cells = [cell("preference", "term", f"t{k:02}", k / 100) for k in range(40)]
    (table,) = terms(cells, ["m"])
    assert [row.name for row in table.rows] == [f"t{k:02}" for k in [*range(39, 24, -1), *range(14, -1, -1)]]
    assert len(table.rows) == 2 * MOST
    assert "10 terms" in table.notes[1]
    assert list(terms([], ["m"])) == []


@pytest.mark.parametrize(
    ("source", "seen", "known", "expected"),
    [
        ("roco", {"roco": "images"}, True, "seen: images"),
        ("roco", {"pmc_15m": "figures"}, True, "may be seen: figures of PubMed Central"),
        ("own", {"pmc_15m": "figures"}, True, "not listed as seen"),
        ("roco", {}, True, "not listed as seen"),
        ("roco", {}, False, "unknown"),
    ],
)
def test_exposure_follows_the_card(source: str, seen: Any, known: bool, expected: str) -> None:
    assert exposure(source, seen, known=known) == expected


def test_a_run_is_composed_into_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    from medground.models.radiology.reference import Reference
    from medground.reporting.medical_checklist.component import compose

    folder = phantom.build(tmp_path / "p", phantom.Recipe(pairs=10, size=64, seed=2))
    benchmark = MedicalChecklist(build=folder)
    benchmark.bind(Setting(models=[Entry("reference", "reference", Reference, {})], batch_size=8))
    (task,) = benchmark.tasks()
    measured = evaluate(task, {"model": Reference()})
    rows = {task.path: pl.DataFrame([r for m in measured for r in m.rows], schema=task.schema)}
    summary = benchmark.summarise(rows)

    read = SimpleNamespace(benchmark="medical_checklist", tables={}, data=summary.data, summary=summary)
    monkeypatch.setattr("medground.reporting.medical_checklist.component.unique_names", lambda runs: ["captions"])
    monkeypatch.setattr("medground.reporting.plain.unique_names", lambda runs: ["captions"])
    made = compose([read], "auto")
    assert made.subject == "reference (Medical-Checklist)"
    assert made.summary[0][1].startswith("reference, ")
    own, audit = made.sections[:2]
    assert {f.title for f in own.figures} >= {"With and without the picture", "Caption length", "Semantic type"}
    assert [t.title for t in own.tables[:3]] == [
        "Accuracy by semantic type", "Accuracy by source", "Accuracy by seen in pretraining",
    ]  # fmt: skip
    held = {c.group: c.value for c in summary.cells if c.metric == "accuracy" and c.scope == "type"}
    table = own.tables[0]
    assert {r.name: e[0].value for r, e in zip(table.rows, table.entries, strict=True)} == pytest.approx(
        {group: 100 * value for group, value in held.items()}
    )
    assert "needs the image" in audit.content["lead"] or "cannot be told" in audit.content["lead"]
