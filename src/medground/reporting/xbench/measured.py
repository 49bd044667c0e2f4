"""Every pair of one model on one dataset, as the case viewer sees it: the summary's measures before any mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.xbench.grounding import grounding_values
from medground.benchmarks.xbench.pairs import Floats, Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.metrics.values import none_if_nan
from medground.reporting.runs import Run
from medground.reporting.xbench.selection import Key, Outcome, ScoredPair
from medground.running.reading import read_rows


@dataclass(frozen=True)
class MeasuredTask:
    """Pairs of cases that the model has not seen in training.

    Attributes:
        rows: (case id, finding) -> its row, without the counts.
        places: (case id, finding) -> its place in the values.
        values: metric -> ``(P,)``, NaN where undefined.
        tau: ``(P,)`` searched threshold, NaN where there is none.
        protocol: the choices under which they were measured.
    """

    rows: Mapping[Key, Mapping[str, Any]]
    places: Mapping[Key, int]
    values: Mapping[str, Floats]
    tau: Floats
    protocol: Protocol

    @classmethod
    def read(cls, run: Run, model: str, dataset: str, protocol: Protocol) -> MeasuredTask:
        """Read the rows of a task and measure its pairs, as the summary did."""
        rows = read_rows(run.folder, (model, dataset), run.reading).filter(~pl.col("seen"))
        pairs = Pairs.of(rows, protocol, run.data["intervals"]["seed"])
        values = grounding_values(pairs) if len(pairs) else {}
        tau = np.where(pairs.searched >= 0, protocol.thresholds[pairs.searched], np.nan)
        lean = list(pairs.frame.drop("selected", "inside").iter_rows(named=True))
        keys = [(row["case_id"], row["finding"]) for row in lean]
        places = {key: i for i, key in enumerate(keys)}
        return cls(dict(zip(keys, lean, strict=True)), places, values, tau, protocol)

    @cached_property
    def scored(self) -> Sequence[ScoredPair]:
        """Every pair, reduced to what the choice of cases depends on."""
        return [ScoredPair(key, self.value(key, "dice@best"), self.outcome(key)) for key in self.rows]

    def value(self, key: Key, metric: str) -> float | None:
        """Return one measure of one pair; None where undefined."""
        return none_if_nan(float(self.values[metric][self.places[key]]))

    def threshold(self, key: Key) -> float | None:
        """Return the searched threshold under which a pair was scored."""
        return none_if_nan(float(self.tau[self.places[key]]))

    def cuts(self, key: Key) -> dict[str, float]:
        """Return the thresholds that part a pair's map: the first fixed one, and the searched one if there is one."""
        searched = self.threshold(key)
        return {"fixed": self.protocol.fixed[0]} | ({} if searched is None else {"searched": searched})

    def peak(self, key: Key) -> tuple[float, float] | None:
        """Return where the first maximum lies, as shares of the picture's sides; None where a map has no peak."""
        row = self.rows[key]
        if row["peak_x"] is None or row["state"] == "flat":
            return None
        grid = self.protocol.grid
        width, height = json.loads(row["geometry"])["source"] if grid == "original" else grid
        return (row["peak_x"] + 0.5) / width, (row["peak_y"] + 0.5) / height

    def outcome(self, key: Key) -> Outcome:
        """Return what became of a pair; a peak that ties in and out of the region hits where most of it lies inside."""
        state = self.rows[key]["state"]
        if state in {"failed", "flat"}:
            return "failed" if state == "failed" else "flat"
        if state != "ok":
            return "undefined"
        return "hit" if (self.value(key, "pointing") or 0) >= 0.5 else "miss"
