"""``medground table``: chosen figures of finished runs as one table for a paper, from their cells alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from medground.benchmarks.printing import heading, text, with_interval
from medground.benchmarks.results import Cell, Summary
from medground.errors import ConfigError, did_you_mean
from medground.escaping import for_latex
from medground.metrics.spec import MetricSpec
from medground.reporting.exports import latex, markdown, marked
from medground.reporting.runs import Run, read_run, unique_names
from medground.reporting.tables import Mark, best_two
from medground.running.tables import to_csv

PLACES = ("run", "model", "dataset", "subset", "method", "scope", "group")
"""What tells the rows of a table apart, in this order; a column that says the same everywhere is left out."""

WHOLE = ("all", "macro", "pairs")
"""Scopes that stand for everything, the first that a metric has is taken."""

FEW = 3
"""Columns of a run whose verdicts rest on no figure, where none are named."""


@dataclass(frozen=True)
class Wanted:
    """What a table shows.

    Attributes:
        columns: metrics, in order; none: those of the verdicts' headlines, or of a run without any its first three.
        scope: which groups (``class``, ``view``); empty: the figure over everything.
        models: labels; none: all.
        intervals: whether intervals stand behind the figures.
        digits: decimals of percentages; None: the metric's own.
        marks: whether the best figure of a dataset is marked, and the second: for Markdown and LaTeX.
    """

    columns: tuple[str, ...] = ()
    scope: str = ""
    models: tuple[str, ...] = ()
    intervals: bool = True
    digits: int | None = None
    marks: bool = False


def table_of(folders: Sequence[Path], wanted: Wanted) -> pl.DataFrame:
    """Return the table.

    Args:
        folders: finished runs.
        wanted: what it shows.

    Raises:
        RunError: a folder holds no finished run.
        ConfigError: no cell has such a metric, scope or model, or different judges decided what was right.
    """
    runs = [read_run(folder) for folder in folders]
    names = unique_names(runs)
    _one_judge(runs, names)
    summaries = {name: run.summary for name, run in zip(names, runs, strict=True)}
    columns = wanted.columns or _headlines(list(summaries.values()))
    _check(summaries, columns, wanted)
    rows: dict[tuple[str, ...], dict[str, Cell]] = {}
    for name, summary in summaries.items():
        for metric in columns:
            for cell in _cells(summary, metric, wanted):
                rows.setdefault(_place(name, cell, wanted), {})[metric] = cell
    specs = {metric: _spec(summaries, metric) for metric in columns}
    best: dict[str, dict[tuple[str, ...], Mark]] = {}
    for metric, spec in specs.items():
        digits = spec.digits if wanted.digits is None else wanted.digits
        best[metric] = _best(rows, metric, spec, summaries, digits) if wanted.marks else {}
    return _shown(rows, specs, wanted, best)


def written(table: pl.DataFrame, form: str, caption: str = "") -> str:
    """Return a table as ``csv``, ``md`` or ``tex``; with a caption LaTeX has a ``table`` around its ``tabular``."""
    text = {"csv": to_csv, "md": markdown, "tex": latex}[form](table)
    if form != "tex" or not caption:
        return f"{text}\n{caption}\n" if form == "md" and caption else text
    comment, _, tabular = text.partition("\n")
    top = f"{comment}\n\\begin{{table}}\n\\centering\n\\caption{{{for_latex(caption)}}}\n"
    return f"{top}{tabular}\\end{{table}}\n"


def _best(
    rows: Mapping[tuple[str, ...], Mapping[str, Cell]],
    metric: str,
    spec: MetricSpec,
    summaries: Mapping[str, Summary],
    digits: int,
) -> dict[tuple[str, ...], Mark]:
    """Mark the best two of a metric in each place: models that have not seen the data, on equally many items."""
    if spec.direction == "neither":
        return {}
    parted: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for place, cells in rows.items():
        facts = summaries[place[0]].facts(place[1])
        if metric in cells and cells[metric].value is not None and not facts.baseline and place[2] not in facts.seen:
            parted.setdefault(place[2:], []).append(place)
    marks: dict[tuple[str, ...], Mark] = {}
    for places in parted.values():
        if len(places) > 1 and len({rows[place][metric].items for place in places}) == 1:
            # As they are printed, so that what looks equal is marked alike.
            printed = [round((rows[place][metric].value or 0.0) * spec.scale, digits) for place in places]
            values = {str(k): value for k, value in enumerate(printed)}
            best = best_two(values, list(values), low_is_good=spec.direction == "lower")
            marks |= {places[int(k)]: mark for k, mark in best.items()}
    return marks


def _one_judge(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Refuse to put figures of different judges into one column."""
    judged: dict[str, dict[str, list[str]]] = {}
    for run, name in zip(runs, names, strict=True):
        if judge := run.data.get("judge"):
            judged.setdefault(run.benchmark, {}).setdefault(json.dumps(judge, sort_keys=True), []).append(name)
    for judges in judged.values():
        if len(judges) > 1:
            raise ConfigError(
                "the runs were judged by different judges, whose figures do not belong into one column",
                where="; ".join(", ".join(own) for own in judges.values()),
                got="; ".join(judges),
                fix="judge them alike (medground score RUN --judge NAME), or make one table a judge",
            )


def _headlines(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Return what verdicts rest on; of a run that has none, the first metrics that have a figure over everything."""
    chosen: dict[str, None] = {}
    for summary in summaries:
        measured = {cell.metric for cell in summary.cells}
        named = [v.headline.metric for v in summary.verdicts if v.headline is not None]
        own = [metric for metric in named if metric in measured]
        if not own:
            whole = {cell.metric for cell in summary.cells if cell.scope in WHOLE}
            own = [spec.name for spec in summary.metrics if spec.name in whole][:FEW]
        chosen |= dict.fromkeys(own)
    return tuple(chosen)


def _check(summaries: Mapping[str, Summary], columns: Sequence[str], wanted: Wanted) -> None:
    cells = [cell for summary in summaries.values() for cell in summary.cells]
    asked = {"metric": columns, "scope": [wanted.scope] if wanted.scope else [], "model": wanted.models}
    for field, names in asked.items():
        known = list(dict.fromkeys(getattr(cell, field) for cell in cells))
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"no cell of the run has the {field} {name!r}",
                    where=", ".join(summaries),
                    expected=", ".join(known),
                    fix=did_you_mean(name, known),
                )
    if not columns:
        raise ConfigError("the table has no column", where=", ".join(summaries), fix="name metrics: --columns a,b")


def _cells(summary: Summary, metric: str, wanted: Wanted) -> list[Cell]:
    own = [c for c in summary.cells if c.metric == metric and (not wanted.models or c.model in wanted.models)]
    scopes = {cell.scope for cell in own}
    scope = wanted.scope or next((whole for whole in WHOLE if whole in scopes), "")
    return [cell for cell in own if cell.scope == scope]


def _place(run: str, cell: Cell, wanted: Wanted) -> tuple[str, ...]:
    # Different wholes (a mean over classes, one over pairs) stand in one row.
    scope = cell.scope if wanted.scope else ""
    return run, cell.model, cell.dataset, cell.subset, cell.method, scope, cell.group


def _spec(summaries: Mapping[str, Summary], metric: str) -> MetricSpec:
    first = next(s for s in summaries.values() if any(cell.metric == metric for cell in s.cells))
    return first.spec(metric)


def _shown(
    rows: Mapping[tuple[str, ...], Mapping[str, Cell]],
    specs: Mapping[str, MetricSpec],
    wanted: Wanted,
    best: Mapping[str, Mapping[tuple[str, ...], Mark]],
) -> pl.DataFrame:
    differ = [k for k, name in enumerate(PLACES) if name == "model" or len({place[k] for place in rows}) > 1]
    records = []
    for place, cells in rows.items():
        record: dict[str, str | int | None] = {PLACES[k]: place[k] for k in differ}
        for metric, spec in specs.items():
            figure = _figure(cells.get(metric), spec, wanted)
            mark = best[metric].get(place)
            record[heading(spec)] = marked(figure, mark) if figure and mark else figure
        record["n"] = next((cells[metric].n for metric in specs if metric in cells), None)
        records.append(record)
    return pl.DataFrame(records, infer_schema_length=None)


def _figure(cell: Cell | None, spec: MetricSpec, wanted: Wanted) -> str | None:
    if cell is None:
        return None
    if wanted.intervals or cell.value is None:
        return with_interval(spec, cell, wanted.digits)
    return text(spec, cell.value, wanted.digits)
