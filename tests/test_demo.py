from __future__ import annotations

from typing import Any

from medground.demo import demo_run_file, explain
from medground.session import assemble


def test_the_demo_is_a_run_file_like_any_other() -> None:
    run = demo_run_file(cases=3)
    session = assemble(run)
    assert [m.label for m in session.models][-1] == "reference"
    assert [d.label for d in session.datasets] == ["phantom"]


def cell(model: str, metric: str, value: float | None) -> dict[str, Any]:
    return {"model": model, "metric": metric, "value": value, "scope": "macro", "subset": "main"}


def test_five_lines_read_the_numbers_aloud() -> None:
    cells = [
        cell("reference", "auc", 0.92),
        cell("reference", "pointing", 0.79),
        cell("baseline_class_prior", "pointing", 0.31),
        cell("reference", "dice@best", None),
        cell("baseline_all_foreground", "dice@best", 0.08),
    ]
    lines = explain({"cells": cells})
    assert [line[0] for line in lines[1:]] == ["1", "2", "3", "4", "5"]
    assert "92 %" in lines[1]
    assert "79 %" in lines[2]
    assert "31 %" in lines[2]
    assert "undefined" in lines[3]
    assert "8 %" in lines[3]
