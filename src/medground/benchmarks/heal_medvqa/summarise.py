"""From rows to cells, verdicts and tables: each model by itself, then all over the pool that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.heal_medvqa.baselines import floors, known_from
from medground.benchmarks.heal_medvqa.cells import Whose, balanced, closed_cells, flip_cells, open_cells, quartet_cells
from medground.benchmarks.heal_medvqa.compare import compared
from medground.benchmarks.heal_medvqa.localising import mask_cells
from medground.benchmarks.heal_medvqa.pools import ClosedAnswers, shared_pool
from medground.benchmarks.heal_medvqa.published import reference_table
from medground.benchmarks.heal_medvqa.rows import TRUE_REGIONS
from medground.benchmarks.heal_medvqa.specs import MASKS, SPECS
from medground.benchmarks.heal_medvqa.variants import CONTROLS, FLIPS
from medground.benchmarks.heal_medvqa.verdicts import REGION, Tested, figure, half_verdict, region_verdict
from medground.benchmarks.results import Cell, Cells, ModelFacts, Summary, Verdict
from medground.metrics.decide import Rule
from medground.metrics.inference import Estimate, estimate_mean

Path = tuple[str, ...]


def summarise(
    rows: Mapping[Path, pl.DataFrame],
    *,
    rules: Mapping[str, Rule],
    reading: str,
    about: Mapping[str, Any],
    cards: Mapping[str, Any] | None = None,
) -> Summary:
    """Return the summary of a run.

    Args:
        rows: by ``(model, dataset)``.
        rules: of decision, by family.
        reading: name of the reader.
        about: what the build counted, by dataset; put into the summary as it is.
        cards: model -> its card.
    """
    cells: list[Cell] = []
    verdicts: list[Verdict] = []
    tables: dict[str, pl.DataFrame] = {}
    floors_of: dict[str, list[dict[str, Any]]] = {}
    for dataset in dict.fromkeys(path[1] for path in rows):
        models = {path[0]: frame for path, frame in rows.items() if path[1] == dataset}
        natural = {model: ClosedAnswers.of(frame, "natural") for model, frame in models.items()}
        for model, frame in models.items():
            own_cells, own_verdicts = one_model(Whose(model, dataset, reading), frame, natural[model], rules)
            cells += own_cells
            verdicts += own_verdicts
        cells += _shared(natural, dataset, reading)
        floors_of[dataset] = _floor_records(next(iter(natural.values())))
        if len(models) > 1:
            tables[f"comparisons_{dataset}"] = compared(natural, rules, dataset)
    tables |= {"heal_medvqa": board(cells), "answers_from": sentences(verdicts), "published": reference_table()}
    if any(cell.subset == "true_regions" for cell in cells):
        tables["true_regions"] = board(cells, "true_regions", "true_quartets")
    if about:
        tables["blind_and_region_blind"] = floor_table(about)
    specimens = [one for path, frame in rows.items() for one in _specimens(path, frame)]
    data = {
        "specimens": specimens,
        "build": dict(about),
        "floors": floors_of,
        "margins": {k: r.in_words() for k, r in rules.items()},
    }
    return Summary(
        cells=tuple(cells),
        verdicts=tuple(verdicts),
        tables=tables,
        data=data,
        benchmark="heal_medvqa",
        reading=reading,
        models=[_facts(model, (cards or {}).get(model)) for model in dict.fromkeys(path[0] for path in rows)],
        metrics=SPECS,
        questions=(REGION,),
        notes=_notes(about),
    )


def one_model(
    whose: Whose, rows: pl.DataFrame, natural: ClosedAnswers, rules: Mapping[str, Rule]
) -> tuple[list[Cell], list[Verdict]]:
    """Return the cells and verdicts of one model on one dataset."""
    quartets = ClosedAnswers.of(rows, "quartets")
    over_quartets = Whose(whose.model, whose.dataset, whose.reading, "quartets")
    cells_of_regions = mask_cells(whose, rows) + _true_regions(whose, rows)
    over_all = Whose(whose.model, whose.dataset, whose.reading, "all_yes")
    cells = closed_cells(whose, natural) + open_cells(whose, rows) + quartet_cells(over_quartets, quartets)
    cells += flip_cells(whose, natural, natural.true_positives())
    cells += flip_cells(over_all, natural, natural.all_yes()) + cells_of_regions
    index = Cells(cells)
    figures = _figures(natural, quartets, index, rules)
    fallback = index.where(metric="balanced_accuracy", subset="main", scope="all")[0]
    name = (whose.model, whose.dataset, whose.reading)
    words = [figures.get("A"), figures.get("D")]
    verdicts = [
        region_verdict(*name, figures, fallback),
        half_verdict("words", *name, words, fallback),
        half_verdict("pixels", *name, [figures.get("V")], fallback),
    ]
    return cells, verdicts


def _true_regions(whose: Whose, rows: pl.DataFrame) -> list[Cell]:
    """Return the figures with the true region given to the model, where it was asked so."""
    natural = ClosedAnswers.of(rows, f"natural{TRUE_REGIONS}")
    if not natural.base:
        return []
    main, quartets = (
        Whose(whose.model, whose.dataset, whose.reading, name) for name in ("true_regions", "true_quartets")
    )
    cells = closed_cells(main, natural) + flip_cells(main, natural, natural.true_positives())
    cells += open_cells(main, rows, f"natural{TRUE_REGIONS}")
    return cells + quartet_cells(quartets, ClosedAnswers.of(rows, f"quartets{TRUE_REGIONS}"))


def _figures(
    natural: ClosedAnswers, quartets: ClosedAnswers, cells: Cells, rules: Mapping[str, Rule]
) -> dict[str, Tested]:
    """Return the figures that verdicts rest on, each held against 50 %."""
    pool = natural.true_positives()

    def of(metric: str, **where: str) -> tuple[Cell | None, Estimate]:
        wanted = {"metric": metric, "subset": "main", "scope": "all"} | where
        inside = where.get("group")
        values, by = natural.hits(pool, metric)
        if inside:
            values = natural.only(pool, metric, values, inside)
        return next(iter(cells.where(**wanted)), None), estimate_mean(values, by)

    chosen = {"A": of("tpt_anatomy"), "D": of("tpt_disease"), "V": of("vpt_redrawn")}
    if chosen["V"][0] is None:
        chosen["V"] = of("vpt", scope="residue", group="covered")
    if chosen["V"][0] is None:
        chosen["V"] = of("vpt")
    chosen |= {name: of(name) for name in CONTROLS}
    figures = {name: figure(cell, estimate, rules) for name, (cell, estimate) in chosen.items()}
    if quartets.base:
        cell = next(iter(cells.where(metric="balanced_accuracy", subset="quartets", scope="all")), None)
        figures["Q"] = figure(cell, balanced(quartets), rules)
    return {name: one for name, one in figures.items() if one is not None}


def _shared(natural: Mapping[str, ClosedAnswers], dataset: str, reading: str) -> list[Cell]:
    """Return every model's flips over the pool that all of them share; pools of their own are not comparable."""
    if len(natural) < 2:
        return []
    pool = shared_pool(list(natural.values()))
    cells = []
    for model, answers in natural.items():
        cells += flip_cells(Whose(model, dataset, reading, "shared"), answers, pool)
    return cells


def _floor_records(answers: ClosedAnswers) -> list[dict[str, Any]]:
    return [
        {"baseline": one.name, "balanced_accuracy": one.balanced_accuracy, "n_yes": one.n_yes, "n_no": one.n_no}
        for one in floors(known_from(answers.base))
    ]


def board(cells: Sequence[Cell], subset: str = "main", quartets_of: str = "quartets") -> pl.DataFrame:
    """Return the table for people: a line a model and dataset, figures in percent.

    Args:
        cells: of all models.
        subset: whose figures.
        quartets_of: subset of the swapped quartets that stand beside them.
    """
    index = Cells(cells)
    columns = ("balanced_accuracy", "f1_yes", "macro_f1", "specificity", "yes_ratio", "non_answers", "open_f1", "tpt")
    masks = tuple(spec.name for spec in MASKS if index.where(metric=spec.name, subset=subset))
    lines = []
    for model, dataset in dict.fromkeys((cell.model, cell.dataset) for cell in cells if cell.subset == subset):
        line: dict[str, Any] = {"model": model, "dataset": dataset}
        quartets = index.where(model=model, dataset=dataset, metric="balanced_accuracy", subset=quartets_of)
        line["quartets"] = _shown(quartets)
        for metric in (*columns, *FLIPS, *CONTROLS, *masks):
            line[metric] = _shown(index.where(model=model, dataset=dataset, metric=metric, subset=subset, scope="all"))
        lines.append(line)
    return pl.DataFrame(lines, infer_schema_length=None)


def sentences(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """Return a line a model and question: the answer and the sentence that the rule gives."""
    columns = ("model", "dataset", "question", "answer", "because")
    return pl.DataFrame([{name: getattr(one, name) for name in columns} for one in verdicts])


def floor_table(about: Mapping[str, Any]) -> pl.DataFrame:
    """Return what blind and region-blind baselines get from each sampler: balanced accuracy in percent."""
    lines = []
    for dataset, facts in about.items():
        for sampler, listed in {"as asked": facts.get("floors", ()), **facts.get("by_sampler", {})}.items():
            values = {one["name"]: _rounded(one["balanced_accuracy"]) for one in listed}
            lines.append({"negatives": sampler, "dataset": dataset, **values})
    return pl.DataFrame(lines, infer_schema_length=None)


def _shown(cells: Sequence[Cell]) -> float | None:
    value = cells[0].value if cells else None
    return None if value is None else _rounded(100 * value)


def _rounded(percent: float | None) -> float | None:
    """Return a figure as tables for people print it; the full one is in the cells."""
    return None if percent is None else round(percent, 1)


def _specimens(path: Path, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the pictures before and after a paste that were kept, with what was answered to both."""
    kept = rows.filter(pl.col("before").is_not_null() & pl.col("after").is_not_null())
    base = {r["question_id"]: r["answer"] for r in rows.filter(pl.col("variant") == "base").iter_rows(named=True)}
    wanted = ("question_id", "anatomy", "finding", "donor", "residue_hard", "before", "after", "answer")
    return [
        {"model": path[0], "dataset": path[1], "base": base.get(r["question_id"]), **{name: r[name] for name in wanted}}
        for r in kept.iter_rows(named=True)
    ]


def _facts(label: str, card: Any) -> ModelFacts:
    return ModelFacts(
        label=label,
        title=getattr(card, "title", ""),
        kind=getattr(card, "kind", None),
        twin_of=getattr(card, "twin_of", None),
        seen=dict(getattr(card, "seen", {})),
        unverified=getattr(card, "unverified", None) or None,
    )


def _notes(about: Mapping[str, Any]) -> list[str]:
    notes = [f"{dataset}: {facts['statement']}" for dataset, facts in about.items() if facts.get("statement")]
    notes.append("closed questions: a non-answer is wrong; open ones: a normal region is the label 'No finding'")
    notes.append("TPT and VPT: percent of a model's own rightful yes that turns into no; undefined without any")
    return notes
