"""Workers of a Ray cluster: the bytes of the local engine, whichever of them are killed, the owner too."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from medground.config import parse_run_file
from medground.errors import RunError
from medground.running import ray_crew
from medground.session import assemble, run_session

pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster on this machine, which this process has joined."""
    ray = ray_crew._connected("local", 2)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def run_of(small: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    return {**small, "engine": {"chunk": 1, "torch_threads": 1, "on_error": "skip", **engine}}


def run(small: Mapping[str, Any], folder: Path, engine: Mapping[str, Any]) -> Any:
    return run_session(assemble(parse_run_file(run_of(small, engine))), folder)


def results(folder: Path) -> dict[str, bytes]:
    names = ("predictions", "readings", "failures.jsonl")
    files = [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] in names]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


RAY = {"name": "ray", "workers": 2, "threads": 1}


@pytest.fixture(scope="module")
def small(small_runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """A grounding run of two models and a run of scenes, both of seconds."""
    grounding = small_runs["xbench"]
    models = [{"name": "baseline_all_foreground"}, {"name": "baseline_class_prior"}]
    return {"xbench": grounding | {"models": models}, "gridvqa_x": small_runs["gridvqa_x"]}


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x"])
def test_two_workers_write_the_bytes_of_the_local_engine(
    name: str, small: dict[str, Any], tmp_path: Path, cluster: str
) -> None:
    run(small[name], tmp_path / "local", {"workers": 0})
    report = run(small[name], tmp_path / "ray", RAY)
    assert results(tmp_path / "ray") == results(tmp_path / "local")
    assert report.reused == 0


def workers_of(cluster: str) -> list[int]:
    """Process ids of the workers that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::_Remote"):
            found.append(int(folder.name))
    return sorted(found)


def test_workers_killed_at_random_lose_and_double_nothing(
    small: dict[str, Any], tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, kills = random.Random(5), [3]
    take = ray_crew.RayCrew.submit

    def submit(crew: Any, worker: int, order: Any) -> None:
        take(crew, worker, order)
        if kills[0]:
            kills[0] -= 1
            victim = chance.choice(workers_of(cluster))
            threading.Timer(chance.uniform(0, 0.1), os.kill, (victim, signal.SIGKILL)).start()

    monkeypatch.setattr(ray_crew.RayCrew, "submit", submit)
    run(small["xbench"], tmp_path / "local", {"workers": 0})
    run(small["xbench"], tmp_path / "ray", RAY)
    assert kills == [0]
    assert results(tmp_path / "ray") == results(tmp_path / "local")


def test_an_owner_that_is_killed_is_replaced_by_the_same_command(
    small: dict[str, Any], tmp_path: Path, cluster: str
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(run_of(small["xbench"], RAY | {"address": cluster})))
    command = [sys.executable, "-m", "medground", "run", str(file), "--out", str(tmp_path / "runs")]
    folder = tmp_path / "runs/xbench"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as owner:
        while owner.poll() is None and not list(folder.glob("readings/*/rows/*/*/*.json")):
            time.sleep(0.01)
        owner.kill()
        _, said = owner.communicate()
    assert owner.returncode == -signal.SIGKILL, said
    report = run(small["xbench"], folder, RAY)
    assert report.reused > 0
    run(small["xbench"], tmp_path / "local", {"workers": 0})
    assert results(folder) == results(tmp_path / "local")


def test_a_cluster_that_is_not_there_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: nobody is there
        with pytest.raises(RunError, match="the Ray cluster cannot be reached"):
            ray_crew.refuse_unreachable(f"127.0.0.1:{free.getsockname()[1]}")
    ray_crew.refuse_unreachable("auto")


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from medground.running.ray_crew import _connected\n"
        "from medground.errors import ConfigError\n"
        "try: _connected('auto', 1)\nexcept ConfigError as error: print(error.fix)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pip install 'medground[ray]'"
