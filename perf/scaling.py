"""How close two workers come to twice the speed of one, and what the measured overheads mean for up to 64.

::

    python -m perf.scaling

The model sleeps for 50 ms a batch of eight and says the same every time; two processes share its chunks. The efficiency
is the model's own time over the workers' time between the first chunk and the last, the second worker's later start
included; what starting the first takes is stated apart. The simulation has one owner that attends to one receipt at a
time, for as long as was measured.
"""

from __future__ import annotations

import heapq
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from medground.benchmarks.base import Item, Measured, TaskDefaults
from medground.benchmarks.requests import Answer, Ask, Transcript
from medground.benchmarks.results import Summary
from medground.running import crew
from medground.running.options import Options
from medground.running.run import execute

SLEEP, BATCH, CHUNK, CHUNKS = 0.05, 8, 64, 64
ROUNDS = 1
SCHEMA = pl.Schema({"item": pl.String, "score": pl.Float64})


class Task(TaskDefaults):
    """Items that take a model 50 ms a batch."""

    path = ("sleeping", "items")
    schema = SCHEMA
    batch_size = cohort = BATCH
    roles: Mapping[str, Any] = {}

    def items(self) -> Sequence[Item]:
        return [Item(f"{i:05d}") for i in range(CHUNK * CHUNKS)]

    def fingerprint(self) -> str:
        return "sleeping"

    def reading(self) -> str:
        return "plain"

    def open(self, players: Mapping[str, Any]) -> Task:
        return self

    def measurer(self) -> Task:
        return self

    def load(self, item: Item) -> str:
        return item.item_id

    def converse(self, item: Item, loaded: str) -> Iterator[Any]:
        yield [Ask("model", "look", {"x": loaded})]
        return {}

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> list[Answer]:
        time.sleep(SLEEP)
        return [Answer({"score": 0.5}) for _ in arguments]

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        return Measured([{"item": item.item_id, "score": transcript.answers("model")[0].values["score"]}])

    def failed(self, item: Item, reason: str) -> Measured:
        return Measured([{"item": item.item_id, "score": None}])


class Benchmark:
    """One task."""

    name = "sleeping"
    reading = ("plain", {})

    def tasks(self) -> Sequence[Task]:
        return [Task()]

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        return Summary(data={"rows": sum(len(frame) for frame in rows.values())})

    def manifest(self) -> Mapping[str, Any]:
        return {}


def rebuilt(run: Mapping[str, Any]) -> Benchmark:
    """Return the benchmark, as a worker makes it."""
    return Benchmark()


def measure(workers: int) -> dict[str, float]:
    """Run with so many processes; return efficiency, start, and seconds a chunk of owner and worker."""
    attending, take = [0.0], crew.Owner._take

    def timed(owner: crew.Owner, event: crew.Event) -> None:
        start = time.perf_counter()
        take(owner, event)
        attending[0] += time.perf_counter() - start

    crew.Owner._take = timed  # type: ignore[method-assign]
    options = Options(chunk=CHUNK, workers=workers, engine="processes", torch_threads=1, threads=1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            config = {"name": "sleeping", "benchmark": {"name": "sleeping"}}
            report = execute(
                Benchmark(), Path(folder) / "run", config=config, options=options, rebuild="perf.scaling:rebuilt"
            )
            whole = time.perf_counter() - start
    finally:
        crew.Owner._take = take  # type: ignore[method-assign]
    clock = report.profile["total"]["clock"]
    model = SLEEP * CHUNK * CHUNKS / BATCH
    return {
        "efficiency": model / (workers * clock),
        "start_s": whole - clock,
        "owner_s": attending[0] / CHUNKS,
        "worker_s": workers * clock / CHUNKS - model / CHUNKS,
    }


def simulate(workers: int, chunks: int, chunk: float, owner: float) -> float:
    """Return the efficiency of so many workers whose owner attends to one receipt at a time.

    Args:
        workers: how many.
        chunks: of the run.
        chunk: seconds that a worker takes for one, its own overhead included.
        owner: seconds that the owner takes for a receipt and the next order.
    """
    waiting = [(0.0, worker) for worker in range(workers)]  # when each would like its next order
    free = [0.0] * workers
    owner_free = last = 0.0
    for _ in range(chunks):
        asks, worker = heapq.heappop(waiting)
        owner_free = max(owner_free, asks) + owner
        began = max(free[worker], owner_free)  # a worker has one order waiting while it computes another
        free[worker] = began + chunk
        last = max(last, free[worker])
        heapq.heappush(waiting, (began, worker))
    return chunks * chunk / (workers * last)


def main() -> None:
    """Measure one and two workers by turns, simulate the rest from the medians."""
    runs = [(workers, measure(workers)) for _ in range(ROUNDS) for workers in (1, 2)]
    medians = {}
    for workers in (1, 2):
        own = [figures for count, figures in runs if count == workers]
        spread = [round(figures["efficiency"], 3) for figures in own]
        medians[workers] = {key: median(figures[key] for figures in own) for key in own[0]}
        rounded = {key: round(value, 4) for key, value in medians[workers].items()}
        print(json.dumps({"workers": workers, **rounded, "efficiencies": spread}), flush=True)
    two = medians[2]
    print(json.dumps({"two workers against one": round(two["efficiency"] / medians[1]["efficiency"], 3)}), flush=True)
    model = SLEEP * CHUNK / BATCH
    for workers in (1, 2, 4, 8, 16, 32, 64):
        alone = simulate(workers, 5_900, model + two["worker_s"], two["owner_s"]) * model / (model + two["worker_s"])
        print(json.dumps({"simulated workers": workers, "efficiency": round(alone, 3)}), flush=True)


if __name__ == "__main__":
    main()
