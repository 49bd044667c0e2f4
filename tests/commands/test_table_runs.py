"""``medground table`` on a finished run of every benchmark: figures of its cells, in every form."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from medground.benchmarks.printing import heading, with_interval
from medground.commands.table import Wanted, table_of, written
from medground.reporting.runs import read_run
from medground.session import run_file

NAMED: Mapping[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "xbench": (("AUC", "Pointing", "Dice at cross-fitted threshold"), "class", ("auc", "pointing")),
    "gridvqa_x": (("Accuracy",), "depth", ("accuracy",)),
    "heal_medvqa": (
        ("Balanced accuracy", "TPT, finding swapped", "VPT, drawn without the finding"),
        "answers",
        ("balanced_accuracy", "recall"),
    ),
    "cxreasondial": (("Faith", "Cov", "Hall"), "task", ("faithfulness", "coverage")),
    "medical_checklist": (("Accuracy",), "type", ("accuracy", "brier")),
}
"""Headings of the usual columns; a scope of groups, and metrics that have it."""

SMALLER: Mapping[str, Mapping[str, Any]] = {"gridvqa_x": {"explainers": []}}
"""Explanations take most of a run's time."""


@pytest.fixture(scope="module", params=sorted(NAMED))
def finished(request: Any, small_runs: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    run = small_runs[request.param] | {"engine": {"torch_threads": 1}}
    run["benchmark"] = run["benchmark"] | SMALLER.get(request.param, {})
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    run_file(folder / "run.yaml", out=folder)
    return folder / request.param


def test_every_form_of_a_table(finished: Path) -> None:
    usual, scope, metrics = NAMED[finished.name]
    table = table_of([finished], Wanted(marks=True))
    assert table.columns[0] == "model"
    assert tuple(column for column in table.columns if column in usual) == usual
    assert len(table) >= 1

    rows = list(csv.reader(io.StringIO(written(table, "csv"))))
    assert rows[0] == table.columns
    assert len(rows) == len(table) + 1
    lines = written(table, "md", "What it shows: 50 %").splitlines()
    assert lines[0].count("|") == lines[1].count("|") == len(table.columns) + 1
    assert lines[-1] == "What it shows: 50 %"
    tex = written(table, "tex", "A & B_1, 50 %")
    assert r"\caption{A \& B\_1, 50 \%}" in tex
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
    assert [line.count(" & ") for line in body.splitlines()[1:]] == [len(table.columns) - 1] * len(table)
    assert tex.count(r"\toprule") == tex.count(r"\bottomrule") == 1

    # Chosen columns by group are the cells of these groups.
    summary = read_run(finished).summary
    chosen = table_of([finished], Wanted(columns=metrics, scope=scope))
    spec = summary.spec(metrics[0])
    cells = [cell for cell in summary.cells if (cell.metric, cell.scope) == (metrics[0], scope)]
    shown = [figure for figure in chosen[heading(spec)] if figure is not None]
    assert shown == [with_interval(spec, cell, None) for cell in cells]
    assert cells
