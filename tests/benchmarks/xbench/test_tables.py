from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.printing import heading
from medground.benchmarks.results import Cell, frame
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.relation import relation, relation_by_class, residuals
from medground.benchmarks.xbench.specs import specs
from medground.benchmarks.xbench.tables import seen_text, totals, wide, written

SPECS = {spec.name: spec for spec in specs(resolve_protocol("xbench"))}
FAIR = {spec.name: spec for spec in specs(resolve_protocol({"base": "xbench", "split": "crossfit", "name": "fair"}))}
LOW = {spec.name: spec for spec in specs(resolve_protocol("medklip"))}
DATASET: dict[str, Any] = {"benchmark": "xbench", "model": "m", "dataset": "d", "subset": "main"}


def test_a_number_is_written_in_percent_with_its_interval() -> None:
    assert written({"value": 0.61618, "low": 0.5809, "high": 0.65}, SPECS["auc"]) == "61.62 [58.09, 65.00]"
    assert written({"value": 0.25, "low": None, "high": None}, SPECS["brier"]) == "0.2500"
    undefined = {"value": None, "low": None, "high": None, "reason": "no positives"}
    assert written(undefined, SPECS["auc"]) == "undefined: no positives"


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("dice@0.5", "Dice at 0.5"),
        ("iou@0.008", "IoU at 0.008"),
        ("dice@best", "Dice at searched threshold (optimistic)"),
        ("dice_gain", "Dice gain over floor (optimistic)"),
        ("dice_floor", "Dice of all foreground"),
        ("hamming@0.5", "Hamming at 0.5"),
    ],
)
def test_only_searched_numbers_are_called_optimistic(metric: str, name: str) -> None:
    optimistic = LOW if metric in LOW and metric not in SPECS else SPECS
    assert heading(optimistic[metric]) == name
    if metric in FAIR:
        assert heading(FAIR[metric]) == name.removesuffix(" (optimistic)")


def test_a_best_f1_is_always_found_on_the_test_set() -> None:
    for under in (SPECS, FAIR):
        assert heading(under["f1@best"]) == "F1 at searched threshold (optimistic)"


def test_a_row_a_model_and_group_with_its_counts() -> None:
    cells = frame(
        [
            Cell(**DATASET, scope="class", group=g, metric=m, value=v, n=4, undefined=1, flat=2, failed=3)
            for g in ("Mass", "Nodule")
            for m, v in (("pointing", 0.5), ("iou@best", 0.25))
        ]
    )
    table = wide(cells, "class", [SPECS["pointing"], SPECS["iou@best"]], {("m", "d"): "boxes; scored on all"})
    assert table.to_dicts()[1] == {
        "dataset": "d",
        "model": "m",
        "group": "Nodule",
        "seen in training": "boxes; scored on all",
        "Pointing": "50.00",
        "IoU at searched threshold (optimistic)": "25.00",
        "n": 4,
        "undefined": 1,
        "flat": 2,
        "failed": 3,
    }


def test_pair_means_stand_beside_macro_recognition() -> None:
    cells = frame(
        [
            Cell(**DATASET, scope="pairs", group="", metric="pointing", value=0.5),
            Cell(**DATASET, scope="macro", group="", metric="pointing", value=0.1),
            Cell(**DATASET, scope="macro", group="", metric="auc", value=0.7),
        ]
    )
    (row,) = wide(cells, "pairs", [SPECS["pointing"], SPECS["auc"]], {("m", "d"): ""}).to_dicts()
    assert (row["Pointing"], row["AUC"]) == ("50.00", "70.00")


def test_what_was_seen_is_said() -> None:
    assert seen_text({"seen": None, "cases_seen": 0}) == ""
    assert seen_text({"seen": "images", "cases_seen": 0}) == "images; scored on all"
    assert seen_text({"seen": "boxes", "cases_seen": 3}) == "boxes; scored on the rest"
    assert seen_text({"seen": None, "cases_seen": 3}) == "patients; scored on the rest"


def task(dataset: str, model: str, findings: list[str], **counts: int) -> dict[str, Any]:
    start = {"cases": 10, "patients": 7, "pairs": 5, "present_but_not_localised": 1, "cases_failed": 0}
    return {"model": model, "dataset": dataset, "findings": findings, "kind": None} | start | counts


def test_totals_add_up_but_for_patients() -> None:
    tasks = [task("d", "m", ["Mass"]), task("d", "n", ["Mass"], cases_failed=2), task("e", "m", ["Mass", "Nodule"])]
    first, second, everything = totals(tasks).to_dicts()
    assert first["cases not read"] == 2
    assert second["findings"] == 2
    assert everything == {
        "dataset": "all",
        "cases": 20,
        "patients": None,
        "findings": 2,
        "regions": 10,
        "present but not localised": 2,
        "cases not read": 2,
    }
    assert totals(tasks[:2])["dataset"].to_list() == ["d"]


def test_every_point_stands_beside_its_line() -> None:
    auc, pointing = (0.6, 0.7, 0.9), (0.2, 0.5, 0.6)
    cells = frame(
        [
            Cell(**DATASET | {"model": model}, scope="class", group=f"f{i}", metric=metric, value=value + shift)
            for model, shift in (("a", 0.0), ("b", 0.05), ("c", 0.08))
            for metric, values in (("auc", auc), ("pointing", pointing))
            for i, value in enumerate(values)
        ]
    )
    tasks = [task("d", model, ["f0", "f1", "f2"]) for model in ("a", "b", "c")]
    table = residuals(relation(cells, tasks), relation_by_class(cells, tasks))
    assert table["line over"].unique(maintain_order=True).to_list() == [
        "models",
        *(f"findings of {name}" for name in ("a", "b", "c", "all models")),
    ]
    assert len(table) == 3 + 3 * 3 + 9
    slope, intercept = np.polyfit(auc, pointing, 1)
    own = table.filter(pl.col("line over") == "findings of a")
    assert own["residual"].to_list() == pytest.approx(
        [y - slope * x - intercept for x, y in zip(auc, pointing, strict=True)]
    )
    assert own["R²"].unique().to_list() == pytest.approx([np.corrcoef(auc, pointing)[0, 1] ** 2])
    assert own["rank correlation"].unique().to_list() == [1.0]
    assert len(residuals(relation(cells.head(0), tasks), [])) == 0
