"""Tables of models on hand-made numbers: who is marked, what is noted, and what n says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from medground.benchmarks.results import Cell, Summary
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.specs import specs
from medground.reporting.runs import Run
from medground.reporting.tables import Table
from medground.reporting.xbench.layout import tables_of
from medground.reporting.xbench.model_table import Column, model_table
from medground.reporting.xbench.pool import Pooled
from medground.reporting.xbench.published import PublishedRow

KINDS = {"one": "zero-shot", "two": "zero-shot", "seen": "zero-shot", "trained": "supervised", "prior": "baseline"}


def cell(model: str, metric: str, value: float | None, **more: Any) -> Cell:
    place = {"subset": "main", "scope": "macro", "group": ""} | more
    n = place.pop("n", 2)
    return Cell(benchmark="xbench", model=model, dataset="D", metric=metric, value=value, n=n, **place)


def task(model: str, **more: Any) -> dict[str, Any]:
    seen = "boxes" if model == "seen" else None
    plain = {"model": model, "dataset": "D", "kind": KINDS[model], "seen": seen, "cases_seen": 0, "unverified": None}
    return plain | {"findings": ["Mass", "Nodule"], "cases": 10, "pairs": 12} | more


def pool(cells: list[Cell], tasks: list[dict[str, Any]] | None = None) -> Pooled:
    protocol = resolve_protocol("xbench")
    data = {
        "tasks": tasks or [task(model) for model in KINDS],
        "protocol": protocol.model_dump(mode="json"),
        "optimistic": True,
    }
    summary = Summary(cells=cells, data=data, benchmark="xbench", metrics=specs(protocol))
    return Pooled.of([Run(Path("runs/r"), {"name": "r"}, "", {"plan": []}, summary, "", [])])


def marked(table: Table, column: int = 0) -> dict[str, str | None]:
    entries = zip(table.rows, (row[column] for row in table.entries), strict=True)
    return {head.name: entry.mark for head, entry in entries if entry is not None}


def test_seen_trained_and_baseline_models_are_shown_and_not_ranked() -> None:
    values = {"one": 0.3, "two": 0.4, "seen": 0.9, "trained": 0.8, "prior": 0.95}
    table = model_table(pool([cell(m, "pointing", v) for m, v in values.items()]), "D", "t", [Column("P", "pointing")])
    assert marked(table) == {"one": "second", "two": "best", "seen": None, "trained": None, "prior": None}
    heads = {head.name: head for head in table.rows}
    assert list(heads)[-1] == "prior"
    assert heads["prior"].kind == "baseline"
    assert heads["seen"].notes == ("seen in training: boxes; scored on all",)
    assert heads["trained"].notes == ("supervised",)


def test_equal_figures_are_marked_alike_and_losses_are_best_low() -> None:
    cells = [cell("one", "pointing", 0.123401), cell("two", "pointing", 0.123449), cell("one", "brier", 0.2)]
    cells += [cell("two", "brier", 0.1)]
    table = model_table(pool(cells), "D", "t", [Column("P", "pointing"), Column("B", "brier")])
    assert marked(table) == {"one": "best", "two": "best"}
    assert marked(table, 1) == {"one": "second", "two": "best"}
    assert table.entries[1][1] is not None
    assert table.entries[1][1].text == "0.1000"


def test_gaps_floors_and_priors_are_not_ranked() -> None:
    metrics = ("dice_gap", "dice_floor", "pointing_prior")
    cells = [cell(m, metric, v) for metric in metrics for m, v in (("one", 0.1), ("two", 0.2))]
    table = model_table(pool(cells), "D", "t", [Column(m, m) for m in metrics])
    assert all(entry is None or entry.mark is None for row in table.entries for entry in row)


def test_runs_of_different_cases_are_not_ranked() -> None:
    cells = [cell("one", "pointing", 0.1), cell("two", "pointing", 0.2)]
    table = model_table(pool(cells, [task("one"), task("two", pairs=11)]), "D", "t", [Column("P", "pointing")])
    assert marked(table) == {"one": None, "two": None}


def test_what_a_number_rests_on_is_noted_where_it_differs() -> None:
    cells = [
        cell("one", "pointing", 0.5, scope="class", group="Mass", n=7),
        cell("two", "pointing", 0.5, scope="class", group="Mass", n=4, undefined=2, flat=1, failed=1),
        cell("seen", "pointing", None, scope="class", group="Mass", n=0, undefined=7, reason="no map"),
        cell("one", "pointing", 0.5),
        cell("two", "pointing", 0.5, n=1),
        cell("one", "hamming@0.5", 0.5, n=20),
        cell("two", "hamming@0.5", 0.5, n=18),
    ]
    columns = [Column("Mass", "pointing", "class", "Mass"), Column("Mean", "pointing"), Column("H", "hamming@0.5")]
    table = model_table(pool(cells), "D", "t", columns)
    notes = {
        head.name: [entry and (entry.text, entry.note) for entry in row]
        for head, row in zip(table.rows, table.entries, strict=True)
    }
    assert notes["one"] == [("50.00", ""), ("50.00", ""), ("50.00", "")]
    assert notes["two"] == [
        ("50.00", "n 4, 2 undefined, 1 flat, 1 failed"),
        ("50.00", "1 of 2 classes"),
        ("50.00", "n 18"),
    ]
    assert notes["seen"][0] == ("undefined", "no map")


def test_printed_rows_stand_below_with_their_faults() -> None:
    row = PublishedRow("CLIP", {("pointing", ""): ("7.42", "odd"), ("pointing", "Mass"): ("4.7", "")})
    cells = [cell("one", "pointing", 0.05), cell("two", "pointing", 0.02)]
    columns = [Column("P", "pointing"), Column("All", "pointing", "pairs"), Column("A", "auc")]
    table = model_table(pool(cells), "D", "t", columns, [row], counts="column")
    assert table.rows[-1].kind == "published"
    (first, *others) = table.entries[-1]
    assert first is not None
    assert (first.text, first.note, first.value, first.mark) == ("7.42", "odd", 7.42, None)
    assert others == [None, None, None]
    nothing = model_table(pool(cells), "D", "t", [Column("A", "auc")], [row])
    assert "published" not in {head.kind for head in nothing.rows}


def test_shared_cases_have_a_table_of_their_own_without_printed_rows() -> None:
    cells = [cell(m, "pointing", 0.5, subset=s) for m in ("one", "two") for s in ("main", "shared")]
    row = PublishedRow("CLIP", {("pointing", ""): ("7.42", "")})
    tables = {t.choice: t for t in tables_of(pool(cells), "D", [row]) if t.family == "Overall"}
    assert "CLIP" in {head.name for head in tables["Pointing and Dice"].rows}
    assert "CLIP" not in {head.name for head in tables["Cases that no model has seen"].rows}


def test_wide_tables_are_turned() -> None:
    cells = [cell("one", "pointing", k / 20, scope="class", group=f"g{k}") for k in range(12)]
    columns = [Column(f"g{k}", "pointing", "class", f"g{k}") for k in range(12)]
    table = model_table(pool(cells), "D", "t", columns, counts="row").readable("finding")
    assert (table.corner, len(table.rows), table.columns[0].name) == ("finding", 12, "regions")
    assert table.readable("x") is table
