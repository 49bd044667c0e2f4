from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.results import Cell, Summary
from medground.commands.demo import demo_run_file, explain
from medground.reporting.report import write_report
from medground.session import assemble, run_session


def test_the_demo_is_a_run_file_like_any_other() -> None:
    run = demo_run_file(cases=3)
    session = assemble(run)
    assert [m.label for m in session.models][-1] == "reference"
    assert [d.label for d in session.datasets] == ["phantom"]


def cell(model: str, metric: str, value: float | None) -> Cell:
    reason = "no region" if value is None else None
    return Cell(benchmark="xbench", model=model, metric=metric, value=value, scope="macro", reason=reason)


def test_five_lines_read_the_numbers_aloud() -> None:
    cells = [
        cell("reference", "auc", 0.92),
        cell("reference", "pointing", 0.79),
        cell("baseline_class_prior", "pointing", 0.31),
        cell("reference", "dice@best", None),
        cell("baseline_all_foreground", "dice@best", 0.08),
    ]
    lines = explain(Summary(cells=cells))
    assert [line[0] for line in lines[1:]] == ["1", "2", "3", "4", "5"]
    assert "92 %" in lines[1]
    assert "79 %" in lines[2]
    assert "31 %" in lines[2]
    assert "undefined" in lines[3]
    assert "8 %" in lines[3]


def test_the_demo_needs_no_network_and_says_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the demo opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("MEDGROUND_CACHE", str(tmp_path / "cache"))
    summaries = []
    for name in ("one", "two"):
        session = assemble(demo_run_file(cases=12))
        summaries.append(run_session(session, tmp_path / name).summary.data)
        write_report([tmp_path / name])
    assert summaries[0] == summaries[1]
    assert {task["model"] for task in summaries[0]["tasks"]} >= {"reference", "baseline_class_prior"}
