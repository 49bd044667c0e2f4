"""Every pair of one model on one dataset, as the case viewer sees it: read from the items of the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from medground.benchmarks.xbench.items import ITEMS
from medground.benchmarks.xbench.protocol import Protocol
from medground.reporting.runs import Run
from medground.reporting.xbench.selection import Key, Outcome, ScoredPair
from medground.running.reading import read_items


@dataclass(frozen=True)
class MeasuredTask:
    """Pairs of cases that the model has not seen in training.

    Attributes:
        rows: (case id, finding) -> what it came to; see :data:`medground.benchmarks.xbench.items.SCHEMA`.
        protocol: the choices under which they were measured.
    """

    rows: Mapping[Key, Mapping[str, Any]]
    protocol: Protocol

    @classmethod
    def read(cls, run: Run, model: str, dataset: str, protocol: Protocol) -> MeasuredTask:
        """Read the pairs of a task.

        Raises:
            RunError: the summary was written without them.
        """
        items = read_items(run.folder, ITEMS, run.reading)
        own = items.filter(pl.col("model") == model, pl.col("dataset") == dataset).collect()
        return cls({(row["case_id"], row["finding"]): row for row in own.iter_rows(named=True)}, protocol)

    @cached_property
    def scored(self) -> Sequence[ScoredPair]:
        """Every pair, reduced to what the choice of cases depends on."""
        return [ScoredPair(key, row["dice"], self.outcome(key)) for key, row in self.rows.items()]

    def cuts(self, key: Key) -> dict[str, float]:
        """Return the thresholds that part a pair's map: the first fixed one, and the searched one if there is one."""
        searched = self.rows[key]["tau"]
        return {"fixed": self.protocol.fixed[0]} | ({} if searched is None else {"searched": searched})

    def peak(self, key: Key) -> tuple[float, float] | None:
        """Return where the first maximum lies, as shares of the picture's sides; None where a map has no peak."""
        row = self.rows[key]
        return None if row["peak_x"] is None else (row["peak_x"], row["peak_y"])

    def outcome(self, key: Key) -> Outcome:
        """Return what became of a pair."""
        outcome: Outcome = self.rows[key]["outcome"]
        return outcome
