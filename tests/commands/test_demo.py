from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.results import Cell, Summary, Verdict
from medground.commands.demo import demo_suite, explain, write
from medground.suite import run_suite


def test_the_demo_is_a_suite_of_all_five_benchmarks() -> None:
    suite = demo_suite()
    assert [part.label for part in suite.parts] == [
        "xbench",
        "medical_checklist",
        "heal_medvqa",
        "cxreasondial",
        "gridvqa_x",
    ]
    assert not suite.unasked
    assert not any(part.left_out for part in suite.parts), "everybody is asked what they can"


def test_lines_read_the_numbers_aloud() -> None:
    def cell(model: str, metric: str, value: float | None) -> Cell:
        reason = "no region" if value is None else None
        return Cell(benchmark="xbench", model=model, metric=metric, value=value, scope="macro", reason=reason)

    cells = [
        cell("reference", "auc", 0.92),
        cell("reference", "pointing", None),
        cell("reference (blind)", "auc", 0.5),
        cell("class prior", "pointing", 0.31),
    ]
    headline = Cell(benchmark="b", model="m", metric="accuracy", value=0.5)
    verdict = Verdict(
        benchmark="b", question="captions", model="m", answer="no", because="it does not", roles={"headline": headline}
    )
    lines = explain({"xbench": Summary(cells=cells), "b": Summary(benchmark="b", verdicts=[verdict])})
    assert "AUC of 92 % (blind: 50 %)" in lines[1]
    assert "in undefined of cases" in lines[1]
    assert "31 %" in lines[1]
    assert lines[2] == "2. b: m prefers the true caption: no."


def test_the_demo_needs_no_network_and_says_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the demo opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("MEDGROUND_CACHE", str(tmp_path / "cache"))
    texts = []
    for name in ("one", "two"):
        # GridVQA-X is left to its own tests: its processes would take most of the time here.
        suite = demo_suite(scale=0.1)
        parts = tuple(part for part in suite.parts if part.label != "gridvqa_x")
        done = run_suite(type(suite)(suite.name, parts, (), suite.base), tmp_path / name)
        page = write(done)
        assert page.stat().st_size < 12e6
        texts.append({label: (report.reading / "summary.json").read_text() for label, report in done.parts})
    assert texts[0] == texts[1]
