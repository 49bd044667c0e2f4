"""A run file from its text to its summary, as a user runs it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from medground.config import parse_run_file, read_run_file
from medground.errors import ConfigError, RegistryError, RunError
from medground.running.plan import make_plan
from medground.session import assemble, estimate_file, read_session, run_file as run_a_file

OUTPUTS = ("failures.jsonl", "readings/**/*", "predictions/**/*")


def results(folder: Path) -> dict[str, bytes]:
    """Return every file that must not depend on how a run went."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for pattern in OUTPUTS
        for p in sorted(folder.glob(pattern))
        if p.is_file()
    }


def test_a_run_gives_rows_maps_tables_and_a_summary(run_file: Path, tmp_path: Path) -> None:
    report = run_a_file(run_file, out=tmp_path / "runs")
    assert (report.items, report.failures, report.chunks) == (24, 0, 6)
    summary = json.loads((report.reading / "summary.json").read_text())
    assert [(t["model"], t["pairs"]) for t in summary["data"]["tasks"]] == [
        ("baseline_centre", 12),
        ("baseline_random", 12),
    ]
    assert (report.reading / "tables/overview.tex").is_file()
    resolved = yaml.safe_load((tmp_path / "runs/tiny/run.yaml").read_text())
    assert resolved["benchmark"]["protocol"] == "xbench"
    assert Path(resolved["benchmark"]["datasets"][0]["root"]).is_absolute()


def test_running_again_computes_nothing_and_says_the_same(run_file: Path, tmp_path: Path) -> None:
    run_a_file(run_file, out=tmp_path / "runs")
    before = results(tmp_path / "runs/tiny")
    assert run_a_file(run_file, out=tmp_path / "runs").reused == 6
    assert results(tmp_path / "runs/tiny") == before


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_workers_change_nothing(run_file: Path, tmp_path: Path, workers: int) -> None:
    run_a_file(run_file, out=tmp_path / "a")
    run_a_file(run_file, [f"engine.workers={workers}"], out=tmp_path / "b")
    assert results(tmp_path / "a/tiny") == results(tmp_path / "b/tiny")


def test_a_killed_run_ends_with_the_same_bytes(run_file: Path, tmp_path: Path) -> None:
    run_a_file(run_file, out=tmp_path / "whole")
    chance = random.Random(5)
    command = [sys.executable, "-m", "medground", "run", str(run_file), "--out", str(tmp_path / "killed")]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    for workers in (1, 2, 3):
        process = subprocess.Popen(
            [*command, "--set", f"engine.workers={workers}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        folder = tmp_path / "killed/tiny/readings"
        deadline = time.monotonic() + 60
        seen = len(list(folder.rglob("*.parquet")))
        while process.poll() is None and len(list(folder.rglob("*.parquet"))) <= seen and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    run_a_file(run_file, ["engine.workers=4"], out=tmp_path / "killed")
    assert results(tmp_path / "killed/tiny") == results(tmp_path / "whole/tiny")


def test_a_dry_run_writes_nothing(run_file: Path, tmp_path: Path) -> None:
    estimates = estimate_file(run_file, out=tmp_path / "runs")
    assert [(e.items, e.items_left) for e in estimates] == [(12, 12), (12, 12)]
    assert all(e.seconds is not None for e in estimates)
    assert not (tmp_path / "runs").exists()


def test_a_run_folder_can_be_assembled_again(run_file: Path, tmp_path: Path) -> None:
    run_a_file(run_file, out=tmp_path / "runs")
    again = read_session(tmp_path / "runs/tiny")
    assert [m.label for m in again.models] == ["baseline_centre", "baseline_random"]
    with pytest.raises(RunError, match="not a run folder"):
        read_session(tmp_path / "nothing")


def test_names_are_made_unique(tiny_manifest: Path) -> None:
    data = {
        "name": "x",
        "benchmark": {"name": "xbench", "datasets": [{"name": "manifest", "root": str(tiny_manifest)}]},
        "models": [
            {"name": "baseline_centre"},
            {"name": "baseline_centre", "sigma": 0.1},
            {"name": "baseline_random", "label": "noise"},
        ],
    }
    session = assemble(parse_run_file(data))
    assert [m.label for m in session.models] == ["baseline_centre-1", "baseline_centre-2", "noise"]


def test_a_damaged_mask_costs_its_own_case_and_no_other(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = shutil.copytree(tiny_manifest, tmp_path / "data")
    records = [json.loads(line) for line in (data / "manifest.jsonl").read_text().splitlines()]
    Image.new("RGB", (9, 9)).save(data / "mask.png")
    records[5] |= {"boxes": {}, "masks": {"Mass": "mask.png"}}
    (data / "manifest.jsonl").write_text("\n".join(map(json.dumps, records)))
    changes = ["engine.on_error=skip", f"benchmark.datasets.0.root={data}", "models.1.name=baseline_class_prior"]
    report = run_a_file(run_file, changes, out=tmp_path / "runs")
    assert report.failures == 2
    failed = (tmp_path / "runs/tiny/failures.jsonl").read_text().splitlines()
    assert [(json.loads(line)["task"][0], json.loads(line)["item"]) for line in failed] == [
        ("baseline_centre", "case05"),
        ("baseline_class_prior", "case05"),
    ]


@pytest.mark.parametrize("label", ["baseline_centre-1", "Baseline_Centre-2"])
def test_names_that_are_still_alike_are_refused(run_file: Path, label: str) -> None:
    twice = f"models=[{{name: baseline_centre}}, {{name: baseline_centre}}, {{name: baseline_random, label: {label}}}]"
    with pytest.raises(ConfigError, match="two components have one label"):
        assemble(read_run_file(run_file, [twice]), run_file.parent)


@pytest.mark.parametrize(
    ("override", "error", "message"),
    [
        ("models.0.name=baseline_center", RegistryError, "did you mean 'baseline_centre'"),
        ("models.0.sigmma=0.1", ConfigError, "did you mean 'sigma'"),
        ("benchmark.protocol=xbensch", ConfigError, "did you mean 'xbench'"),
        ("benchmark.datasets=[]", ConfigError, "names 0 datasets"),
        ("benchmark.datasets.0.rot=x", ConfigError, "did you mean 'root'"),
        ("benchmark.datasets=3", ConfigError, "list of components"),
        ("benchmark.protocoll=x", ConfigError, "did you mean 'protocol'"),
        ("benchmark.level=2", ConfigError, "between 0 and 1"),
        ("benchmark.replicates=-1", ConfigError, "negative"),
        ("prompts.Mass=a mass", ConfigError, "none of its models"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(run_file: Path, override: str, error: type, message: str) -> None:
    with pytest.raises(error) as caught:
        assemble(read_run_file(run_file, [override]))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x", "heal_medvqa", "cxreasondial", "medical_checklist"])
def test_a_batch_size_is_part_of_what_every_benchmark_asks(name: str, small_runs: Mapping[str, Any]) -> None:
    plans = []
    for engine in ({}, {"batch_size": 3}):
        run = parse_run_file(small_runs[name] | {"engine": engine})
        plans.append(make_plan(assemble(run).benchmark.tasks()[:1]))
    (plain,), (batched,) = (plan.tasks for plan in plans)
    assert (plain.batch_size, batched.batch_size) == ((1, 1) if name == "gridvqa_x" else (8, 3))
    assert {c.name for c in plain.chunks}.isdisjoint(c.name for c in batched.chunks)


def test_a_batch_size_that_nobody_can_use_is_refused(small_runs: Mapping[str, Any]) -> None:
    server = {"name": "api_chat", "base_url": "http://localhost:1/v1", "model": "m"}
    data = small_runs["heal_medvqa"] | {"models": [server], "engine": {"batch_size": 3}}
    with pytest.raises(ConfigError, match="a batch size has no effect"):
        assemble(parse_run_file(data))
    assemble(parse_run_file(data), alone=False)  # a part of a suite
    blind = {"name": "blind", "of": server}
    with pytest.raises(ConfigError, match="no effect"):
        assemble(parse_run_file(data | {"models": [server, blind]}))
    assemble(parse_run_file(data | {"models": [server, {"name": "small_chat"}]}))
