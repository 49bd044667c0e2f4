"""What two models of Medical-Checklist are compared on: the same caption tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Sample, side_by_side
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.specs import SPECS
from medground.benchmarks.medical_checklist.summarise import Floats, Scored, pair_credit

if TYPE_CHECKING:
    from medground.benchmarks.medical_checklist import MedicalChecklist

_SPECS = {spec.name: spec for spec in SPECS}


def compare(benchmark: MedicalChecklist) -> Comparable:
    """Return how a run is compared: one way of asking and reading; clusters are papers, images or scene pairs."""

    def samples(side: Contender) -> Iterator[Sample]:
        return samples_of(benchmark.scored(side.model, side.place, side.rows))

    asked = {"order": benchmark.order, "template": benchmark.template, "ask": benchmark.ask}
    return Comparable(
        settings=dict(benchmark.reading[1]) | asked,
        matched=side_by_side(samples),
        notes=(f"answers read by the {benchmark.measurer.reader} reader, unread ones {benchmark.policy}",),
        rules=benchmark.rules,
        seed=benchmark.seed,
    )


def samples_of(scored: Scored) -> Iterator[Sample]:
    """Yield what one model did; failed items and, as the policy says, unread ones are undefined."""
    table = _table(scored)
    types = [TYPES[item.tui].label for item in scored.items]
    credit = _column(scored.credit)
    yield Sample(_SPECS["accuracy"], table.with_columns(value=credit))
    yield Sample(_SPECS["accuracy"], table.with_columns(value=credit, group=pl.Series(types)), groups="type")
    if names := sorted(scored.pairs):
        values = _column(np.array([pair_credit(scored.pairs[name]) for name in names]))
        of_pairs = pl.DataFrame({"item": names, "patient": names, "group": [""] * len(names), "value": values})
        yield Sample(_SPECS["pair_accuracy"], of_pairs)
    if not np.isnan(scored.p).all():
        yield Sample(_SPECS["brier"], table.with_columns(value=_column((1 - scored.p) ** 2)))
    first, second = scored.both_sides
    if first is not None and second is not None:
        both = np.where(np.isnan(first) | np.isnan(second), np.nan, (first == 1) & (second == 1))
        yield Sample(_SPECS["consistent"], table.with_columns(value=_column(both)))


def _table(scored: Scored) -> pl.DataFrame:
    items = scored.items
    columns = {
        "item": [i.item_id for i in items],
        "patient": [i.cluster or None for i in items],
        "group": [""] * len(items),
        "about": [f"{i.positive}\n{i.negative}" for i in items],
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _column(values: Floats) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
