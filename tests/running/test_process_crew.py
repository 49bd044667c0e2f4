"""Workers as processes: the bytes of the local engine, whoever is killed."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from medground.errors import DataError, LimitError, RunError
from medground.running import process_crew
from medground.running.options import Options
from medground.running.run import execute
from medground.running.shard_session import execute_shard
from medground.running.shards import Shard

REBUILD = "fake:rebuilt"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers import the fake benchmark from its folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def options(**given):
    common = {"chunk": 4, "workers": 2, "on_error": "skip", "engine": "processes", "torch_threads": 1, "threads": 1}
    return Options(**common | given)


def crewed(fake, folder, given=None, **how):
    return execute(
        fake.two_tasks(),
        folder,
        config={"name": "r", "benchmark": {"name": "fake"}, "fake": given or {}},
        options=options(**how),
        rebuild=REBUILD,
    )


@pytest.fixture(scope="module")
def whole(fake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    execute(fake.two_tasks(), folder, options=Options(chunk=4, workers=0, on_error="skip", torch_threads=1))
    return results(folder)


def results(folder):
    names = ("predictions", "readings", "failures.jsonl")
    files = [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] in names]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.name not in {"made_of", "sums.json"}}


def test_two_workers_write_the_bytes_of_the_local_engine_and_one_dies_on_the_way(fake, tmp_path, whole):
    report = crewed(fake, tmp_path / "run", {"dies_once": str(tmp_path / "mark")}, devices=("cpu", "cpu"))
    assert (tmp_path / "mark").exists()
    assert results(tmp_path / "run") == whole
    assert report.profile["total"]["items"] == 33
    again = crewed(fake, tmp_path / "run", {"dies_once": str(tmp_path / "mark")})
    assert again.reused == again.chunks == 9


def test_workers_killed_at_random_lose_and_double_nothing(fake, tmp_path, whole, monkeypatch):
    chance, crews, left = random.Random(3), [], [4]

    class Watched(process_crew.ProcessCrew):
        def __init__(self, *given):
            super().__init__(*given)
            crews.append(self)

        def submit(self, worker, order):
            super().submit(worker, order)
            if left[0] and chance.random() < 0.5:
                left[0] -= 1
                victim = self._processes[chance.choice(sorted(self._processes))]
                threading.Timer(chance.uniform(0, 0.05), victim.kill).start()

    monkeypatch.setattr("medground.running.engines.ProcessCrew", Watched)
    crewed(fake, tmp_path, {"load_time": 0.002, "infer_time": 0.01})
    assert left == [0]
    assert results(tmp_path) == whole


def test_a_shard_may_have_workers_too(fake, tmp_path, whole):
    config = {"name": "r", "benchmark": {"name": "fake"}, "fake": {}}
    for index in (1, 2):
        execute_shard(fake.two_tasks(), tmp_path, Shard(index, 2), config=config, options=options(), rebuild=REBUILD)
    execute(fake.two_tasks(), tmp_path, config=config, options=options(), merging=True)
    assert results(tmp_path) == whole


def test_errors_come_back_as_they_were(fake, tmp_path):
    with pytest.raises(RunError, match="cannot be read") as caught:
        crewed(fake, tmp_path, on_error="stop", workers=1)
    assert "'s04' of a/data" in str(caught.value)
    with pytest.raises(DataError, match="a table is missing"):
        crewed(fake, tmp_path, {"unable": True}, workers=1)
    with pytest.raises(RunError, match="a worker plans other chunks"):
        crewed(fake, tmp_path, {"version": "2"}, workers=1)


def test_a_model_that_hangs_ends_with_the_deadline(fake, tmp_path):
    with pytest.raises(LimitError, match="deadline"):
        crewed(fake, tmp_path, {"hangs": True}, workers=1, deadline=2)


def test_each_worker_sees_its_own_device(monkeypatch):
    import os

    class Pipe:
        def __init__(self):
            self.sent = []

        def send(self, message):
            self.sent.append(message)

        def recv(self):
            raise EOFError

    seen = []
    monkeypatch.setattr(process_crew, "begin", lambda _: None)
    monkeypatch.setattr(process_crew, "Worker", lambda job: seen.append(os.environ.get("CUDA_VISIBLE_DEVICES")))
    for device in ("cpu", "cuda:1", "3"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all")
        process_crew._serve(Pipe(), None, device)
    assert seen == ["all", "1", "3"]


def test_devices_are_dealt_out_in_turn():
    assert options(workers=3, devices=("0", "1")).devices_of_workers == ("0", "1", "0")
    assert Options(engine="processes", devices=("0", "1")).n_workers == 2
    assert options(workers=2).devices_of_workers == ("cpu", "cpu")
