"""The report of Medical-Checklist: does a model look, and where is it right: types, lengths, similarity, terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.results import Cell
from medground.reporting import plain
from medground.reporting.composition import Composition, Section
from medground.reporting.figures.base import ReportFigure
from medground.reporting.medical_checklist.figures import beside_the_blind, bins, lines
from medground.reporting.medical_checklist.terms import terms
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images
from medground.reporting.tables import Head, Table, TableEntry

_AUDIT = "Audit"
_SIGNS = {"yes": "yes", "no": "no", "in part": "partly"}
_GROUPS = (
    (
        "type",
        "Semantic type",
        "Chance is 50. Intervals are by paper, picture or scene pair; small types have wide ones.",
    ),
    ("source", "Source", "The collection that captions are from."),
    ("exposure", "Seen in pretraining", "By the model's card or the run file. What was seen is no test of looking."),
)


def compose(runs: Sequence[Run], images: Images) -> Composition:
    """Return verdicts and the audit's sentence in the head, figures by group, and every table."""
    page = plain.compose(runs, images)
    named = list(zip(runs, unique_names(runs), strict=True))
    sentences = [
        (_SIGNS.get(v.answer, "undecided"), f"{v.model}, {v.dataset}: {v.because}")
        for run, _ in named
        for v in run.summary.verdicts
        if v.question == "captions"
    ]
    notes = [("Note", note) for run, _ in named for note in run.summary.notes]
    models = dict.fromkeys(facts.label for run, _ in named for facts in run.summary.models)
    own = [section for number, (run, name) in enumerate(named) for section in _sections(run, name, number)]
    return replace(
        page,
        subject=f"{', '.join(models)} (Medical-Checklist)",
        summary=sentences,
        facts=[*page.facts, *notes],
        sections=[*own, *(replace(s, tables=[t for t in s.tables if t.title != _AUDIT]) for s in page.sections)],
    )


def _sections(run: Run, name: str, number: int) -> Iterator[Section]:
    cells = list(run.summary.cells)
    models = list(dict.fromkeys(c.model for c in cells if c.metric == "accuracy"))
    anchor = f"captions-{number}"
    measure = ", ".join(map(str, run.data.get("similarity_by", ()))) or "3-grams"
    figures: list[ReportFigure] = [
        beside_the_blind(cells, models, f"{anchor}-blind"),
        bins(cells, models, "length", "Caption length", "words and marks of the true caption", f"{anchor}-length"),
        bins(cells, models, "similarity", "Similarity of the two terms", measure, f"{anchor}-similarity"),
        lines(cells, models, "type", "Semantic type", _GROUPS[0][2], f"{anchor}-type"),
    ]
    tables = [_by_group(cells, models, *group) for group in _GROUPS]
    shown = [f for f in figures if any(any(t.get("x") or t.get("y") for t in ts) for ts in f.choices.values())]
    content = {"lead": _LEAD}
    yield Section(
        anchor, f"Right captions, {name}", "medical_checklist/captions.html", content,
        tables=[*(t for t in tables if t.rows), *terms(cells, models)], figures=shown,
    )  # fmt: skip
    audit = run.data.get("audit")
    if audit:
        lead = f"{audit['sentence']} Words were learned from {audit['reference']}; a claim needs {audit['margin']}."
        yield Section(
            f"{anchor}-audit", f"What text alone gives, {name}", "medical_checklist/captions.html", {"lead": lead},
            tables=[_audit(audit["results"])],
        )  # fmt: skip


def _audit(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return blind scorers, the best first, over all items and by type."""
    overall = sorted((r for r in results if r["group"] == "all"), key=lambda r: -r["accuracy"])
    groups = list(dict.fromkeys(r["group"] for r in results))
    held = {(r["scorer"], r["group"]): r for r in results}
    names = [TYPES[g].label if g in TYPES else g for g in groups]
    scorers = [r["scorer"] for r in overall]
    entries = [[_blind(held.get((scorer, group))) for group in groups] for scorer in scorers]
    notes = ["The learned scorer is fitted on other papers: it is the one to trust."]
    return Table(_AUDIT, "scorer", [Head(s) for s in scorers], [Head(n, "group") for n in names], entries, notes)


def _blind(result: Mapping[str, Any] | None) -> TableEntry | None:
    if result is None:
        return None
    low, high = result["low"], result["high"]
    ends = "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"
    return TableEntry(f"{100 * result['accuracy']:.1f}", ends, f"n {result['n']}", 100 * result["accuracy"])


_LEAD = (
    "Percent of items in which the true caption wins; ties count one half, and so do items whose changed term lies "
    "beyond a model's token limit. The best blind scorer sees the two captions and no picture."
)


def _by_group(cells: Sequence[Cell], models: Sequence[str], scope: str, title: str, note: str) -> Table:
    """Return accuracy of every model in every group, with its interval and number of items."""
    held = {(c.group, c.model): c for c in cells if c.metric == "accuracy" and c.scope == scope}
    groups = list(dict.fromkeys(group for group, _ in held))
    entries = [[_entry(held.get((group, model))) for model in models] for group in groups]
    rows = [Head(group, "group") for group in groups]
    return Table(f"Accuracy by {title.lower()}", title, rows, [Head(m) for m in models], entries, [note])


def _entry(cell: Cell | None) -> TableEntry | None:
    if cell is None:
        return None
    if cell.value is None:
        return TableEntry("", note=cell.reason or "undefined")
    ends = "" if cell.low is None or cell.high is None else f"[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
    return TableEntry(f"{100 * cell.value:.1f}", ends, f"n {cell.n}", 100 * cell.value)
