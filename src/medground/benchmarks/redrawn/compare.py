"""What two models are compared on: where each explanation of the same item lies, beside what its own answer hung on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Sample, side_by_side
from medground.benchmarks.redrawn.summarise import SPECS, reliability

if TYPE_CHECKING:
    from medground.benchmarks.redrawn import RedrawnBenchmark

_MASS = SPECS[0]


def compare(benchmark: RedrawnBenchmark) -> Comparable:
    """Return how runs are compared: the mass of one explanation under two models, by patient."""
    return Comparable(
        {"scenes": benchmark.manifest()["scenes"]},
        side_by_side(samples),
        ("the mass of an explanation on what its own model's answer hung on",),
        rules=benchmark.rules,
        seed=benchmark.run_seed,
        level=benchmark.level,
    )


def samples(side: Contender) -> Iterator[Sample]:
    """Yield a sample an explanation of one model."""
    for (method,), part in side.rows.filter(pl.col("method") != "").group_by(["method"], maintain_order=True):
        patient = part["case"].cast(pl.String)
        table = part.select("item", patient=patient, group=pl.lit(""), value=pl.col("mass"))
        yield Sample(_MASS, table, method=str(method), reliability=reliability(part))
