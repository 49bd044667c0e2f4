"""Metrics that a run file adds to those of XBench."""

from __future__ import annotations

from collections.abc import Sequence

from medground.benchmarks.base import Entry
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.specs import specs
from medground.errors import ConfigError
from medground.metrics.counted import CountedMetric


def further_metrics(entries: Sequence[Entry], protocol: Protocol) -> tuple[CountedMetric, ...]:
    """Build the metrics that play the role ``metrics``.

    Args:
        entries: of components of the kind ``metric``.
        protocol: whose own metrics keep their names.

    Raises:
        ConfigError: what is named is no metric over counts, or two metrics have one name.
    """
    metrics: list[CountedMetric] = []
    taken = {spec.name for spec in specs(protocol)}
    for entry in entries:
        metric, where = entry.build(), f"roles.metrics: {entry.label}"
        if not isinstance(metric, CountedMetric):
            expected = "name, spec and values(counts), as medground.metrics.counted has it"
            raise ConfigError("this is no metric over counts", where=where, expected=expected)
        if metric.spec.name in taken:
            raise ConfigError("two metrics have one name", where=where, got=metric.spec.name)
        taken.add(metric.spec.name)
        metrics.append(metric)
    return tuple(metrics)
