"""From the rows of every task to one summary: cells, curves, thresholds and counts. Pure, the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.results import Cell, Cells, ModelFacts, Summary, frame, with_floors
from medground.benchmarks.xbench.boxes import box_cells
from medground.benchmarks.xbench.claims import ClaimResult, grounding_claims, recognition_claim
from medground.benchmarks.xbench.glance import glance, legend
from medground.benchmarks.xbench.grounding import How, grounding_cells
from medground.benchmarks.xbench.items import ITEMS, SCHEMA as PAIR_SCHEMA, pair_items
from medground.benchmarks.xbench.operating import operating_measures, operating_records
from medground.benchmarks.xbench.pairs import Pairs, cluster_ids, column_means
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.ranks import ranks
from medground.benchmarks.xbench.recognition import LabelAnswers, answers, recognition_cells
from medground.benchmarks.xbench.regimes import known_regimes, regimes
from medground.benchmarks.xbench.relation import relation, relation_by_class, residuals
from medground.benchmarks.xbench.specs import specs
from medground.benchmarks.xbench.subgroups import subgroup_results
from medground.benchmarks.xbench.table1 import table1
from medground.benchmarks.xbench.tables import make_tables, totals
from medground.benchmarks.xbench.verdicts import verdicts
from medground.metrics import decide
from medground.metrics.calibration import reliability
from medground.metrics.counted import CountedMetric
from medground.metrics.values import none_if_nan


@dataclass(frozen=True)
class SummaryOptions:
    """What a summary depends on beside the rows."""

    protocol: Protocol
    seed: int = 0
    replicates: int = 1000
    level: float = 0.95
    size_edges: tuple[float, ...] = (0.01, 0.05, 0.15)
    rules: Mapping[str, decide.Rule] = field(default_factory=decide.rules)
    metrics: tuple[CountedMetric, ...] = ()
    operating: float | None = None

    @property
    def how(self) -> How:
        """How intervals and tests are made."""
        return How(self.level, self.seed, self.replicates)


@dataclass
class _Parts:
    cells: list[Cell] = field(default_factory=list)
    curves: list[dict[str, Any]] = field(default_factory=list)
    thresholds: list[dict[str, Any]] = field(default_factory=list)
    reliability: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[tuple[str, str], dict[str, ClaimResult]] = field(default_factory=dict)
    items: list[pl.DataFrame] = field(default_factory=list)
    operating: list[dict[str, Any]] = field(default_factory=list)
    subgroups: list[dict[str, Any]] = field(default_factory=list)


def summarise(
    rows: Mapping[tuple[str, ...], pl.DataFrame],
    cards: Mapping[str, Any],
    findings: Mapping[str, tuple[str, ...]],
    options: SummaryOptions,
) -> Summary:
    """Summarise a run.

    Args:
        rows: (model, dataset) -> rows of the task.
        cards: model -> its facts.
        findings: dataset -> its ordered classes.
        options: protocol and intervals.
    """
    parts = _Parts()
    seen_by_any = _seen_by_any(rows)
    for (model, dataset), table in rows.items():
        parts.tasks.append(_task(model, dataset, table, cards.get(model), findings[dataset]))
        for subset, kept in _subsets(table, seen_by_any[dataset]):
            _measure(parts, kept, findings[dataset], options, model=model, dataset=dataset, subset=subset)
    protocol = options.protocol
    metrics = specs(protocol, options.metrics)
    cells = with_floors(parts.cells, metrics)
    table_of_cells = frame(cells)
    data: dict[str, Any] = {
        "protocol": protocol.model_dump(mode="json"),
        "optimistic": protocol.optimistic,
        "intervals": {
            "level": options.level,
            "replicates": options.replicates,
            "seed": options.seed,
            "how": "from the influence of each patient, widened towards the largest possible variance; searched "
            "thresholds stay as found, cross-fitted ones stand beside them; ranks of models by bootstrap",
        },
        "rules": {family: rule.in_words() for family, rule in options.rules.items()},
        "tasks": parts.tasks,
        "thresholds": parts.thresholds,
        "curves": parts.curves,
        "reliability": parts.reliability,
        "operating": parts.operating,
        "subgroups": parts.subgroups,
        "correlation": relation(table_of_cells, parts.tasks),
        "correlation_by_class": relation_by_class(table_of_cells, parts.tasks),
        "ranks": _ranks(rows, findings, options),
    }
    by_name = {spec.name: spec for spec in metrics}
    tables = make_tables(table_of_cells, data, by_name)
    tables["glance"] = glance(table_of_cells, data, protocol.averaging)
    tables["glance_by_class"] = glance(table_of_cells, data, "class")
    if len(findings) > 1:
        tables["table1"] = table1(table_of_cells, data, by_name)
    tables["totals"] = totals(parts.tasks)
    if len(known_regimes(parts.tasks)) > 1:
        tables["regimes"] = regimes(table_of_cells, parts.tasks, protocol.averaging, by_name)
    tables["recognition_against_pointing"] = residuals(data["correlation"], data["correlation_by_class"])
    if data["ranks"]:
        tables["ranks"] = pl.DataFrame([{k: v for k, v in r.items() if k != "share"} for r in data["ranks"]])
    measured = {spec.name for spec in metrics} & {cell.metric for cell in cells}
    return Summary(
        cells=cells,
        verdicts=verdicts(Cells(cells), parts.tasks, protocol, parts.claims),
        tables=tables,
        data=data,
        items={ITEMS: pl.concat([PAIR_SCHEMA.to_frame(), *parts.items])},
        benchmark="xbench",
        reading=protocol.name,
        models=_models(parts.tasks),
        metrics=[spec for spec in metrics if spec.name in measured],
        level=options.level,
        described=protocol.in_words(),
        legend=legend(data),
        shown=tuple(name for name in ("glance", "table1") if name in tables),
    )


def _models(tasks: Sequence[Mapping[str, Any]]) -> list[ModelFacts]:
    labels = dict.fromkeys(task["model"] for task in tasks)
    own = {label: [task for task in tasks if task["model"] == label] for label in labels}
    return [
        ModelFacts(
            label=label,
            title=of[0]["title"],
            kind=of[0]["kind"],
            seen={task["dataset"]: task["seen"] or "patients" for task in of if task["seen"] or task["cases_seen"]},
            unverified=of[0]["unverified"],
        )
        for label, of in own.items()
    ]


def _measure(parts: _Parts, rows: pl.DataFrame, findings: tuple[str, ...], options: SummaryOptions, **who: str) -> None:
    pairs = Pairs.of(rows, options.protocol, options.seed, options.metrics)
    given = answers(rows, findings, options.protocol.link)
    whose = {"benchmark": "xbench", "reading": options.protocol.name, **who}
    parts.cells += grounding_cells(pairs, findings, options.size_edges, options.how, **whose)
    parts.cells += recognition_cells(given, options.how, operating_measures(options.operating), **whose)
    parts.cells += box_cells(rows, findings, options.level, **whose)
    parts.thresholds += _thresholds(pairs, who)
    if who["subset"] == "main":
        specifications = {spec.name: spec for spec in specs(options.protocol)}
        claims = {"recognises": recognition_claim(given, options.rules, options.how, specifications["auc"])}
        claims |= grounding_claims(pairs, findings, options.rules, options.how, specifications)
        parts.claims[who["model"], who["dataset"]] = claims
        parts.curves += _curves(pairs, findings, who)
        parts.reliability += _reliability(given, who)
        parts.items.append(pair_items(pairs, who))
        here = {"model": who["model"], "dataset": who["dataset"]}
        parts.operating += operating_records(given, options.operating, options.seed, here)
        cells, records = subgroup_results(rows, findings, options.protocol, options.rules, options.level, **whose)
        parts.cells += cells
        parts.subgroups += records


def _seen_by_any(rows: Mapping[tuple[str, ...], pl.DataFrame]) -> dict[str, set[str]]:
    """Return dataset -> cases that at least one model of the run has seen in training."""
    seen: dict[str, set[str]] = {}
    for (_, dataset), table in rows.items():
        seen.setdefault(dataset, set()).update(table.filter(pl.col("seen"))["case_id"])
    return seen


def _subsets(rows: pl.DataFrame, seen_by_any: set[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """A model is never scored on what it was trained on; a second subset makes models comparable again."""
    yield "main", rows.filter(~pl.col("seen"))
    if seen_by_any:
        yield "shared", rows.filter(~pl.col("case_id").is_in(sorted(seen_by_any)))


def _task(model: str, dataset: str, rows: pl.DataFrame, card: Any, findings: tuple[str, ...]) -> dict[str, Any]:
    localised = rows.filter(pl.col("localised"))
    states = dict(localised.group_by("state").len().sort("state").iter_rows())
    reasons = rows.filter(pl.col("reason").is_not_null()).group_by("reason").len().sort("len", "reason")
    unlocalised = rows.filter(pl.col("label") & ~pl.col("localised"))
    return {
        "model": model,
        "dataset": dataset,
        "title": getattr(card, "title", model),
        "kind": getattr(card, "kind", None),
        "pretrained_on": getattr(card, "pretrained_on", None),
        "seen": (getattr(card, "seen", None) or {}).get(dataset),
        "unverified": getattr(card, "unverified", None),
        "findings": list(findings),
        "cases": rows["case_id"].n_unique(),
        "cases_seen": rows.filter(pl.col("seen"))["case_id"].n_unique(),
        "cases_failed": rows.filter(pl.col("state") == "failed")["case_id"].n_unique(),
        "patients": rows["patient_id"].drop_nulls().n_unique(),
        "patients_scored": len(set(cluster_ids(rows.filter(~pl.col("seen") & (pl.col("state") != "failed"))))),
        "pairs": len(localised),
        "states": states,
        "present_but_not_localised": len(unlocalised),
        "reasons": dict(reasons.iter_rows()),
    }


def _ranks(
    rows: Mapping[tuple[str, ...], pl.DataFrame], findings: Mapping[str, tuple[str, ...]], options: SummaryOptions
) -> list[dict[str, Any]]:
    """Return the ranks of the models on every dataset."""
    records = []
    for dataset, classes in findings.items():
        tables = {model: table for (model, of), table in rows.items() if of == dataset}
        records += [{"dataset": dataset} | record for record in ranks(tables, classes, options.protocol, options.how)]
    return records


def _thresholds(pairs: Pairs, who: dict[str, str]) -> list[dict[str, Any]]:
    """One entry a searched threshold, except those of single images."""
    protocol = pairs.protocol
    if protocol.scope == "image" or not len(pairs):
        return []
    chosen = pl.DataFrame({"finding": pairs.finding, "index": pairs.searched}).filter(pl.col("index") >= 0)
    if protocol.scope == "dataset":
        chosen = chosen.with_columns(pl.lit("").alias("finding"))
    counted = chosen.group_by("finding", "index").len().sort("finding", "index")
    return [
        who | {"finding": finding, "tau": float(protocol.thresholds[index]), "pairs": n}
        for finding, index, n in counted.iter_rows()
    ]


def _curves(pairs: Pairs, findings: tuple[str, ...], who: dict[str, str]) -> list[dict[str, Any]]:
    """Mean Dice and IoU at every threshold of the grid, by class and over classes."""
    steps = len(pairs.protocol.tau)
    by_class = {name: np.full((len(findings), steps), np.nan) for name in ("dice", "iou")}
    for k, finding in enumerate(findings):
        mask = pairs.finding == finding
        for name, curve in by_class.items():
            curve[k] = column_means(pairs.curves[name][mask][:, :steps])
    entries = [(f, {name: curve[k] for name, curve in by_class.items()}) for k, f in enumerate(findings)]
    entries.append(("", {name: column_means(curve) for name, curve in by_class.items()}))
    return [
        who | {"finding": finding} | {name: [none_if_nan(v) for v in curve] for name, curve in curves.items()}
        for finding, curves in entries
    ]


def _reliability(given: LabelAnswers, who: dict[str, str]) -> list[dict[str, Any]]:
    """Bins of probability against the share of positives, over all annotated pairs."""
    known = ~np.isnan(given.called)
    if not known.any():
        return []
    bins = reliability(given.called[known], given.probabilities[known])
    shares = {"probability": bins.probability, "frequency": bins.frequency}
    return [who | {"count": bins.count.tolist()} | {k: [none_if_nan(x) for x in v] for k, v in shares.items()}]
