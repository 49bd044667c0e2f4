"""Runs pooled by protocol, and models by what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from medground.benchmarks.results import Summary
from medground.reporting.runs import Run, unique_names
from medground.reporting.xbench.pool import pools


def run(name: str, fingerprints: dict[str, str], *, scope: str = "dataset") -> Run:
    data: dict[str, Any] = {
        "tasks": [{"model": m, "dataset": "D", "cases": 1, "pairs": 1, "findings": ["F"]} for m in fingerprints],
        "curves": [{"model": m, "finding": ""} for m in fingerprints],
        "protocol": {"scope": scope},
        "intervals": {"level": 0.95},
    }
    manifest = {"plan": [{"path": [m, "D"], "fingerprint": f} for m, f in fingerprints.items()]}
    return Run(Path(name), {"name": name}, "", manifest, Summary(data=data), "", [])


def test_a_model_measured_alike_is_taken_once() -> None:
    (pool,) = pools([run("a", {"prior": "1", "clip": "2"}), run("b", {"prior": "1", "clip": "3"})])
    assert pool.models == ["prior", "clip · a", "clip · b"]
    assert [record["model"] for record in pool.records("curves")] == ["prior", "clip · a", "clip · b"]
    assert pool.models_on("D") == pool.models
    assert pool.models_on("E") == []


def test_equal_names_of_runs_are_numbered() -> None:
    runs = [run("a", {"clip": "1"}), run("a", {"clip": "2"}), run("b", {})]
    assert unique_names(runs) == ["a (1)", "a (2)", "b"]
    (pool,) = pools(runs)
    assert pool.models == ["clip · a (1)", "clip · a (2)"]


def test_protocols_are_parted() -> None:
    parted = pools([run("a", {"m": "1"}), run("b", {"m": "1"}, scope="class"), run("c", {"n": "1"})])
    assert [[r.name for r in pool.runs] for pool in parted] == [["a", "c"], ["b"]]
