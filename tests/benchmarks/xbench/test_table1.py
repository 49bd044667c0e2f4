"""Table 1: the paper's order, names and measures, from the cells alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from medground import registry
from medground.benchmarks.results import Cell, Summary, frame
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.specs import specs
from medground.benchmarks.xbench.table1 import PAPER, table1
from medground.config import read_run_file
from medground.session import assemble, run_file as run
from medground.terminal import show_summary

EXAMPLE = Path(__file__).parents[3] / "examples" / "seven_datasets.yaml"
SPECS = {spec.name: spec for spec in specs(resolve_protocol("xbench"))}
FAIR = {spec.name: spec for spec in specs(resolve_protocol({"base": "xbench", "split": "crossfit", "name": "fair"}))}
VALUES = {"pointing": 0.5, "dice@best": 0.25, "iou@best": 0.125, "dice_floor": 0.2, "iou_floor": 0.1}


def grid(model: str, dataset: str, *, n: int = 8, of: int = 8, **values: float | None) -> list[Cell]:
    """Return the cells of a task: macro means 0.01 above the means over pairs."""
    found = {"pointing_prior": 0.75} | VALUES | {k.replace("_best", "@best"): v for k, v in values.items()}
    who: dict[str, Any] = {"benchmark": "xbench", "model": model, "dataset": dataset, "group": ""}
    cells = []
    for metric, value in found.items():
        above, reason = (None, "why") if value is None else (value + 0.01, None)
        cells += [
            Cell(**who, scope="macro", metric=metric, value=above, low=0.0, high=1.0, n=2, reason=reason),
            Cell(**who, scope="pairs", metric=metric, value=value, n=n, undefined=of - n, reason=reason),
            Cell(**who, subset="shared", scope="macro", metric=metric, value=0.999),
            Cell(**who | {"group": "Mass"}, scope="class", metric=metric, value=0.999),
        ]
    return [*cells, Cell(**who, scope="macro", metric="auc", value=0.999)]


def content(tasks: dict[tuple[str, str], int], *, averaging: str = "macro", optimistic: bool = True) -> dict[str, Any]:
    """Return the rest of a summary: (model, dataset) -> number of classes."""
    entries = [
        {"model": m, "dataset": d, "findings": ["x"] * classes, "seen": None, "cases_seen": 0}
        for (m, d), classes in tasks.items()
    ]
    return {"tasks": entries, "protocol": {"averaging": averaging}, "optimistic": optimistic}


def by_model(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in table.to_dicts()}


def test_models_down_datasets_across_in_the_papers_order_and_names() -> None:
    tasks = {(m, d): n for m in ("ours", "theirs") for d, (_, n) in reversed([*PAPER.items(), ("extra", ("", 3))])}
    table = table1(frame([c for m, d in tasks for c in grid(m, d)]), content(tasks), SPECS)
    assert table["model"].to_list() == ["ours", "theirs", "all foreground", "class prior", "regions"]
    titles = [name for name, _ in PAPER.values()] + ["extra"]
    measures = ("Pointing", "Dice (optimistic)", "IoU (optimistic)")
    assert table.columns == ["model", *(f"{t} {m}" for t in titles for m in measures), "seen in training"]
    rows = by_model(table)
    for title in titles:
        assert [rows["ours"][f"{title} {m}"] for m in measures] == ["51.00", "26.00", "13.50"]
        assert [rows["all foreground"][f"{title} {m}"] for m in measures] == [None, "21.00", "11.00"]
        assert [rows["class prior"][f"{title} {m}"] for m in measures] == ["76.00", None, None]
        assert [rows["regions"][f"{title} {m}"] for m in measures] == ["8", None, None]


def test_the_order_is_that_of_the_printed_table() -> None:
    printed = Path(registry.__file__).parent / "reporting" / "xbench" / "published_tables" / "table1_grounding.csv"
    names = dict.fromkeys(row["dataset"] for row in csv.DictReader(printed.read_text().splitlines()))
    assert [name for name, _ in PAPER.values()] == list(names)
    for component, (_, classes) in PAPER.items():
        assert len(registry.load("dataset", component).info.findings) == classes


def test_a_dataset_with_other_classes_or_a_label_keeps_its_own_name() -> None:
    tasks = {("m", "chestx_det"): 13, ("m", "rsna_pneumonia"): 1, ("m", "RSNA Pneumonia"): 1}
    table = table1(frame([c for m, d in tasks for c in grid(m, d, pointing=len(d) / 100)]), content(tasks), SPECS)
    (row, *_) = table.to_dicts()
    assert row["rsna_pneumonia Pointing"] == "15.00"
    assert row["chestx_det Pointing"] == "11.00"
    assert row["RSNA Pneumonia Pointing"] == "15.00"
    assert len(table.columns) == 11


def test_pair_means_where_the_protocol_prints_them_and_no_optimism_where_there_is_none() -> None:
    tasks = {("m", "a"): 1, ("m", "b"): 1}
    cells = frame([c for m, d in tasks for c in grid(m, d)])
    (row, *_) = table1(cells, content(tasks, averaging="pairs", optimistic=False), FAIR).to_dicts()
    assert (row["a Pointing"], row["b Dice"], row["b IoU"]) == ("50.00", "25.00", "12.50")


def test_what_a_value_rests_on_is_said_and_the_yardsticks_rest_on_the_most() -> None:
    tasks = {("some", "a"): 1, ("all", "a"): 1, ("some", "b"): 1, ("all", "b"): 1}
    cells = [*grid("some", "a", n=3, dice_floor=0.9), *grid("all", "a"), *grid("some", "b"), *grid("all", "b", n=2)]
    rows = by_model(table1(frame(cells), content(tasks), SPECS))
    assert rows["some"]["a Pointing"] == "51.00 (3 of 8)"
    assert rows["all"]["a Pointing"] == "51.00"
    assert rows["all foreground"]["a Dice (optimistic)"] == "21.00"
    assert (rows["regions"]["a Pointing"], rows["class prior"]["b Pointing"]) == ("8", "76.00")


def test_undefined_is_neither_nothing_nor_zero() -> None:
    tasks = {("m", "a"): 1, ("m", "b"): 1}
    cells = [*grid("m", "a", n=0, pointing=None, dice_best=None), *grid("m", "b")]
    rows = by_model(table1(frame(cells), content(tasks), SPECS))
    assert (rows["m"]["a Pointing"], rows["m"]["a Dice (optimistic)"]) == ("undefined", "undefined")


def test_what_was_seen_in_training_stands_in_the_row() -> None:
    tasks = {("m", "nih_chestxray14"): 8, ("m", "b"): 1}
    data = content(tasks)
    data["tasks"][0] |= {"seen": "boxes", "cases_seen": 4}
    rows = by_model(table1(frame([c for m, d in tasks for c in grid(m, d)]), data, SPECS))
    assert rows["m"]["seen in training"] == "ChestX-ray14: boxes; scored on the rest"


def test_a_terminal_shows_it_turned_where_it_would_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {("m", d): 1 for d in "abcdef"}
    table = table1(frame([c for m, d in tasks for c in grid(m, d)]), content(tasks), SPECS)
    show_summary(Summary(tables={"table1": table}))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model", "m", "all", "foreground", "class", "prior", "regions"] in lines
    assert ["b", "Dice", "(optimistic)", "26.00", "21.00"] in lines
    assert "seen" not in {word for line in lines for word in line}
    show_summary(Summary())
    assert capsys.readouterr().out == ""


def test_it_is_made_where_there_are_several_datasets(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    assert "table1" not in run(run_file, out=tmp_path / "one").summary.tables
    two = [{"name": "manifest", "root": str(tiny_manifest), "label": label} for label in "ab"]
    tables = run(run_file, [f"benchmark.datasets={json.dumps(two)}"], out=tmp_path / "two").summary.tables
    assert [c for c in tables["table1"].columns if c.endswith("Pointing")] == ["a Pointing", "b Pointing"]


def test_the_example_names_the_papers_datasets_in_order() -> None:
    example = read_run_file(EXAMPLE)
    assert [d["name"] for d in example.benchmark.parameters["datasets"]] == list(PAPER)
    assert assemble(example, EXAMPLE.parent).run.name == "seven-datasets"


@pytest.mark.data
def test_one_run_file_evaluates_all_seven(data_root: Path, tmp_path: Path) -> None:
    roots = ["covid-rural", "rsna", "siim", "chestx-det", "chexlocalize", "vindr", "nih-chestxray14"]
    changed = {f"benchmark.datasets.{i}.root": data_root / root for i, root in enumerate(roots)}
    changed |= {"benchmark.datasets.6.image_dir": "images_1024", "benchmark.replicates": 0}
    changed |= {"benchmark.cache": tmp_path / "decoded", "models": "[{name: baseline_centre}]"}
    report = run(EXAMPLE, [f"{key}={value}" for key, value in changed.items()], out=tmp_path)
    table, cells = report.summary.tables["table1"], report.summary.tables["cells"]
    macro = cells.filter((pl.col("scope") == "macro") & (pl.col("subset") == "main"))
    values = {(c["dataset"], c["metric"]): c["value"] for c in macro.iter_rows(named=True)}
    (row, *_) = table.to_dicts()
    for dataset, (title, _) in PAPER.items():
        if dataset != "chestx_det":  # its folder holds the 13 classes of ChestX-Det
            value = values[dataset, "dice@best"]
            assert row[f"{title} Dice (optimistic)"].split(" (")[0] == f"{100 * value:.2f}"
    assert {p.suffix for p in report.reading.glob("tables/table1.*")} == {".csv", ".md", ".tex"}
