from __future__ import annotations

import errno
import json
import os
import sys

import polars as pl
import pytest
import yaml

from medground.benchmarks.base import Item, Measured, TaskDefaults
from medground.benchmarks.requests import Answer, Ask
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.options import Options, available_cores
from medground.running.progress import Progress
from medground.running.run import execute, torch_threads
from medground.storage import FolderStorage


class Listener(Progress):
    def __init__(self):
        self.messages, self.started, self.stopped = [], None, False

    def start(self, total, done):
        self.started = (total, done)

    def say(self, message):
        self.messages.append(message)

    def stop(self):
        self.stopped = True


SKIP = Options(chunk=4, workers=2, on_error="skip")


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


class TestKillAndResume:
    """T12: a model that dies on its seventh sample."""

    @pytest.fixture
    def case(self, golden):
        return json.loads((golden / "metrics/starred/T12_kill_and_resume/expected.json").read_text())

    def benchmark(self, case, calls, dies_on=None):
        samples = case["input"]["samples"]

        class Stages:
            def load(self, item):
                return item.payload

            def converse(self, item, loaded):
                yield [Ask("model", "look", {"x": loaded})]
                return {}

            def answer(self, role, capability, arguments):
                calls.append(len(arguments))
                if len(calls) == dies_on:
                    raise ConnectionError("the model died")
                return [Answer({"x": asked["x"]}) for asked in arguments]

        class Measurer:
            def measure(self, item, transcript):
                return Measured([{"id": item.item_id, "score": transcript.answers()[0].values["x"]}])

            def failed(self, item, reason):
                raise AssertionError(reason)

        class Task(TaskDefaults):
            path, schema, batch_size = ("m", "d"), pl.Schema({"id": pl.String, "score": pl.Float64}), 1
            cohort, roles = 1, {}

            def reading(self):
                return "as it is"

            def measurer(self):
                return Measurer()

            def items(self):
                return [Item(s["id"], s["score"]) for s in samples]

            def fingerprint(self):
                return "t12"

            def open(self, players):
                return Stages()

        class Benchmark:
            name = "t12"
            reading = ("plain", {})

            def tasks(self):
                return [Task()]

            def summarise(self, rows):
                scores = rows["m", "d"]["score"]
                return Summary(data={"mean": round(scores.mean(), 10), "n": len(scores)})

            def manifest(self):
                return {}

        return Benchmark()

    @pytest.mark.parametrize("workers", [0, 1, 2])
    def test_as_published(self, case, tmp_path, contents, workers):
        expected, calls = case["expected"], []
        options = Options(chunk=1, workers=workers)
        with pytest.raises(ConnectionError):
            execute(
                self.benchmark(case, calls, case["input"]["model_dies_on_sample_number"]), tmp_path, options=options
            )
        assert len(calls) == expected["model_calls_first_run"]
        assert len(list(tmp_path.rglob("rows/**/*.parquet"))) == expected["samples_done_before_death"]
        assert not list(tmp_path.rglob("summary.json"))

        calls.clear()
        report = execute(self.benchmark(case, calls), tmp_path, options=Options(chunk=1, workers=2 - workers))
        assert len(calls) == expected["model_calls_after_resume"]
        assert report.reused == expected["samples_done_before_death"]
        assert report.summary.data == {"mean": expected["mean"], "n": expected["n"]}

        calls.clear()
        report = execute(self.benchmark(case, calls), tmp_path, options=options)
        assert len(calls) == expected["resume_with_nothing_left"]["model_calls"]
        assert report.summary.data["mean"] == expected["resume_with_nothing_left"]["mean"]

        execute(self.benchmark(case, calls), tmp_path / "whole", options=options)
        whole = contents(tmp_path / "whole")
        assert whole == {k: v for k, v in contents(tmp_path).items() if not k.startswith("whole")}


def test_a_run_leaves_what_the_design_lists(fake, tmp_path):
    progress = Listener()
    config = {"name": "r", "benchmark": {"name": "fake"}, "models": [{"name": "m", "api_key": "sk-secret"}]}
    report = execute(fake.two_tasks(), tmp_path, config=config, options=SKIP, progress=progress)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {
        *(".lock", "run.yaml", "manifest.json", "profile.json", "failures.jsonl"),
        *("predictions", "readings"),
    }
    assert (report.items, report.failures, report.chunks, report.reused) == (33, 2, 9, 0)
    assert progress.started == (33, 0)
    assert progress.stopped
    assert [json.loads(line) for line in (tmp_path / "failures.jsonl").read_text().splitlines()] == [
        {
            "task": ["a", "data"],
            "item": "s04",
            "reason": "the picture is cut short",
            "detail": "the picture is cut short | where: /data/s04.png | got: 12 bytes",
        },
        {
            "task": ["b", "data"],
            "item": "s09",
            "reason": "the mask is cut short",
            "detail": "the mask is cut short | where: /data/s09.mask.png",
        },
    ]
    assert json.loads((report.reading / "summary.json").read_text())["data"]["a/data"]["failed"] == 1
    assert (report.reading / "tables" / "means.csv").read_text().startswith("task,mean,n\na/data,0.")
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile == report.profile
    assert profile["total"]["items"] == 33
    assert [task["task"] for task in profile["tasks"]] == [["a", "data"], ["b", "data"]]
    assert "sk-" not in "".join(p.read_text() for p in tmp_path.iterdir() if p.is_file())
    assert yaml.safe_load((tmp_path / "run.yaml").read_text())["models"][0]["api_key"] == "(redacted)"


def test_the_manifest_separates_what_stays_from_what_was_done(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=0, on_error="skip"))
    manifest = manifest_of(tmp_path)
    assert manifest["benchmark"] == {"name": "fake", "seed": 0, "api_key": "(redacted)"}
    assert manifest["settings"]["chunk"] == 4
    assert [(p["path"], p["items"], len(p["chunks"])) for p in manifest["plan"]] == [
        (["a", "data"], 23, 6),
        (["b", "data"], 10, 3),
    ]
    assert set(manifest["environment"]["packages"]) >= {"numpy", "polars", "torch"}
    first, second = manifest["sessions"]
    assert (first["outcome"], first["workers"], first["chunks_reused"], first["chunks_computed"]) == (
        "finished",
        2,
        0,
        9,
    )
    assert (second["workers"], second["chunks_reused"], second["chunks_computed"]) == (0, 9, 0)
    assert first["started"] <= first["ended"] <= second["started"]


def test_a_second_look_computes_nothing_and_changes_no_byte(fake, tmp_path, contents):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    before = contents(tmp_path)
    profile = (tmp_path / "profile.json").read_bytes()
    probe, progress = fake.Probe(), Listener()
    report = execute(fake.two_tasks(probe=probe), tmp_path, options=SKIP, progress=progress)
    assert not probe.opened
    assert report.reused == report.chunks == 9
    assert "9 of 9 chunks are finished and are not computed again" in progress.messages
    assert contents(tmp_path) == before
    assert (tmp_path / "profile.json").read_bytes() == profile


def test_a_run_that_stops_tells_what_is_safe_and_has_no_summary(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    progress = Listener()
    broken = fake.two_tasks(version="2")
    with pytest.raises(RunError, match="'s04' of a/data"):
        execute(broken, tmp_path, options=Options(chunk=4, workers=1), progress=progress)
    assert progress.messages[-1] == (
        f"stopped: 1 of 9 chunks are safe in {tmp_path}; the same command goes on from there"
    )
    assert progress.stopped
    assert not list(tmp_path.rglob("summary.json"))
    assert manifest_of(tmp_path)["sessions"][-1]["outcome"] == "stopped by RunError"
    assert (tmp_path / "failures.jsonl").read_bytes() == b""


def test_failures_so_far_are_listed_when_a_run_stops(fake, tmp_path):
    def boom(n):
        if n == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(fake.two_tasks(probe=fake.Probe(on_infer=boom)), tmp_path, options=SKIP)
    assert json.loads((tmp_path / "failures.jsonl").read_text())["item"] == "s04"


def test_ctrl_c_tells_how_to_go_on(fake, tmp_path):
    def interrupt(n):
        if n == 4:
            raise KeyboardInterrupt

    progress = Listener()
    with pytest.raises(KeyboardInterrupt):
        execute(fake.two_tasks(probe=fake.Probe(on_infer=interrupt)), tmp_path, options=SKIP, progress=progress)
    assert "the same command goes on" in progress.messages[-1]
    assert manifest_of(tmp_path)["sessions"][-1]["outcome"] == "stopped by KeyboardInterrupt"
    assert execute(fake.two_tasks(), tmp_path, options=SKIP).reused == 1


def test_a_repaired_file_is_read_when_asked_or_when_failures_stop(fake, tmp_path):
    def whole(probe=None):
        return fake.FakeBenchmark(fake.FakeTask(n=10, batch_size=2, probe=probe))

    broken = fake.FakeBenchmark(fake.FakeTask(n=10, batch_size=2, bad=("s04",)))
    for options in (Options(chunk=4), Options(chunk=4, on_error="skip", retry_failed=True)):
        execute(broken, tmp_path, options=SKIP, fresh=True)
        probe = fake.Probe()
        assert execute(whole(probe), tmp_path, options=SKIP).failures == 1
        assert not probe.opened
        assert execute(whole(probe), tmp_path, options=options).failures == 0
        assert probe.batches == [2, 2]


def test_rows_of_other_settings_are_not_used_and_come_back_with_them(fake, tmp_path, contents):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    before = contents(tmp_path)
    probe = fake.Probe()
    assert execute(fake.two_tasks(version="2", probe=probe), tmp_path, options=SKIP).reused == 0
    assert len(probe.opened) == 2
    assert execute(fake.two_tasks(), tmp_path, options=SKIP).reused == 9
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("suffix", ["parquet", "npz", "json"])
def test_a_damaged_chunk_is_computed_again(fake, tmp_path, contents, suffix):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    before = contents(tmp_path)
    folder = tmp_path / ("predictions" if suffix == "npz" else "readings")
    victim = sorted(folder.rglob(f"*.{suffix}"))[2]
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    progress, probe = Listener(), fake.Probe()
    report = execute(fake.two_tasks(probe=probe), tmp_path, options=SKIP, progress=progress)
    assert report.reused == 8
    assert len(probe.measured) == 4
    assert any("is damaged and will be computed again" in message for message in progress.messages)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": 1, "plan": []}'])
def test_a_damaged_manifest_is_written_anew(fake, tmp_path, text):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    (tmp_path / "manifest.json").write_text(text)
    progress = Listener()
    assert execute(fake.two_tasks(), tmp_path, options=SKIP, progress=progress).reused == 9
    assert "written anew" in progress.messages[0]
    assert len(manifest_of(tmp_path)["sessions"]) == 1


def test_another_environment_is_told_and_recorded(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    manifest = manifest_of(tmp_path)
    manifest["environment"]["python"] = "2.7.18"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    progress = Listener()
    execute(fake.two_tasks(), tmp_path, options=SKIP, progress=progress)
    assert "the environment has changed since the first session: python: 2.7.18 -> 3." in progress.messages[0]
    manifest = manifest_of(tmp_path)
    assert manifest["environment"]["python"] == "2.7.18"
    assert manifest["sessions"][-1]["environment_changed"]["python"][0] == "2.7.18"


@pytest.mark.parametrize("sizes", [[], [0], [0, 0]])
def test_nothing_to_run_is_an_error(fake, tmp_path, sizes):
    tasks = [fake.FakeTask((f"m{i}",), n) for i, n in enumerate(sizes)]
    with pytest.raises(RunError, match="nothing to run"):
        execute(fake.FakeBenchmark(*tasks), tmp_path)


def test_one_empty_task_among_others_is_summarised(fake, tmp_path):
    benchmark = fake.FakeBenchmark(fake.FakeTask(("a",), 0), fake.FakeTask(("b",), 3))
    report = execute(benchmark, tmp_path)
    assert report.summary.data["a"] == {"mean": None, "n": 0, "failed": 0}


def test_the_folder_of_another_benchmark_is_refused(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    other = fake.two_tasks()
    other.name = "other"
    with pytest.raises(RunError, match="belongs to another run"):
        execute(other, tmp_path)
    assert execute(other, tmp_path, options=SKIP, fresh=True).reused == 0


def test_a_disk_that_fills_up_keeps_every_chunk_that_fitted(fake, tmp_path, monkeypatch, contents):
    fsync, left = os.fsync, [6]

    def nearly_full(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    progress = Listener()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", nearly_full)
        with pytest.raises(RunError, match="No space left on device") as caught:
            execute(fake.two_tasks(), tmp_path / "full", options=SKIP, progress=progress)
    assert "finished chunks are safe" in caught.value.fix
    assert not list(tmp_path.rglob("*.tmp"))
    safe = len(list((tmp_path / "full").rglob("rows/**/*.json")))
    assert 1 <= safe <= 3
    assert f"stopped: {safe} of 9 chunks are safe" in progress.messages[-1]
    assert execute(fake.two_tasks(), tmp_path / "full", options=SKIP).reused == safe
    execute(fake.two_tasks(), tmp_path / "whole", options=SKIP)
    assert contents(tmp_path / "full") == contents(tmp_path / "whole")


def test_torch_threads_are_chosen_once_and_kept(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    assert manifest_of(tmp_path)["settings"]["torch_threads"] == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert execute(fake.two_tasks(), tmp_path, options=SKIP).reused == 9
    other = Options(chunk=4, on_error="skip", torch_threads=2)
    assert execute(fake.two_tasks(), tmp_path, options=other).reused == 0
    assert manifest_of(tmp_path)["settings"]["torch_threads"] == 2


@pytest.mark.parametrize("value", ["", "0", "2,1"])
def test_torch_threads_follow_the_cores_without_a_number(monkeypatch, tmp_path, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert torch_threads(Options(), None, FolderStorage(tmp_path)) == available_cores()


def test_devices_are_those_that_torch_sees(fake, tmp_path, monkeypatch):
    class Cuda:
        is_available = staticmethod(lambda: True)
        device_count = staticmethod(lambda: 2)
        get_device_name = staticmethod(lambda index: f"card {index}")

    class Torch:
        cuda = Cuda
        get_num_threads = staticmethod(lambda: 1)
        set_num_threads = staticmethod(lambda count: None)

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    monkeypatch.setitem(sys.modules, "torch", Torch)
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    assert [s["devices"] for s in manifest_of(tmp_path)["sessions"]] == [["cpu"], ["card 0", "card 1"]]


def test_a_package_that_is_not_installed_has_no_version(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("medground.running.manifest._PACKAGES", ("numpy", "no-such-package"))
    execute(fake.two_tasks(), tmp_path, options=SKIP)
    assert manifest_of(tmp_path)["environment"]["packages"]["no-such-package"] is None
