"""``medground compare``: every pair of models, inside a run or across runs, on the items that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from medground.benchmarks.comparing import Comparable, Pair, compare_pairs
from medground.errors import ConfigError, RunError, did_you_mean
from medground.metrics import decide
from medground.metrics.spec import MetricSpec
from medground.running.reading import read_rows, task_paths
from medground.session import read_session

COLUMNS = ("dataset", "metric", "group", "difference", "interval", "p", "decision", "n", "n_undefined", "patients")
OVERALL = "over all"
"""What stands in the column of groups for the mean over them."""


@dataclass(frozen=True)
class Comparison:
    """Paired differences.

    Attributes:
        data: JSON-like: runs, settings, rules, notes and records.
        table: the records for people; differences in percentage points where the metric is a share.
        notes: what must be known to read them.
    """

    data: Mapping[str, Any]
    table: pl.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Entrant:
    """A model of a run: its run, its label there, and how it is called here."""

    folder: Path
    label: str
    name: str
    benchmark: Any


def compare_runs(*folders: Path, models: Sequence[str] = ()) -> Comparison:
    """Compare the models of finished runs, each with each.

    Args:
        folders: one run or more of one benchmark.
        models: compare only these, by label (or ``run:label`` where two runs share a label).

    Raises:
        RunError: a run cannot be compared, or two were measured under different settings, share nothing, or differ in
            their truth.
        ConfigError: no such model.
    """
    entrants = _chosen(list(_entrants(list(dict.fromkeys(folder.resolve() for folder in folders)))), models)
    bench = entrants[0].benchmark
    couples = list(combinations(entrants, 2))
    if not couples:
        raise RunError("there are no two models to compare", where=", ".join(map(str, folders)))
    pairs = {couple: list(_pairs(*couple)) for couple in couples}
    _share_something({c: p for c, p in pairs.items() if c[0].folder != c[1].folder} or pairs, folders)
    made = [pair for of_couple in pairs.values() for pair in of_couple]
    rules, seed, level = decide.rules(getattr(bench, "rules", None)), bench.seed, bench.level
    records = compare_pairs(made, rules, seed=seed, level=level)
    specs = {sample.spec.name: sample.spec for pair in made for sample, _ in pair.samples}
    families = {spec.family for spec in specs.values()}
    notes = (
        *(f"{entrant.name}: {entrant.folder}" for entrant in entrants),
        *bench.comparison_notes(),
        "Only items that both models have, and that neither has seen in training, are used.",
        "p by turning or swapping whole patients; a decision needs the p of its family, which is named in the JSON.",
        *(f"{family}: {rule.in_words()}" for family, rule in rules.items() if family in families),
    )
    data = {
        "runs": list(dict.fromkeys(str(entrant.folder) for entrant in entrants)),
        "settings": dict(bench.settings()),
        "rules": {family: rule.in_words() for family, rule in rules.items()},
        "notes": list(notes),
        "metrics": [spec.to_json() for spec in specs.values()],
        "records": records,
    }
    return Comparison(data, table_of(records, specs), notes)


def _share_something(pairs: Mapping[Any, Sequence[Pair]], folders: Sequence[Path]) -> None:
    """Raise where no model has an item in common with another; with one of another run, where there are several."""
    for pair in (pair for of_couple in pairs.values() for pair in of_couple):
        for one, two in pair.samples:
            if len(one.table.join(two.table, on=["item", "group"], how="semi")):
                return
    raise RunError(
        "the runs share no case and finding",
        where=", ".join(map(str, folders)),
        expected="two models on one dataset",
    )


def table_of(records: Sequence[Mapping[str, Any]], specs: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """Return records for people; ``specs`` by name."""
    return pl.DataFrame([_written(r, specs[r["metric"]]) for r in records], infer_schema_length=None)


def _entrants(folders: Sequence[Path]) -> Iterator[_Entrant]:
    sessions = [(folder, read_session(folder)) for folder in folders]
    first: Any = sessions[0][1].benchmark
    for folder, session in sessions:
        bench: Any = session.benchmark
        if not isinstance(bench, Comparable):
            raise RunError(f"runs of {session.run.benchmark.name} cannot be compared", where=folder)
        if type(bench) is not type(first) or bench.settings() != first.settings():
            raise RunError(
                "the runs were measured under different protocols",
                where=folder,
                expected=_differing(first, bench),
                got=_differing(bench, first),
                fix="run one of them, or score it, under the other's",
            )
    labels = [model.label for _, session in sessions for model in session.models]
    for folder, session in sessions:
        for model in session.models:
            name = model.label if labels.count(model.label) == 1 else f"{session.run.name}:{model.label}"
            if labels.count(model.label) > 1 and len({s.run.name for _, s in sessions}) < len(sessions):
                name = f"{folder.name}:{model.label}"
            yield _Entrant(folder, model.label, name, session.benchmark)


def _differing(bench: Any, other: Any) -> str:
    """Return the settings that differ, as words."""
    if type(bench) is not type(other):
        return str(getattr(bench, "name", type(bench).__name__))
    mine, theirs = bench.settings(), other.settings()
    return ", ".join(f"{k}: {v}" for k, v in mine.items() if theirs.get(k) != v)


def _chosen(entrants: list[_Entrant], models: Sequence[str]) -> list[_Entrant]:
    known = [*(e.name for e in entrants), *(e.label for e in entrants)]
    for model in models:
        if model not in known:
            raise ConfigError(
                "no such model in the runs",
                where="--models",
                expected=", ".join(dict.fromkeys(e.name for e in entrants)),
                got=model,
                fix=did_you_mean(model, known),
            )
    kept = [e for e in entrants if not models or e.name in models or e.label in models]
    if not kept:
        raise RunError("the runs hold no model")
    # In the order in which they were asked for: the first of a pair is the one that others are held against.
    return sorted(kept, key=lambda e: models.index(e.name if e.name in models else e.label)) if models else kept


def _pairs(one: _Entrant, two: _Entrant) -> Iterator[Pair]:
    """Yield one pair a place (a dataset, say) that both were measured in."""
    ours, theirs = ([path for path in task_paths(e.folder) if path[0] == e.label] for e in (one, two))
    for path in ours:
        other = (two.label, *path[1:])
        if other in theirs:
            rows = read_rows(one.folder, path), read_rows(two.folder, other)
            samples = one.benchmark.matched(*rows, path[1:], two.benchmark)
            yield Pair(one.name, two.name, "/".join(path[1:]), list(samples))


def _written(record: Mapping[str, Any], spec: MetricSpec) -> dict[str, Any]:
    value, low, high = (_signed(spec, record[name]) for name in ("difference", "low", "high"))
    shown = dict(record) | {
        "metric": record["title"],
        "group": record["group"] or OVERALL,
        "difference": value or f"undefined: {record['reason']}",
        "interval": f"[{low}, {high}]" if low and high else "",
        "p": "" if record["p_family"] is None else f"{record['p_family']:.4f}",
        "decision": _decision(record),
    }
    return {"first": record["first"], "second": record["second"]} | {column: shown[column] for column in COLUMNS}


def _decision(record: Mapping[str, Any]) -> str:
    word: str = record["decision"]
    if record["direction"] and word in {"equivalent", "cannot be told"}:
        side = "better" if record["direction"] > 0 else "worse"
        return f"{word}; {side}, {'by less than' if word == 'equivalent' else 'not shown to be so by'} the margin"
    return word


def _signed(spec: MetricSpec, value: float | None) -> str:
    if value is None:
        return ""
    digits = max(spec.digits, 2)
    return f"{value * spec.scale:+.{digits}f}"
