"""One model asked several times: how far its members agree with each other, and how far apart their figures lie.

A member is a model with a label of its own, so every benchmark asks, keeps and measures it like any other. The summary
is made of the first member alone; what the others add stands in the tables ``repeats`` (a line a model, place and
metric) and ``repeats_each`` (a line a member).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.base import Benchmark, Entry, Task
from medground.benchmarks.comparable import Comparable, Contender, Rows, Sample
from medground.benchmarks.results import Summary
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.differences import Difference, compare_macros, compare_means
from medground.metrics.inference import Estimate, estimate_macro, estimate_mean
from medground.metrics.influence import Influence, of_mean


class Repeating:
    """A benchmark whose run holds repeated models; everything but tasks and summary is the benchmark's own.

    Args:
        benchmark: bound to the first members.
        compare: its door: how its runs are compared.
        members: entries of the others; ``repeat_of`` names whose.
        labels: label of a repeated model -> what its first member is called.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        compare: Callable[[Any], Comparable],
        members: Sequence[Entry],
        labels: Mapping[str, str],
    ) -> None:
        self._benchmark, self._compare, self._members, self._labels = benchmark, compare, members, labels

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._benchmark, name)

    def tasks(self) -> Sequence[Task]:
        """Return the benchmark's tasks, and those of a repeated model once more for every further member."""
        tasks: list[Any] = list(self._benchmark.tasks())
        further = [
            replace(task, model=member)
            for member in self._members
            for task in tasks
            if task.roles["model"].label == member.repeat_of
        ]
        return [*tasks, *further]

    def summarise(self, rows: Rows) -> Summary:
        """Return the summary of the first members, with what the others say of them."""
        whose = {member.label: member for member in self._members}
        main = {path: table for path, table in rows.items() if path[0] not in whose}
        summary = self._benchmark.summarise(main)
        return with_repeats(summary, self._compare(self._benchmark), rows, self._members, self._labels)


def with_repeats(
    summary: Summary, comparable: Comparable, rows: Rows, members: Sequence[Entry], labels: Mapping[str, str]
) -> Summary:
    """Return a summary with the tables of repeated models, and a sentence a model and place among its notes.

    Args:
        summary: of the first members.
        comparable: says what a model did, item by item.
        rows: of all members.
        members: entries of the further members.
        labels: label of a repeated model -> what its first member is called.
    """
    lines, each = [], []
    for model, first in labels.items():
        for kind in ("sample", "prompt"):
            names = {e.label: e.repeat for e in members if e.repeat_of == model and e.repeat.startswith(kind)}
            if names:
                first_name = first if first.startswith(kind) else f"{kind} of the table"
                own = _of_model(comparable, rows, model, kind, {model: first_name, **names})
                lines += own[0]
                each += own[1]
    lines = [line | {"words": _words(line)} for line in lines]
    tables = {"repeats": lines, "repeats_each": each}
    added = {name: pl.DataFrame(part, infer_schema_length=None) for name, part in tables.items() if part}
    return replace(
        summary,
        tables={**summary.tables, **added},
        notes=(*summary.notes, *filter(None, (line["words"] for line in lines))),
    )


def _of_model(
    comparable: Comparable, rows: Rows, model: str, kind: str, names: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    sides: dict[tuple[str, str], dict[str, Contender]] = {}
    for label in names:
        own = {path: table for path, table in rows.items() if path[0] == label and len(table)}
        for side in comparable.sides(label, own):
            sides.setdefault((side.place, side.part), {})[label] = side
    lines, each = [], []
    for (place, part), by_label in sides.items():
        if len(by_label) < len(names):
            continue
        for samples in _samples(comparable, list(by_label.values())):
            spec, asked = samples[0].spec, _Asked.of(samples, comparable)
            where: dict[str, Any] = {
                "model": model, "kind": kind, "dataset": place, "method": samples[0].method or part,
                "metric": spec.name, "title": spec.title,
            }  # fmt: skip
            estimates = [asked.estimate(row) for row in asked.values]
            lines.append(where | {"members": len(names)} | asked.spread(estimates))
            each += [
                where | {"member": name, "value": e.value, "low": e.low, "high": e.high, "n": e.n}
                for name, e in zip(names.values(), estimates, strict=True)
            ]
    return lines, each


def _samples(comparable: Comparable, sides: Sequence[Contender]) -> list[list[Sample]]:
    """Return the samples that all members have, one list a metric that is a mean over items, or over groups.

    Items are those of the first member; what a benchmark matches pair by pair is matched with the first.
    """
    gathered: dict[tuple[str, str, str], list[Sample]] = {}
    for number, side in enumerate(sides[1:], 1):
        for first, second in comparable.matched(sides[0], side):
            if first.spec.statistic == "mean":
                own = gathered.setdefault(first.key, [first])
                if len(own) == number:
                    own.append(second)
    whole = {(metric, method) for metric, groups, method in gathered if not groups}
    return [
        own
        for (metric, groups, method), own in gathered.items()
        if len(own) == len(sides) and not (groups and (metric, method) in whole)
    ]


@dataclass(frozen=True)
class _Asked:
    """What the members did on the items of one metric.

    Attributes:
        values: ``(members, items)``, NaN where undefined.
        by: clusters of the items.
        groups: masks of the items of each group; empty: all items are one.
        comparable: level and seed.
    """

    values: NDArray[np.float64]
    by: Clusters
    groups: Sequence[NDArray[np.bool_]]
    comparable: Comparable

    @classmethod
    def of(cls, samples: Sequence[Sample], comparable: Comparable) -> _Asked:
        first = samples[0].table.select("item", "group", "patient")
        columns = []
        for sample in samples:
            own = sample.table.select("item", "group", pl.col("value").cast(pl.Float64))
            joined = first.join(own, on=["item", "group"], how="left", maintain_order="left")
            columns.append(joined["value"].fill_null(np.nan).to_numpy())
        names = first["group"].to_numpy().astype(str)
        groups = [names == name for name in dict.fromkeys(names)] if samples[0].groups else []
        return cls(np.stack(columns), clusters(first["patient"].to_list(), first["item"].to_list()), groups, comparable)

    def estimate(self, row: NDArray[np.float64]) -> Estimate:
        """Return a member's mean, over groups where there are some."""
        if not self.groups:
            return estimate_mean(row, self.by, self.comparable.level)
        return estimate_macro(self._parts(row), level=self.comparable.level)

    def _parts(self, row: NDArray[np.float64]) -> list[Influence]:
        return [of_mean(np.where(mask, row, np.nan), self.by) for mask in self.groups]

    def _gap(self, one: NDArray[np.float64], two: NDArray[np.float64]) -> Difference:
        level, seed = self.comparable.level, self.comparable.seed
        if not self.groups:
            return compare_means(one, two, self.by, level, seed)
        pairs = list(zip(self._parts(one), self._parts(two), strict=True))
        return compare_macros(pairs, level=level, seed=seed)

    def _agreement(self) -> Estimate:
        """Return the share of pairs of members with one value, of hits and misses; both without one agree too."""
        known = self.values[~np.isnan(self.values)]
        if not np.isin(known, (0.0, 1.0)).all():
            return Estimate(None, reason="not a matter of hit or miss")
        pairs = combinations(range(len(self.values)), 2)
        v = self.values
        same = [(v[a] == v[b]) | (np.isnan(v[a]) & np.isnan(v[b])) for a, b in pairs]
        return estimate_mean(np.mean(same, 0), self.by, self.comparable.level)

    def spread(self, estimates: Sequence[Estimate]) -> dict[str, Any]:
        """Return agreement and range over members.

        The range's interval is that of the paired difference between the highest and the lowest; these two were chosen
        by their figures, so it overstates what separates two members named beforehand.
        """
        agreed = self._agreement()
        told: dict[str, Any] = {
            "agreement": agreed.value, "agreement_low": agreed.low, "agreement_high": agreed.high,
            "n": self.values.shape[1], "n_undefined": int(np.isnan(self.values).any(0).sum()),
        }  # fmt: skip
        known = {e.value: row for row, e in zip(self.values, estimates, strict=True) if e.value is not None}
        if not known:
            return told
        gap = self._gap(known[max(known)], known[min(known)])
        return told | {
            "mean": float(np.mean([e.value for e in estimates if e.value is not None])),
            "lowest": min(known), "highest": max(known),
            "range": max(known) - min(known), "range_low": gap.low, "range_high": gap.high,
        }  # fmt: skip


def _words(line: Mapping[str, Any]) -> str | None:
    """Return agreement and range as a sentence; None where there is no figure."""
    if line.get("range") is None:
        return None
    who = f"{line['model']} on {line['dataset']}, {line['members']} {line['kind']}s"
    lies = f"{line['title']} lies between {100 * line['lowest']:.1f} and {100 * line['highest']:.1f}"
    if line["agreement"] is None:
        return f"{who}: {lies}"
    return f"{who}: agree with each other on {100 * line['agreement']:.1f} % of {line['n']} items; {lies}"
