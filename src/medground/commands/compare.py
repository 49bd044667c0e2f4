"""``medground compare``: every pair of models, inside a run or across runs, on the items that both have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from medground import registry
from medground.benchmarks.comparable import Comparable, Contender, Pair, pair_of
from medground.benchmarks.comparing import ALL, MACRO, compare_pairs
from medground.commands.readings import Choice, session_of
from medground.errors import ConfigError, RunError, did_you_mean
from medground.metrics.spec import MetricSpec
from medground.running.reading import read_rows, task_paths

COLUMNS = (
    "dataset",
    "method",
    "metric",
    "group",
    "difference",
    "interval",
    "p",
    "decision",
    "n",
    "n_undefined",
    "patients",
)
WHOLE: Mapping[str, str] = {ALL: "over all", MACRO: "mean of groups"}
"""What stands in the column of groups where a difference is over all of them."""


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

    @property
    def overall(self) -> pl.DataFrame:
        """The table without single groups."""
        return self.table.filter(pl.col("group").is_in(list(WHOLE.values())))


@dataclass(frozen=True)
class _Entrant:
    """A model of a run: its run, its label there, and how it is called here."""

    folder: Path
    label: str
    name: str
    comparable: Comparable
    reading: str

    def sides(self) -> Iterator[Contender]:
        paths = [path for path in task_paths(self.folder) if path[0] == self.label]
        tables = {path: read_rows(self.folder, path, self.reading) for path in paths}
        yield from self.comparable.sides(self.name, {path: rows for path, rows in tables.items() if len(rows)})


def compare_runs(*folders: Path, models: Sequence[str] = (), choice: Choice | None = None) -> Comparison:
    """Compare the models of finished runs, each with each.

    Args:
        folders: one run or more of one benchmark.
        models: compare only these, by label (or ``run:label`` where two runs share a label).
        choice: the reading that is compared, where it is not that of the run files.

    Raises:
        RunError: a run cannot be compared, or two were measured under different settings, share nothing, or differ in
            their truth.
        ConfigError: no such model.
    """
    entrants = _chosen(list(_entrants(list(dict.fromkeys(folder.resolve() for folder in folders)), choice)), models)
    pairs = list(_pairs(entrants, folders))
    how = entrants[0].comparable
    records = compare_pairs(pairs, how.rules, seed=how.seed, level=how.level)
    specs = {sample.spec.name: sample.spec for pair in pairs for sample, _ in pair.samples}
    families = {spec.family for spec in specs.values()}
    notes = (
        *(f"{entrant.name}: {entrant.folder}" for entrant in entrants),
        *dict.fromkeys(note for entrant in entrants for note in entrant.comparable.notes),
        "Only items that both models have are used.",
        "p by turning or swapping whole patients; a decision needs the p of its family, which is named in the JSON.",
        *(f"{family}: {rule.in_words()}" for family, rule in how.rules.items() if family in families),
    )
    data = {
        "runs": list(dict.fromkeys(str(entrant.folder) for entrant in entrants)),
        "settings": dict(how.settings),
        "rules": {family: rule.in_words() for family, rule in how.rules.items()},
        "notes": list(notes),
        "metrics": [spec.to_json() for spec in specs.values()],
        "records": records,
    }
    return Comparison(data, table_of(records, specs), notes)


def _pairs(entrants: Sequence[_Entrant], folders: Sequence[Path]) -> Iterator[Pair]:
    """Yield every two sides that are measured in one place and have a metric in common.

    Raises:
        RunError: there are no two, or they have no item in common; with another run's, where there are several.
    """
    sides = [(entrant, side) for entrant in entrants for side in entrant.sides()]
    pairs: dict[tuple[int, int], Pair] = {}
    for (i, (one, first)), (k, (_, second)) in combinations(enumerate(sides), 2):
        if first.place == second.place:
            pair = pair_of(one.comparable, first, second)
            if pair.samples:
                pairs[i, k] = pair
    if not pairs and len(sides) < 2:
        raise RunError("there are no two models to compare", where=", ".join(map(str, folders)))
    across = [pair for (i, k), pair in pairs.items() if sides[i][0].folder != sides[k][0].folder]
    several = len({entrant.folder for entrant in entrants}) > 1
    _share_something(across if several else pairs.values(), folders)
    yield from pairs.values()


def _share_something(pairs: Iterable[Pair], folders: Sequence[Path]) -> None:
    for pair in pairs:
        for one, two in pair.samples:
            if len(one.table.join(two.table, on=["item", "group"], how="semi")):
                return
    raise RunError(
        "the runs share no item",
        where=", ".join(map(str, folders)),
        expected="two models that were asked about the same items of one dataset",
    )


def table_of(records: Sequence[Mapping[str, Any]], specs: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """Return records for people; ``specs`` by name."""
    return pl.DataFrame([_written(r, specs[r["metric"]]) for r in records], infer_schema_length=None)


def _entrants(folders: Sequence[Path], choice: Choice | None) -> Iterator[_Entrant]:
    read = [session_of(folder, choice) for folder in folders]
    sessions = [(folder, session) for folder, (session, _) in zip(folders, read, strict=True)]
    compared = [registry.door(session.benchmark, "compare")(session.benchmark) for session, _ in read]
    first = read[0][0].benchmark
    for (folder, session), comparable in zip(sessions, compared, strict=True):
        if session.benchmark.name != first.name:
            raise RunError(
                "the runs are of different benchmarks", where=folder, expected=first.name, got=session.benchmark.name
            )
        _refuse_other_settings(compared[0], comparable, folder)
    labels = [model.label for _, session in sessions for model in session.models]
    named_alike = len({session.run.name for _, session in sessions}) < len(sessions)
    for (folder, session), (_, reading), comparable in zip(sessions, read, compared, strict=True):
        run = folder.name if named_alike else session.run.name
        for model in session.models:
            name = model.label if labels.count(model.label) == 1 else f"{run}:{model.label}"
            yield _Entrant(folder, model.label, name, comparable, reading)


def _refuse_other_settings(first: Comparable, other: Comparable, folder: Path) -> None:
    """Refuse runs under another protocol, reader, judge or split: their figures do not belong side by side."""
    shared = [name for name in first.settings if name in other.settings]
    differing = [name for name in shared if first.settings[name] != other.settings[name]]
    if differing:
        words = [", ".join(f"{n}: {_only(a[n], b[n])}" for n in differing) for a, b in _both_ways(first, other)]
        raise RunError(
            f"the runs were measured under another {' and another '.join(differing)}",
            where=folder,
            expected=words[0],
            got=words[1],
            fix="run one of them as the other, or score it under the other's protocol, reader or judge",
        )


def _both_ways(
    one: Comparable, two: Comparable
) -> tuple[tuple[Mapping[str, object], Mapping[str, object]], tuple[Mapping[str, object], Mapping[str, object]]]:
    return (one.settings, two.settings), (two.settings, one.settings)


def _only(value: object, other: object) -> object:
    """Return a setting; of a mapping, what the other has not."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return ", ".join(f"{name}: {v}" for name, v in value.items() if other.get(name) != v) or "nothing further"
    return value


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


def _written(record: Mapping[str, Any], spec: MetricSpec) -> dict[str, Any]:
    value, low, high = (_signed(spec, record[name]) for name in ("difference", "low", "high"))
    shown = dict(record) | {
        "metric": record["title"],
        "group": record["group"] or WHOLE[record["scope"]],
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
