"""Tasks are a specification and a path: each survives pickling, and another process makes the same bytes of it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from medground.config import parse_run_file
from medground.running.run import plan_run
from medground.session import assemble, engine_options, run_session

NAMES = ["xbench", "gridvqa_x", "heal_medvqa", "cxreasondial", "medical_checklist"]

ALONE = """
import sys
from pathlib import Path

from medground.config import read_run_file
from medground.running.local import run_local
from medground.running.run import plan_run
from medground.running.store import Store
from medground.session import assemble, engine_options
from medground.running.threads import fixed_torch_threads

file, number, folder = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
run = read_run_file(file)
benchmark, options = assemble(run).benchmark, engine_options(run)
plan = plan_run(benchmark, options, 1)
chunk = plan.chunks[number]
with Store(folder, {"benchmark": {"name": run.name}}, reading="alone") as store, fixed_torch_threads(1):
    run_local([(plan.tasks[chunk.task_index], [chunk])], store, options)
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_task_survives_pickling(name: str, small_runs: Mapping[str, Any]) -> None:
    run = parse_run_file(small_runs[name])
    for task in assemble(run).benchmark.tasks():
        again = pickle.loads(pickle.dumps(task))
        assert (again.path, again.fingerprint(), again.reading()) == (task.path, task.fingerprint(), task.reading())
        assert [item.item_id for item in again.items()] == [item.item_id for item in task.items()]
        assert (again.batch_size, again.cohort, again.schema) == (task.batch_size, task.cohort, task.schema)
        # Another process is handed what was used already, too.
        assert pickle.loads(pickle.dumps(again)).fingerprint() == task.fingerprint()


@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_process_makes_the_bytes_of_a_chunk_from_run_file_and_number(
    name: str, small_runs: Mapping[str, Any], tmp_path: Path
) -> None:
    run = parse_run_file(small_runs[name] | {"engine": {"chunk": 2, "workers": 0, "torch_threads": 1}})
    report = run_session(assemble(run), tmp_path / "whole")
    plan = plan_run(assemble(run).benchmark, engine_options(run), 1)
    number = len(plan.chunks) // 2
    command = [sys.executable, "-c", ALONE, str(tmp_path / "whole/run.yaml"), str(number), str(tmp_path / "alone")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone = {p.name: p.read_bytes() for p in (tmp_path / "alone").rglob("*/*/*") if p.is_file()}
    whole = {
        p.name: p.read_bytes()
        for folder in (tmp_path / "whole/predictions", report.reading / "rows")
        for p in folder.rglob("*")
        if p.is_file()
    }
    chunk = plan.chunks[number]
    assert {f"{chunk.name}.json", f"{chunk.rows_name}.json"} <= alone.keys() <= whole.keys()
    for file, content in alone.items():
        assert content == whole[file], file
    assert json.loads(alone[f"{chunk.name}.json"])["items"] == len(chunk.items)
