"""The tables of GridVQA-X: accuracy, local and global explainers, with the published figures as rows beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.gridvqa_x.cells import SCOPES
from medground.benchmarks.gridvqa_x.specs import Modality, figure
from medground.benchmarks.results import Cell, Cells
from medground.reporting.tables import Head, Table, TableEntry

MEASURES: Mapping[Modality, Mapping[str, str]] = {
    "image": {"mass": "mass", "iou": "IoU", "rank": "rank", "area": "area", "anchors": "anchors", "lures": "lures"},
    "text": {
        "mass": "mass",
        "iou": "IoU",
        "rank": "rank",
        "area": "area",
        "anchors": "anchors",
        "directions": "directions",
    },
}
DEPTHS = (1, 2, 3)
_CHOICES = {"image": "image", "text": "words"}
_NOTE = {
    "image": "Percent. Mass, IoU and rank against the cells of anchors and true targets; area: the mass that an even "
    "map would put there; anchors, lures: share of the mass on each.",
    "text": "Percent. Mass, IoU and rank against the words that carry the question; area: the mass that an even map "
    "would put there; anchors, directions: share of the mass on each.",
}


class Regimes:
    """Cells by regime instead of model and dataset."""

    def __init__(self, cells: Sequence[Cell], regimes: Mapping[str, Mapping[str, str]]) -> None:
        self._cells = Cells(cells)
        self._regimes = regimes

    def get(self, regime: str, method: str, metric: str, scope: str = "all", group: str = "") -> Cell | None:
        """Return a cell, or None where nothing was measured."""
        if regime not in self._regimes:
            return None
        of = self._regimes[regime]
        place = {"method": method, "metric": metric, "scope": scope, "group": group}
        return self._cells.one(model=of["model"], dataset=of["data"], **place)

    def methods(self, metric: str) -> list[str]:
        """Return the methods that have a metric, in their order."""
        return list(dict.fromkeys(cell.method for cell in self._cells.where(metric=metric)))

    def groups(self, metric: str, scope: str) -> list[str]:
        """Return the groups of a scope, in their order."""
        return list(dict.fromkeys(cell.group for cell in self._cells.where(metric=metric, scope=scope)))


def results_tables(
    cells: Regimes, data: Mapping[str, Any], who: Mapping[str, str], printed: pl.DataFrame | None
) -> list[Table]:
    """Return the compact tables.

    Args:
        cells: the run's numbers.
        data: its summary.
        who: regime -> model and data in words.
        printed: published figures, as the run holds them.
    """
    tables = [_accuracy(cells, who)]
    if published := _published(printed, "accuracy"):
        tables.append(_beside(cells, who, published))
    tables += [
        _local(cells, modality, who, printed) for modality in MEASURES if cells.methods(figure(modality, "mass"))
    ]
    tables += [_global(data, subset, who, printed) for subset in ("mixed", "relational") if data["additive_fallacy"]]
    return tables


def folded_tables(cells: Regimes, who: Mapping[str, str]) -> list[Table]:
    """Return the long tables: accuracy and mass by depth, type, form, density and bucket."""
    tables = [_grouped(cells, "accuracy", "Accuracy by group", "accuracy", who)]
    tables += [
        _grouped(cells, figure(modality, "mass"), "Mass on the cause by group", _CHOICES[modality], who)
        for modality in MEASURES
    ]
    return [table for table in tables if table.rows]


def _accuracy(cells: Regimes, who: Mapping[str, str]) -> Table:
    places = [("all", "", "all")]
    places += [("depth", group, f"depth {group}") for group in sorted(cells.groups("accuracy", "depth"))]
    places += [("type", group, f"type {group}") for group in cells.groups("accuracy", "type")]
    entries = [[_entry(cells.get(regime, "", "accuracy", by, group)) for by, group, _ in places] for regime in who]
    columns = [Head(name, "mean" if by == "all" else "group") for by, _, name in places]
    rows = [Head(text) for text in who.values()]
    family, choice = "Accuracy", "by depth and type"
    return Table(family, "model and data", rows, columns, entries, ["Percent of right answers."], family, choice)


def _beside(cells: Regimes, who: Mapping[str, str], published: Sequence[Mapping[str, Any]]) -> Table:
    """Return accuracy in the buckets that the paper prints, with its rows."""
    buckets = list(dict.fromkeys(row["group"] for row in published))
    rows = [Head(text) for text in who.values()]
    entries = [[_entry(cells.get(regime, "", "accuracy", "bucket", group)) for group in buckets] for regime in who]
    for method, regime in dict.fromkeys((row["method"], row["regime"]) for row in published):
        mine = {row["group"]: row for row in published if (row["method"], row["regime"]) == (method, regime)}
        rows.append(Head(f"{method}: {regime or 'other data'}", "published", ("as printed",)))
        entries.append([_printed(mine.get(group)) for group in buckets])
    columns = [Head(group, "group") for group in buckets]
    title, choice = "Accuracy in the buckets that the paper prints", "beside the paper"
    return Table(title, "model and data", rows, columns, entries, ["Percent of right answers."], "Accuracy", choice)


def _local(cells: Regimes, modality: Modality, who: Mapping[str, str], printed: pl.DataFrame | None) -> Table:
    names = [figure(modality, measure) for measure in MEASURES[modality]]
    rows, entries = [], []
    for method in cells.methods(figure(modality, "mass")):
        for regime, text in who.items():
            rows.append(Head(f"{method}: {text}"))
            entries.append([_entry(cells.get(regime, method, name)) for name in names])
    published = [row for row in _published(printed, "local") if row["metric"] in names]
    for method, regime in dict.fromkeys((row["method"], row["regime"]) for row in published):
        mine = {row["metric"]: row for row in published if (row["method"], row["regime"]) == (method, regime)}
        rows.append(Head(f"{method}: {regime}", "published", ("as printed",)))
        entries.append([_printed(mine.get(name)) for name in names])
    columns = [Head(text, "group") for text in MEASURES[modality].values()]
    title = f"Local explainers, {_CHOICES[modality]}"
    family, choice = "Where local explainers look", _CHOICES[modality]
    return Table(title, "explainer: model and data", rows, columns, entries, [_NOTE[modality]], family, choice)


def _global(data: Mapping[str, Any], subset: str, who: Mapping[str, str], printed: pl.DataFrame | None) -> Table:
    rows: list[Head] = []
    entries: list[list[TableEntry | None]] = []
    for check in (check for check in data["additive_fallacy"] if check["subset"] == subset):
        for regime, text in who.items():
            held = check.get(regime, {})
            # A series names no depths: only a whole one can be put under heads.
            if len(held.get("mean", ())) == len(DEPTHS):
                rows.append(Head(f"{check['method']}: {text}"))
                entries.append([*(_score(held, k) for k in range(len(DEPTHS))), _slope(held)])
    published = _published(printed, "emap") if subset == "mixed" else []
    for regime in dict.fromkeys(row["regime"] for row in published):
        mine = {row["group"].split()[-1]: row for row in published if row["regime"] == regime}
        rows.append(Head(f"emap: {regime}", "published", ("as printed",)))
        entries.append([*(_printed(mine.get(str(depth))) for depth in DEPTHS), None])
    columns = [*(Head(f"depth {depth}", "group") for depth in DEPTHS), Head("slope", "mean")]
    choice = "type M" if subset == "mixed" else "all with relations"
    notes = ["Mean score, its standard deviation over scenes and n; the slope a step of depth with its interval."]
    family = "Global explainers by depth"
    return Table(f"{family}, {choice}", "explainer: model and data", rows, columns, entries, notes, family, choice)


def _grouped(cells: Regimes, metric: str, family: str, choice: str, who: Mapping[str, str]) -> Table:
    places = [(by, group) for by in SCOPES[1:] for group in cells.groups(metric, by)]
    columns = [(method, regime) for method in cells.methods(metric) for regime in who]
    entries = [[_entry(cells.get(regime, method, metric, *place)) for method, regime in columns] for place in places]
    rows = [Head(f"{by.replace('_', ' ')} {group}".removeprefix("bucket "), "group") for by, group in places]
    heads = [Head(who[regime] if not method else f"{method}: {who[regime]}") for method, regime in columns]
    title = family if metric == "accuracy" else f"{family}, {choice}"
    return Table(title, "group", rows, heads, entries, ["Percent; mixed depth: type M alone."], family, choice)


def _entry(cell: Cell | None) -> TableEntry | None:
    if cell is None:
        return None
    if cell.value is None:
        return TableEntry("undefined", note=cell.reason or "")
    counts = [f"{n:,} {word}" for n, word in ((cell.undefined, "undefined"), (cell.flat, "flat")) if n]
    interval = "" if cell.low is None or cell.high is None else f"[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
    return TableEntry(f"{100 * cell.value:.1f}", interval, ", ".join(counts), 100 * cell.value)


def _score(held: Mapping[str, Any], k: int) -> TableEntry:
    mean, sd, n = (held[key][k] for key in ("mean", "sd", "n"))
    if mean is None:
        return TableEntry("undefined")
    lost = held["n_undefined"][k]
    note = f"sd {sd:.3g}, n {n}" if sd is not None else f"n {n}"
    return TableEntry(f"{mean:.4g}", "", note + (f", {lost} undefined" if lost else ""), mean)


def _slope(held: Mapping[str, Any]) -> TableEntry:
    low, high = held["slope_interval"]
    if held["slope"] is None:
        return TableEntry("undefined")
    interval = "" if low is None or high is None else f"[{low:.3g}, {high:.3g}]"
    return TableEntry(f"{held['slope']:+.3g}", interval, "", held["slope"])


def _published(printed: pl.DataFrame | None, table: str) -> Sequence[Mapping[str, Any]]:
    return [] if printed is None else printed.filter(pl.col("table") == table).to_dicts()


def _printed(row: Mapping[str, Any] | None) -> TableEntry | None:
    if row is None or not row["published"]:
        return None
    note = f"sd {row['published_sd']}" if row["published_sd"] else ""
    return TableEntry(str(row["published"]), note=note, value=float(row["published"]))
