"""From rows to cells, verdicts and tables: by model, history mode, task, turn and floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.cxreasondial.compare import judged_turns
from medground.benchmarks.cxreasondial.judges import compared
from medground.benchmarks.cxreasondial.scores import Judged, dialogue_scores, hallucination, identity
from medground.benchmarks.cxreasondial.specs import SPECS
from medground.benchmarks.results import Cell, ModelFacts, Summary, Verdict
from medground.errors import MetricError
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.decide import DEFAULTS, Decision, Rule, decide_beside, hardest, rule_of
from medground.metrics.differences import compare_means
from medground.metrics.inference import Estimate, estimate_mean

NAME = "cxreasondial"
Floors = Mapping[str, Sequence[Judged]]


@dataclass(frozen=True)
class Part:
    """One model on one set of dialogues, with its rows."""

    model: str
    dataset: str
    reading: str
    rows: pl.DataFrame

    @property
    def turns(self) -> list[Judged]:
        """The verdicts, turn by turn."""
        return judged_turns(self.rows)


def summarise(
    rows: Mapping[tuple[str, ...], pl.DataFrame],
    judged_by: tuple[str, Mapping[str, Any]],
    models: Sequence[ModelFacts],
    floors: Floors,
    notes: Sequence[str],
    rules: Mapping[str, Rule] = DEFAULTS,
) -> Summary:
    """Summarise the rows of every task, by (model, dialogues).

    Args:
        rows: of every task, by its path.
        judged_by: name of the reading, and all that its judge consists of.
        models: facts of the models.
        floors: repliers that see nothing, judged by the rules.
        notes: what a reader must know.
        rules: margins and minima by family of metrics.

    Raises:
        MetricError: the three parts of faithfulness do not make 1.
    """
    reading, judge = judged_by
    parts = [Part(path[0], path[1], reading, frame) for path, frame in rows.items() if frame.height]
    cells: list[Cell] = []
    verdicts: list[Verdict] = []
    for part in parts:
        own, verdict = _part(part, floors, rules)
        cells += own
        verdicts += verdict
    cells += _copied_not_seen(parts)
    tables = {"scores": _table(cells), "repliers": _floor_table(floors)} if cells else {}
    agreeing = {(part.model, part.dataset): compared(part.rows) for part in parts}
    if any(agreeing.values()):
        tables["judges"] = pl.DataFrame(
            [{"Model": m, "Dialogues": d, **c.line()} for (m, d), many in agreeing.items() for c in many]
        )
        notes = [*notes, *dict.fromkeys(c.warning() for many in agreeing.values() for c in many if c.warning())]
    data = {
        "judge": dict(judge),
        "identities": {f"{p.model} / {p.dataset}": _identity(p) for p in parts},
        "canaries": {f"{p.model} / {p.dataset}": _canaries(p) for p in parts},
        "dialogues": {f"{p.model} / {p.dataset}": _shown(p) for p in parts},
        "asked_by": {f"{p.model} / {p.dataset}": _askers(p) for p in parts},
    }
    return Summary(cells, verdicts, tables, data, NAME, reading, tuple(models), SPECS, notes=tuple(notes))


def _part(part: Part, floors: Floors, rules: Mapping[str, Rule]) -> tuple[list[Cell], list[Verdict]]:
    turns = part.turns
    floor = {name: _headlines(f) for name, f in floors.items()}
    best = {metric: _best([values[metric] for values in floor.values()]) for metric in _HEADLINES}
    cells = [*_turn_cells(part, turns, "all", "", best), *_dialogue_cells(part, turns, best)]
    for task in sorted({task for tasks in part.rows["tasks"].to_list() for task in tasks}):
        chosen = [t for t, tasks in zip(turns, part.rows["tasks"].to_list(), strict=True) if task in tasks]
        cells += _turn_cells(part, chosen, "task", task)
    for index in sorted(set(part.rows["turn"].to_list())):
        cells += _turn_cells(part, [t for t in turns if t.turn == index], "turn", str(index + 1))
    for known, group in ((True, "in the history"), (False, "new")):
        chosen = [t for t, k in zip(turns, part.rows["answer_in_history"].to_list(), strict=True) if k is known]
        cells += _turn_cells(part, chosen, "evidence", group) if chosen else []
    cells += [
        _cell(part, metric, _constant(values[of], len(floors[name])), "floor", name)
        for name, values in floor.items()
        for metric, of in zip(("floor_faithfulness", "floor_average", "floor_strict"), _HEADLINES, strict=True)
    ]
    cells += [_cell(part, f"kappa_{c.metric}", c.kappa, "judges", c.names, c.missing) for c in compared(part.rows)]
    return cells, _verdicts(part, turns, floors, cells, rules)


def _best(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


_AVERAGE, _STRICT = "average_success", "strict_success"
_HEADLINES = ("faithfulness", _AVERAGE, _STRICT)


def _headlines(turns: Sequence[Judged]) -> dict[str, float | None]:
    from medground.benchmarks.cxreasondial.scores import metric_share

    scores = dialogue_scores(turns)
    return {
        "faithfulness": metric_share(turns, "faithfulness").value,
        "average_success": scores.average,
        "strict_success": scores.strict.value,
    }


def _turn_cells(
    part: Part, turns: Sequence[Judged], scope: str, group: str, floor: Mapping[str, float | None] | None = None
) -> list[Cell]:
    by = _by([t.dialogue for t in turns])
    names = ["faithfulness", "coverage", "hallucination"]
    names += ["dti", "eti"] if any("dti" in t.applicable for t in turns) else []
    cells = []
    for name in names:
        applies = [("coverage" if name == "hallucination" else name) in t.applicable for t in turns]
        given = [t.hallucinated if name == "hallucination" else t.verdict(name) for t in turns]
        values = np.array([np.nan if v is None else v for v in given], dtype=np.float64)
        estimate = estimate_mean(values, by) if any(applies) else Estimate(None, reason="no turn to which it applies")
        failed = sum(a and bool(np.isnan(v)) for a, v in zip(applies, values, strict=True))
        cells.append(_cell(part, name, estimate, scope, group, failed, (floor or {}).get(name)))
    return cells


def _dialogue_cells(part: Part, turns: Sequence[Judged], floor: Mapping[str, float | None]) -> list[Cell]:
    scores, quoted = dialogue_scores(turns), dialogue_scores(turns, "all_turns")
    new = {(r["dialogue"], r["turn"]) for r in part.rows.iter_rows(named=True) if not r["answer_in_history"]}
    first = dialogue_scores([t for t in turns if (t.dialogue, t.turn) in new])
    names = sorted({t.dialogue for t in turns})
    average = [scores.per_dialogue.get(name, np.nan) for name in names]
    by = _by(names)
    cells = [
        _cell(
            part,
            "average_success",
            estimate_mean(average, by),
            floor=floor["average_success"],
            failed=len(scores.undecided),
        ),
        _cell(
            part,
            "strict_success",
            _strict(turns, names, by),
            floor=floor["strict_success"],
            failed=len(scores.strict_undecided),
        ),
        _cell(part, "strict_first", _constant(first.strict.value, first.strict.used)),
        _cell(part, "average_all_turns", _constant(quoted.average, len(quoted.per_dialogue))),
    ]
    copied = part.rows["copied"].to_numpy().astype(np.float64)
    return [*cells, _cell(part, "copied", estimate_mean(copied, _by(part.rows["dialogue"].to_list())))]


def _strict(turns: Sequence[Judged], names: Sequence[str], by: Clusters) -> Estimate:
    from medground.benchmarks.cxreasondial.scores import strict_success

    own: dict[str, list[int | None]] = {}
    for turn in turns:
        if turn.applicable:
            own.setdefault(turn.dialogue, []).append(turn.success())
    whole = [strict_success(own[name], "complete") if name in own else None for name in names]
    return estimate_mean([np.nan if w is None else w for w in whole], by)


def _verdicts(
    part: Part, turns: Sequence[Judged], floors: Floors, cells: Sequence[Cell], rules: Mapping[str, Rule]
) -> list[Verdict]:
    """Faithful beyond what can be had without looking, on the same turns, by the one decision rule."""
    headline = next(c for c in cells if c.metric == "faithfulness" and c.scope == "all")
    companion = next(c for c in cells if c.metric == "average_success" and c.scope == "all")
    if headline.value is None or not floors:
        return []
    spec = SPECS[0]
    rule = rule_of(spec, rules)
    own = {(t.dialogue, t.turn): t.verdict("faithfulness") for t in turns if "faithfulness" in t.applicable}
    decisions: dict[str, Decision] = {}
    for name, floor in floors.items():
        pairs = [(key, value, own[key]) for f in floor if (key := (f.dialogue, f.turn)) in own
                 and (value := f.verdict("faithfulness")) is not None and own[key] is not None]  # fmt: skip
        if not pairs:
            continue
        first = [float(mine) for _, _, mine in pairs if mine is not None]
        difference = compare_means(first, [float(v) for _, v, _ in pairs], _by([key[0] for key, _, _ in pairs]))
        decisions[name] = decide_beside(difference, spec, rule)
    if not decisions:
        return []
    decision = hardest(list(decisions.values()))
    beside = next(name for name, own_decision in decisions.items() if own_decision is decision)
    floor_cell = next(c for c in cells if c.scope == "floor" and c.group == beside and c.metric == "floor_faithfulness")
    return [
        Verdict(
            benchmark=NAME,
            question="dialogue",
            model=part.model,
            answer=decision.answer,
            because=f"against {beside}: {decision.because}",
            reading=part.reading,
            dataset=part.dataset,
            margin=rule.margin,
            roles={"headline": headline, "floor": floor_cell, "companion": companion},
            notes=("judged",),
        )
    ]


def _copied_not_seen(parts: Sequence[Part]) -> list[Cell]:
    """What reference history adds to faithfulness, turn by turn, for models that were asked in both modes."""
    cells = []
    for shown in parts:
        base, _, mode = shown.dataset.rpartition(", ")
        other = next((p for p in parts if p.model == shown.model and p.dataset == f"{base}, without_gt"), None)
        if mode != "with_gt" or other is None:
            continue
        own, given = _faithful(other), _faithful(shown)
        keys = [key for key in given if key in own]
        first, second = (
            np.array([np.nan if p[k] is None else p[k] for k in keys], dtype=np.float64) for p in (given, own)
        )
        added = compare_means(first, second, _by([dialogue for dialogue, _ in keys]), draws=0)
        cells.append(_cell(replace(shown, dataset=base), "copied_not_seen", added))
    return cells


def _faithful(part: Part) -> dict[tuple[str, int], int | None]:
    """Turn -> whether it is faithful, of the turns that are judged."""
    turns = [turn for turn in part.turns if "faithfulness" in turn.applicable]
    return {(turn.dialogue, turn.turn): turn.verdict("faithfulness") for turn in turns}


def _identity(part: Part) -> dict[str, Any]:
    parts = identity(part.turns)
    if parts.total is not None and abs(parts.total - 1.0) > 1e-9:
        raise MetricError(
            "the parts of faithfulness do not make 1", where=f"{part.model} on {part.dataset}", got=parts.total
        )
    return {"turns": parts.turns, "sum": parts.total, "hallucination": hallucination(part.turns).value}


def _canaries(part: Part) -> dict[str, int]:
    return {"tried": int(part.rows["canaries"].sum()), "changed": int(part.rows["canaries_changed"].sum())}


def _askers(part: Part) -> dict[str, int]:
    """Whose words the queries were -> turns."""
    counts = part.rows["asked_by"].value_counts(sort=True).sort("asked_by")
    return dict(zip(counts["asked_by"].to_list(), counts["count"].to_list(), strict=True))


def _shown(part: Part, most: int = 3) -> list[dict[str, Any]]:
    """A few dialogues as conversations: query, reply, evidence and verdict of each turn."""
    keep = list(dict.fromkeys(part.rows["dialogue"].to_list()))[:most]
    columns = ["dialogue", "turn", "tasks", "evidence_types", "query", "reply", "evidence", "coverage", "faithfulness",
               "reason", "judge_status", "plan", "trace"]  # fmt: skip
    return part.rows.filter(pl.col("dialogue").is_in(keep)).select(columns).to_dicts()


def _by(names: Sequence[str]) -> Clusters:
    return clusters(list(names), list(range(len(names))))


def _constant(value: float | None, n: int) -> Estimate:
    return Estimate(value, n=n, reason=None if value is not None else "nothing to rest on")


def _cell(
    part: Part,
    metric: str,
    estimate: Estimate,
    scope: str = "all",
    group: str = "",
    failed: int = 0,
    floor: float | None = None,
) -> Cell:
    value = None if estimate.value is None else float(estimate.value)
    return Cell(
        benchmark=NAME,
        model=part.model,
        metric=metric,
        reading=part.reading,
        dataset=part.dataset,
        scope=scope,
        group=group,
        value=value,
        low=None if value is None or estimate.low is None else float(estimate.low),
        high=None if value is None or estimate.low is None or estimate.high is None else float(estimate.high),
        n=estimate.n,
        undefined=max(estimate.n_undefined - failed, 0),
        failed=failed,
        floor=floor,
        reason=None if value is not None else (estimate.reason or "undefined"),
    )


def _table(cells: Sequence[Cell]) -> pl.DataFrame:
    """One line a model and set of dialogues, the metrics beside each other, in percent."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        if cell.scope == "all" and cell.metric in {s.name: s for s in SPECS}:
            spec = next(s for s in SPECS if s.name == cell.metric)
            line = lines.setdefault((cell.model, cell.dataset), {"Model": cell.model, "Dialogues": cell.dataset})
            line[spec.title] = None if cell.value is None else round(cell.value * spec.scale, 2)
    titles = ["Model", "Dialogues", *(s.title for s in SPECS if any(s.title in line for line in lines.values()))]
    return pl.DataFrame([{t: line.get(t) for t in titles} for line in lines.values()], infer_schema_length=None)


def _floor_table(floors: Floors) -> pl.DataFrame:
    def percent(value: float | None) -> float | None:
        return None if value is None else round(100 * value, 2)

    return pl.DataFrame(
        [
            {"Replier": name, **{metric: percent(v) for metric, v in _headlines(turns).items()}, "Turns": len(turns)}
            for name, turns in floors.items()
        ]
    )
