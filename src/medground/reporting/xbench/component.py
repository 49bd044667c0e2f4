"""The report of xbench: verdict, tables in the paper's form, figures, cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from medground.benchmarks.printing import text
from medground.benchmarks.results import QUESTIONS, Answer, Cell
from medground.errors import MedgroundError
from medground.reporting.composition import Composition, Section
from medground.reporting.figures.base import ReportFigure
from medground.reporting.runs import Run
from medground.reporting.sources import Images, open_source
from medground.reporting.tables import Table
from medground.reporting.verdicts import SIGNS
from medground.reporting.words import count, listed
from medground.reporting.xbench import published
from medground.reporting.xbench.cases import viewer_data
from medground.reporting.xbench.figures.calibration import reliability
from medground.reporting.xbench.figures.correlation import auc_against_pointing, findings_against
from medground.reporting.xbench.figures.groups import forest, size_against_pointing
from medground.reporting.xbench.figures.ranks import ranking
from medground.reporting.xbench.figures.searching import gain_of_searching
from medground.reporting.xbench.figures.thresholds import threshold_curves
from medground.reporting.xbench.layout import BY_CLASS, tables_of
from medground.reporting.xbench.moments import moments
from medground.reporting.xbench.pool import Pooled, pools
from medground.reporting.xbench.standing import standing
from medground.reporting.xbench.verdict import VerdictOnModel, brief, judged

MANY = 3
"""Names in the title, and models with a line of their own; where there are more, they are counted."""


def compose(runs: Sequence[Run], images: Images) -> Composition:
    """Return verdict, tables, figures and cases; runs under different protocols keep apart."""
    parts = [_Part(pool, f"xbench-{k}", images) for k, pool in enumerate(pools(runs))]
    several = len(parts) > 1
    return Composition(
        "; ".join(dict.fromkeys(part.subject for part in parts)),
        [line for part in parts for line in part.summary],
        [fact for part in parts for fact in part.facts()],
        [section for part in parts for section in part.sections(named=several)],
        {name: block for part in parts for name, block in part.data.items()},
        [moment for part in parts for viewer in part.data.values() for moment in moments(viewer)],
    )


class _Part:
    """Everything under one protocol."""

    def __init__(self, pool: Pooled, anchor: str, images: Images) -> None:
        self.pool, self.anchor = pool, anchor
        self.sources = {d: open_source(_owner(pool, d), d, images) for d in pool.datasets}
        self.judged = [m for m in pool.models if not _is_baseline(pool, m)]
        self.data: dict[str, Any] = {}
        self.no_cases = ""
        try:
            self.data[f"{anchor}-cases"] = viewer_data(pool, self.sources)
        except MedgroundError as error:
            self.no_cases = error.what

    @property
    def subject(self) -> str:
        """Models on datasets."""
        titles = list(dict.fromkeys(source.title for source in self.sources.values()))
        models = listed(self.judged) if len(self.judged) <= MANY else count(len(self.judged), "model")
        where = listed(titles) if len(titles) <= MANY else count(len(titles), "dataset")
        return f"{models or 'Baselines'} on {where}"

    @cached_property
    def verdicts(self) -> list[VerdictOnModel]:
        """One a model that is no baseline and a dataset."""
        return [judged(self.pool, model, dataset) for model, dataset in self.pool.tasks if model in self.judged]

    @property
    def summary(self) -> list[tuple[str, str]]:
        """The answers in brief: by model where there are few, else counted by question."""
        if not self.judged:
            return [("undecided", "This run holds baselines only: there is no model to judge.")]
        own = [v for v in self.pool.verdicts if v.model in self.judged]
        places = list(dict.fromkeys((v.model, v.dataset) for v in own))
        if len(places) <= MANY:
            where = {d: f" on {s.title}" if len(self.sources) > 1 else "" for d, s in self.sources.items()}
            by_place = {place: [v for v in own if (v.model, v.dataset) == place] for place in places}
            return [(SIGNS[of[-1].answer], f"{m}{where[d]}: {brief(of)}.") for (m, d), of in by_place.items()]
        counted: dict[tuple[str, Answer], int] = {}
        for verdict in own:
            key = verdict.question, verdict.answer
            counted[key] = counted.get(key, 0) + 1
        return [
            (SIGNS[answer], f"{QUESTIONS[question].title}, {answer}: {n} of {len(places)}.")
            for (question, answer), n in counted.items()
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Return the lines of the page's head."""
        pool = self.pool
        return [
            ("Models", listed(pool.models)),
            ("Datasets", "; ".join(_size(pool, d, source.title) for d, source in self.sources.items())),
            ("Protocol", pool.runs[0].summary.described),
            ("Intervals", _intervals(pool)),
        ]

    def sections(self, *, named: bool) -> Iterator[Section]:
        """Yield the sections in order; ``named`` adds the protocol's name to their titles."""
        suffix = f" ({self.pool.facts['protocol']['name']})" if named else ""
        yield self._verdict(suffix)
        alone = len(self.pool.datasets) == 1
        for k, dataset in enumerate(self.pool.datasets):
            yield self._results(f"{self.anchor}-d{k}", dataset, suffix, self._across() if alone else [])
        if not alone:
            across = list(_with_points(self._across()))
            yield Section(f"{self.anchor}-across", f"All datasets{suffix}", "results.html", figures=across)
        block = f"{self.anchor}-cases"
        content = {"block": block, "why": self.no_cases, "cases": self.data.get(block)}
        if self.no_cases or self.data[block]["pairs"]:
            yield Section(f"{self.anchor}-viewer", f"Cases{suffix}", "xbench/cases.html", content)

    def _verdict(self, suffix: str) -> Section:
        content = {
            "verdicts": self.verdicts,
            "titles": {d: s.title for d, s in self.sources.items()},
            "baselines": [line for d, s in self.sources.items() if (line := _baselines(self.pool, d, s.title))],
            "remarks": list(_remarks(self.pool)),
        }
        return Section(
            f"{self.anchor}-verdict", f"Does it look at the evidence?{suffix}", "xbench/verdict.html", content
        )

    def _results(self, anchor: str, dataset: str, suffix: str, more: Sequence[ReportFigure]) -> Section:
        pool, source = self.pool, self.sources[dataset]
        printed = published.published_rows(source.component)
        by_class = [metric for metric in BY_CLASS if metric in pool.metrics(dataset)]
        drawn = [
            threshold_curves(pool, dataset, f"{anchor}-curves"),
            size_against_pointing(pool, dataset, f"{anchor}-size"),
            forest(pool, dataset, f"{anchor}-forest", by_class),
            reliability(pool, dataset, f"{anchor}-reliability"),
            *([ranks] if (ranks := ranking(pool, dataset, f"{anchor}-ranks")) else []),
            *more,
        ]
        drawn = list(_with_points(drawn))
        content = {"faults": published.faults(source.component), "source": published.SOURCE} if printed else {}
        return Section(
            anchor,
            f"{source.title}{suffix}",
            "results.html",
            content,
            [table for table in tables_of(pool, dataset, printed) if _holds_values(table)],
            drawn,
        )

    def _across(self) -> list[ReportFigure]:
        """Return the figures over all datasets."""
        by_finding = findings_against(self.pool, f"{self.anchor}-auc-findings")
        figures = [self._scatter(), by_finding, gain_of_searching(self.pool, f"{self.anchor}-searching")]
        return [figure for figure in figures if figure is not None]

    def _scatter(self) -> ReportFigure:
        """Return AUC against pointing; the paper's pointing stands beside it where all is about one of its datasets."""
        rows = published.published_rows(self.sources[self.pool.datasets[0]].component)
        printed = {row.model: float(row.values["pointing", ""][0]) for row in rows if ("pointing", "") in row.values}
        return auc_against_pointing(self.pool, f"{self.anchor}-auc", printed if len(self.pool.datasets) == 1 else {})


def _with_points(figures: Sequence[ReportFigure]) -> Iterator[ReportFigure]:
    """Yield figures with the choices in which a model has a point; what is grey belongs to no model."""
    for figure in figures:
        choices = {name: traces for name, traces in figure.choices.items() if any(map(_has_point, traces))}
        if choices:
            yield replace(figure, choices=choices)


def _has_point(trace: Mapping[str, Any]) -> bool:
    if (trace.get("meta") or {}).get("series") == "grey":
        return False
    points = zip(trace.get("x", ()), trace.get("y", ()), strict=False)
    return any(x is not None and y is not None for x, y in points)


def _holds_values(table: Table) -> bool:
    """Whether a table has a figure that was measured here, beside counts and what is printed elsewhere."""
    measured = [
        entries
        for row, entries in zip(table.rows, table.entries, strict=True)
        if row.kind not in {"count", "published"}
    ]
    counted = [column.kind == "count" for column in table.columns]
    return any(
        entry is not None and entry.value is not None
        for entries in measured
        for entry, count_ in zip(entries, counted, strict=True)
        if not count_
    )


def _owner(pool: Pooled, dataset: str) -> Run:
    """Return the first run that holds a dataset."""
    return next(pool.owners[model][0] for model, d in pool.tasks if d == dataset)


def _is_baseline(pool: Pooled, model: str) -> bool:
    return any(standing(task).baseline for (m, _), task in pool.tasks.items() if m == model)


def _overall(pool: Pooled, model: str, dataset: str, metric: str) -> Cell | None:
    return pool.cell(model, dataset, metric, pool.whole(metric))


def _size(pool: Pooled, dataset: str, title: str) -> str:
    task = pool.tasks_on(dataset)[0]
    sizes = [count(task["cases"], "case"), count(task["patients"], "patient"), count(task["pairs"], "region")]
    return f"{title}: {', '.join(sizes)}"


def _intervals(pool: Pooled) -> str:
    how = pool.facts["intervals"]
    if not how["replicates"]:
        return "none"
    return f"{100 * how['level']:g} %, {how['replicates']:,} replicates, seed {how['seed']}: {how['how']}"


def _baselines(pool: Pooled, dataset: str, title: str) -> str:
    """Say what the baselines of a dataset reach."""
    sentences = []
    for task in pool.tasks_on(dataset):
        pointing, dice = (_overall(pool, task["model"], dataset, metric) for metric in ("pointing", "dice@best"))
        if not standing(task).baseline or pointing is None or dice is None:
            continue
        if pointing.value is not None and dice.value is not None:
            pair = [text(pool.spec(cell.metric), cell.value, 1) for cell in (pointing, dice) if cell.value is not None]
            sentences.append(f"{task['title']} {' and '.join(pair)}")
    return f"{title}: {'; '.join(sentences)}." if sentences else ""


def _remarks(pool: Pooled) -> Iterator[str]:
    """Yield what must be known of the whole comparison."""
    for dataset in pool.datasets:
        tasks = pool.tasks_on(dataset)
        if not pool.same_cases(dataset):
            shared = "medground compare pairs what they share"
            yield f"{dataset}: the runs hold different cases, so nothing is ranked; {shared}."
        ranked = sum(standing(task).ranked for task in tasks)
        if ranked < 2:
            held = "one zero-shot model" if ranked else "no zero-shot model"
            yield f"{dataset}: {held} that has not seen the data, so none is marked as best."
        if lost := tasks[0]["present_but_not_localised"]:
            unlocated = f"{count(lost, 'pair is', 'pairs are')} labelled present without a region"
            yield f"{dataset}: {unlocated}, and {'counts' if lost == 1 else 'count'} for recognition alone."
