"""Scores of dialogues as tables: figures of one judge beside each other, figures of different judges never."""

from __future__ import annotations

from collections.abc import Sequence

from medground.benchmarks.printing import interval, text
from medground.benchmarks.results import Cell
from medground.metrics.spec import MetricSpec
from medground.reporting.runs import Run
from medground.reporting.tables import Head, Table, TableEntry

#: History mode -> how a reader calls it.
HISTORIES = {"without_gt": "own history", "with_gt": "reference history", "simulator": "simulated user"}
#: What the cells are grouped by, and how a table of it is called.
SCOPES = {"task": "By task", "turn": "By turn", "evidence": "By what the history tells"}
APART = (
    "Judged by different judges ({judges}): a judge decides what counts as covered and faithful, so these figures are "
    "not put into one table. To compare the runs, judge them alike: medground score RUN --judge NAME."
)
_FLOORS = {"faithfulness": "floor_faithfulness", "average_success": "floor_average", "strict_success": "floor_strict"}


def by_judge(runs: Sequence[tuple[Run, str]]) -> dict[str, list[tuple[Run, str]]]:
    """Runs that may stand in one column: who judged them, with the version of rules and prompt -> runs."""
    out: dict[str, list[tuple[Run, str]]] = {}
    for run, name in runs:
        out.setdefault(judge_of(run), []).append((run, name))
    return out


def judge_of(run: Run) -> str:
    """Who judged a run: the judge with its version, and the models that it asked."""
    judge = run.data.get("judge") or {}
    models = [f"{label} {identity[:8]}" for label, identity in judge.get("models", {}).items()]
    return ", ".join([str(judge.get("judge", run.summary.reading)), *models])


def scores(runs: Sequence[tuple[Run, str]], title: str, notes: Sequence[str] = ()) -> Table:
    """Every model in every history mode, and what sees nothing, with intervals by dialogue."""
    several = len(runs) > 1
    by_row: dict[tuple[str, str, str], dict[str, Cell]] = {}
    specs: dict[str, MetricSpec] = {}
    for run, name in runs:
        for cell in run.summary.cells:
            if cell.scope == "all":
                dataset = f"{cell.dataset}, with_gt" if cell.metric == "copied_not_seen" else cell.dataset
                by_row.setdefault((name, cell.model, dataset), {})[cell.metric] = cell
                specs.setdefault(cell.metric, run.summary.spec(cell.metric))
    order = [spec for run, _ in runs[:1] for spec in run.summary.metrics if spec.name in specs]
    order += [spec for name, spec in specs.items() if name not in {s.name for s in order}]
    rows, entries = [], []
    for (name, model, dataset), own in by_row.items():
        rows.append(Head(model, notes=(called(dataset), *((name,) if several else ()))))
        entries.append([_entry(spec, own.get(spec.name)) for spec in order])
    for name, own in _floors(runs).items():
        rows.append(Head(name, "baseline", ("sees nothing",)))
        entries.append([_entry(spec, own.get(_FLOORS.get(spec.name, ""))) for spec in order])
    table = Table(title, "Model", rows, [Head(spec.title, "group") for spec in order], entries, notes)
    return table.readable("Metric")


def _floors(runs: Sequence[tuple[Run, str]]) -> dict[str, dict[str, Cell]]:
    out: dict[str, dict[str, Cell]] = {}
    for run, _ in runs[:1]:
        for cell in run.summary.cells:
            if cell.scope == "floor":
                out.setdefault(cell.group, {}).setdefault(cell.metric, cell)
    return out


def grouped(run: Run, metric: str = "faithfulness") -> list[Table]:
    """One metric by task, by turn and by what the history tells: tables that take turns in one place."""
    spec = run.summary.spec(metric)
    tables = []
    for scope, title in SCOPES.items():
        cells = [c for c in run.summary.cells if c.scope == scope and c.metric == metric]
        columns = list(dict.fromkeys((c.model, c.dataset) for c in cells))
        groups = list(dict.fromkeys(c.group for c in cells))
        if scope == "turn":
            groups.sort(key=int)
        by_place = {(c.model, c.dataset, c.group): c for c in cells}
        entries = [[_entry(spec, by_place.get((*column, group))) for column in columns] for group in groups]
        heads = [Head(model, "group", (called(dataset),)) for model, dataset in columns]
        if groups:
            named = [Head(group.replace("_", " "), "group") for group in groups]
            title_of = f"{spec.title} {title.lower()}"
            tables.append(Table(title_of, scope.capitalize(), named, heads, entries, family=spec.title, choice=title))
    return tables


def called(dataset: str) -> str:
    """The dialogues as a reader calls them: "phantoms, own history"."""
    base, _, mode = dataset.rpartition(", ")
    return f"{base}, {HISTORIES[mode]}" if mode in HISTORIES else dataset


def _entry(spec: MetricSpec, cell: Cell | None) -> TableEntry | None:
    if cell is None:
        return None
    left = [f"{cell.failed} undecided"] if cell.failed else []
    if cell.value is None:
        return TableEntry("", note=cell.reason or "undefined")
    note = ", ".join([f"n {cell.n}", *left]) if cell.low is not None or left else ""
    return TableEntry(text(spec, cell.value), interval(spec, cell.low, cell.high), note, spec.scale * cell.value)
