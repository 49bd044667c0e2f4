"""What two models of XBench are compared on: the same regions and cases, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Matched, Sample
from medground.benchmarks.xbench.grounding import differences, grounding_values
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.specs import CUT, specs
from medground.errors import RunError
from medground.metrics import decide
from medground.metrics.counted import CountedMetric
from medground.metrics.permutation import AUC, AVERAGE_PRECISION
from medground.metrics.spec import MetricSpec

if TYPE_CHECKING:
    from medground.benchmarks.xbench import XBench

BESIDE = frozenset(f"{name}_{what}" for name in ("pointing", "dice", "iou") for what in ("prior", "floor", "ceiling"))
"""What stands beside a model's figures and is the same for all models."""

GROUPS = "class"


def compare(benchmark: XBench) -> Comparable:
    """Return how a run is compared: under one protocol, thresholds searched on the shared cases."""
    findings = benchmark.findings

    def matched(one: Contender, two: Contender) -> Matched:
        shared = shared_rows(one.rows, two.rows)
        both = [
            samples(rows, findings[one.place], benchmark.protocol, benchmark.seed, benchmark.metrics) for rows in shared
        ]
        return zip(*both, strict=True)

    return Comparable(
        settings={
            "protocol": benchmark.protocol.model_dump(mode="json"),
            "reader of replies": benchmark.reader or "the model's own",
        },
        matched=matched,
        notes=(
            f"protocol {benchmark.protocol.in_words()}",
            "Only cases that neither of the two models has seen in training are used.",
        ),
        rules=decide.rules(benchmark.rules),
        seed=benchmark.seed,
        level=benchmark.level,
    )


def shared_rows(first: pl.DataFrame, second: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the (case, finding) pairs that both have and that neither model saw in training, in one order.

    Raises:
        RunError: the two have another truth about a pair: their cases only share their names.
    """
    key = ["case_id", "finding"]
    kept = first.filter(~pl.col("seen")).select(key).join(second.filter(~pl.col("seen")).select(key), on=key)
    kept = kept.sort(key)
    one, two = (kept.join(rows, on=key, how="left", maintain_order="left") for rows in (first, second))
    # The area is unknown where a case could not be read.
    same = one["label"].eq_missing(two["label"]) & (one["area"] == two["area"]).fill_null(value=True)
    if not same.all():
        case, finding = kept.filter(~same).row(0)
        raise RunError(
            "the runs have another truth about the same case",
            where=f"{case}, {finding}",
            expected="runs over one dataset, annotated alike",
            got=f"{(~same).sum()} of {len(same)} shared pairs differ in label or region",
        )
    return one, two


def samples(
    rows: pl.DataFrame,
    findings: Sequence[str],
    protocol: Protocol,
    seed: int = 0,
    metrics: Sequence[CountedMetric] = (),
) -> Iterator[Sample]:
    """Yield what a model did, one sample a metric; thresholds are searched on these rows alone.

    Args:
        rows: of one model on one dataset, see :func:`shared_rows`.
        findings: classes; others are left out.
        protocol: the one under which the rows were counted.
        seed: of the folds of cross-fitted thresholds.
        metrics: further metrics over the counts.
    """
    known = {spec.name: spec for spec in specs(protocol, metrics)}
    kept = rows.filter(pl.col("finding").is_in(list(findings)))
    pairs = Pairs.of(kept, protocol, seed, metrics)
    if len(pairs):
        derived = {*differences(pairs), *BESIDE}
        for metric, values in grounding_values(pairs).items():
            if metric not in derived:
                table = _table(pairs.frame).with_columns(value=pl.Series(values))
                yield Sample(known[metric], table, groups=GROUPS)
    yield from _recognition(kept, protocol, known)


def _recognition(rows: pl.DataFrame, protocol: Protocol, known: Mapping[str, MetricSpec]) -> Iterator[Sample]:
    read = rows.filter((pl.col("state") != "failed") & pl.col("label").is_not_null())
    truth = read["label"].cast(pl.Float64)
    score = read["score"].cast(pl.Float64)
    probability = 1 / (1 + (-score).exp()) if protocol.link == "sigmoid" else read["probability"].cast(pl.Float64)
    table = _table(read).with_columns(truth=truth)
    for metric, ranking in (("auc", AUC), ("average_precision", AVERAGE_PRECISION)):
        yield Sample(known[metric], table.with_columns(answer=score), ranking, GROUPS)
    called = (probability >= CUT).cast(pl.Float64)
    yield Sample(known[f"f1@{CUT}"], table.with_columns(answer=called), groups=GROUPS)
    right = (called == truth).cast(pl.Float64)
    yield Sample(known[f"accuracy@{CUT}"], table.drop("truth").with_columns(value=right), groups=GROUPS)
    squared = (probability - truth) ** 2
    yield Sample(known["brier"], table.drop("truth").with_columns(value=squared), groups=GROUPS)


def _table(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(item="case_id", patient="patient_id", group="finding")
