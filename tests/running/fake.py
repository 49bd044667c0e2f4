"""A small benchmark in pure numpy, and a command line to run, kill and resume it in a process of its own.

What the model returns depends on the make-up of its batch, in the last digits: a run that forms other batches after
a resume, or with other workers, is found out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from medground.benchmarks.base import Item, Measured, TaskDefaults
from medground.benchmarks.requests import Answer, Ask
from medground.benchmarks.results import Summary
from medground.errors import DataError

SCHEMA = pl.Schema(
    {
        "item_id": pl.String,
        "score": pl.Float64,
        "counts": pl.List(pl.Int32),
        "state": pl.String,
    }
)


def pixels(item_id: str, size: int = 6) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(item_id.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).random((size, size))


@dataclass
class Probe:
    """What happened, for tests to look at; and hooks to make things happen."""

    opened: list = field(default_factory=list)
    loaded: list = field(default_factory=list)
    batches: list = field(default_factory=list)
    measured: list = field(default_factory=list)
    on_load: object = None
    on_infer: object = None
    on_measure: object = None


class FakeStages:
    def __init__(self, task):
        self.task, self.probe = task, task.probe

    def load(self, item):
        self.probe.loaded.append(item.item_id)
        if item.item_id in self.task.bad:
            raise DataError("the picture is cut short", where=f"/data/{item.item_id}.png", got="12 bytes")
        if self.probe.on_load:
            self.probe.on_load(item)
        time.sleep(self.task.load_time)
        return pixels(item.item_id)

    def converse(self, item, loaded):
        yield [Ask("model", "look", {"x": loaded}, {"item": item.item_id})]
        return {"size": len(loaded)}

    def answer(self, role, capability, arguments):
        batch = [asked["x"] for asked in arguments]
        self.probe.batches.append(len(batch))
        if self.probe.on_infer:
            self.probe.on_infer(len(self.probe.batches))
        for item_id in self.task.bad_map:
            if any((x == pixels(item_id)).all() for x in batch):
                raise DataError("the map is cut short", where=f"/data/{item_id}.npy")
        time.sleep(self.task.infer_time)
        together = sum(x.sum() for x in batch)
        return [
            Answer({"score": x.mean() + 1e-9 * together + 1e-12 * i}, {"map": np.float32(x)})
            for i, x in enumerate(batch)
        ]


class FakeMeasurer:
    def __init__(self, task):
        self.task, self.probe = task, task.probe

    def measure(self, item, transcript):
        self.probe.measured.append(item.item_id)
        if item.item_id in self.task.bad_truth:
            raise DataError("the mask is cut short", where=f"/data/{item.item_id}.mask.png")
        if self.probe.on_measure:
            self.probe.on_measure(item)
        (answer,) = transcript.answers("model")
        counts = [int((answer.arrays["map"] > t).sum()) for t in self.task.thresholds]
        row = {"item_id": item.item_id, "score": answer.values["score"], "counts": counts, "state": "ok"}
        return Measured([row])

    def failed(self, item, reason):
        return Measured([{"item_id": item.item_id, "score": None, "counts": None, "state": reason}])


class FakeTask(TaskDefaults):
    def __init__(
        self,
        path=("model", "data"),
        n=20,
        batch_size=3,
        *,
        bad=(),
        bad_truth=(),
        bad_map=(),
        probe=None,
        version="1",
        load_time=0.0,
        infer_time=0.0,
        thresholds=(0.25, 0.5, 0.75),
        files=None,
    ):
        self.path, self.batch_size, self.version = path, batch_size, version
        self.n, self.bad, self.bad_truth = n, set(bad), set(bad_truth)
        self.bad_map = set(bad_map)
        self.probe = probe or Probe()
        self.load_time, self.infer_time = load_time, infer_time
        self.schema = SCHEMA
        self.thresholds = thresholds
        self.files = files or {}
        self.cohort = batch_size
        self.roles = {}

    def items(self):
        ids = [f"s{i:02d}" for i in range(self.n)]
        return [Item(item_id, files=self.files.get(item_id, ())) for item_id in ids]

    def reading(self):
        return f"thresholds {self.thresholds}"

    def measurer(self):
        return FakeMeasurer(self)

    def fingerprint(self):
        return f"{'/'.join(self.path)} {self.version}"

    def open(self, players):
        self.probe.opened.append(self.path)
        return FakeStages(self)


class FakeBenchmark:
    name = "fake"

    def __init__(self, *tasks, reading="plain"):
        self._tasks = tasks
        self.reading = (reading, {})

    def tasks(self):
        return self._tasks

    def summarise(self, rows):
        data, lines = {}, []
        for path, frame in rows.items():
            used = frame.filter(pl.col("state") == "ok")
            mean = used["score"].mean() if len(used) else None
            data["/".join(path)] = {"mean": mean, "n": len(used), "failed": len(frame) - len(used)}
            lines.append({"task": "/".join(path), "mean": mean, "n": len(used)})
        return Summary(data=data, tables={"means": pl.DataFrame(lines, schema_overrides={"mean": pl.Float64})})

    def manifest(self):
        return {"seed": 0, "api_key": "sk-very-secret"}


def two_tasks(**kwargs):
    """A benchmark of two tasks with failures, small enough to be run again and again."""
    return FakeBenchmark(
        FakeTask(("a", "data"), 23, 3, bad=("s04",), **kwargs),
        FakeTask(("b", "data"), 10, 4, bad_truth=("s09",), **kwargs),
    )


def rebuilt(run):
    """The benchmark of a run file, as a worker in another process makes it."""
    options = dict(run["fake"])
    probe, once = Probe(), options.pop("dies_once", None)
    if options.pop("hangs", False):
        probe.on_infer = lambda _: time.sleep(600)
    if always := options.pop("dies_at", None):
        probe.on_load = lambda item: _die() if item.item_id == always else None
    if once:
        probe.on_infer = lambda _: _die_once(Path(once))
    if options.pop("unable", False):
        raise DataError("a table is missing", where="/data/labels.csv")
    return two_tasks(probe=probe, **options)


def _die_once(mark):
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    _die()


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def _main():
    from medground.running.options import Options
    from medground.running.run import execute

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--die-after", type=float, help="seconds after the first call of the model")
    parser.add_argument("--die-at-write", type=int, help="instead of the n-th wait for the disk or taking of a name")
    parser.add_argument("--file-limit", type=int, help="no file may grow beyond this many bytes")
    parser.add_argument("--wait", action="store_true", help="say 'ready' at the first call of the model, then hang")
    args = parser.parse_args()

    probe = Probe()
    if args.die_after is not None:
        probe.on_infer = lambda n: n == 1 and threading.Timer(args.die_after, _die).start()
    if args.wait:
        probe.on_infer = lambda n: (sys.stdout.write("ready\n"), sys.stdout.flush(), time.sleep(600))
    if args.die_at_write is not None:
        writes = iter(range(1, 10**6))

        def dying(write):
            return lambda *given: _die() if next(writes) == args.die_at_write else write(*given)

        os.fsync, Path.replace = dying(os.fsync), dying(Path.replace)
    if args.file_limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (args.file_limit, args.file_limit))
    benchmark = two_tasks(probe=probe, load_time=0.002, infer_time=0.004)
    execute(benchmark, args.folder, options=Options(chunk=4, workers=args.workers, on_error="skip"))
    sys.stdout.write(str(len(probe.batches)))


if __name__ == "__main__":
    _main()
