"""What two models of CXReasonDial are compared on: the same turns and dialogues, under the same judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Sample, side_by_side
from medground.benchmarks.cxreasondial.scores import AGENT_METRICS, Judged, dialogue_scores, strict_success
from medground.benchmarks.cxreasondial.specs import SPECS, STAGES
from medground.benchmarks.cxreasondial.stages import PATHS

if TYPE_CHECKING:
    from medground.benchmarks.cxreasondial import CXReasonDial

_SPECS = {spec.name: spec for spec in (*SPECS, *STAGES)}
_ABOUT = pl.concat_str(
    pl.col("tasks").list.join(", "), pl.col("evidence_types").list.join(", "), "evidence", separator="\n"
)


def compare(benchmark: CXReasonDial) -> Comparable:
    """Return how a run is compared: one judge, one protocol, one set of dialogues; clusters are patients."""
    staged = benchmark.protocol == "cxreasonbench"
    success = "success of whole dialogues is compared between agents, or between models that only reply"
    return Comparable(
        settings={
            "judge": benchmark.judges,
            "protocol": benchmark.protocol,
            "dialogues": benchmark.source.identity(),
            "longest reply": benchmark.options.max_new_tokens,
            "turns that are not asked": benchmark.options.skipped,
        },
        matched=side_by_side(walks if staged else turns),
        notes=benchmark.notes() if staged else (success, *benchmark.notes()),
        rules=benchmark.rules,
        seed=benchmark.seed,
    )


def turns(side: Contender) -> Iterator[Sample]:
    """Yield the verdicts on single turns, then the success of dialogues."""
    rows = side.rows.with_columns(patient=_patient())
    table = rows.select(
        item=pl.concat_str("dialogue", pl.lit(" turn "), "turn"), patient="patient", group=pl.lit(""), about=_ABOUT
    )
    both = (pl.col("coverage") == 1) & (pl.col("faithfulness") == 0)
    unknown = pl.col("coverage").is_null() | pl.col("faithfulness").is_null()
    values = {metric: pl.col(metric) for metric in ("faithfulness", "coverage", "dti", "eti", "copied")}
    values["hallucination"] = pl.when(unknown).then(None).otherwise(both)
    for metric, value in values.items():
        applies = rows["copied"].is_not_null()
        if metric != "copied":
            applies = rows["applicable"].list.contains("coverage" if metric == "hallucination" else metric)
        if applies.any():
            column = rows.select(value.cast(pl.Float64)).to_series()
            yield Sample(_SPECS[metric], table.with_columns(value=column).filter(applies))
    yield from _dialogues(rows)


def _dialogues(rows: pl.DataFrame) -> Iterator[Sample]:
    """Yield the success of whole dialogues; the metrics that it takes differ between agents and models."""
    patients = dict(rows.select("dialogue", "patient").iter_rows())
    for (mode,), own in rows.group_by(["mode"], maintain_order=True):
        judged = judged_turns(own)
        shares = dialogue_scores(judged).per_dialogue
        by_dialogue: dict[str, list[int | None]] = {}
        for turn in judged:
            if turn.applicable:
                by_dialogue.setdefault(turn.dialogue, []).append(turn.success())
        names = sorted(by_dialogue)
        strict = [strict_success(by_dialogue[name], "complete") for name in names]
        for metric, values in (("average_success", [shares.get(n) for n in names]), ("strict_success", strict)):
            columns = {"item": names, "patient": [patients[n] for n in names], "group": [""] * len(names)}
            table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
            value = pl.Series([None if v is None else float(v) for v in values], dtype=pl.Float64)
            yield Sample(_SPECS[metric], table.with_columns(value=value), method=str(mode))


def judged_turns(rows: pl.DataFrame) -> list[Judged]:
    """Return the verdicts, turn by turn."""
    return [
        Judged(r["dialogue"], r["turn"], tuple(r["applicable"]), {m: r[m] for m in AGENT_METRICS})
        for r in rows.iter_rows(named=True)
    ]


def walks(side: Contender) -> Iterator[Sample]:
    """Yield, a path of the staged protocol, completed walks and stated values that fit, by task."""
    for path in PATHS:
        rows = side.rows.filter(pl.col("path") == path)
        table = rows.select(item=pl.concat_str("case", pl.lit(" "), "task"), patient="case", group="task", about="kind")
        for metric, column in (("completion", "completed"), ("alignment", "aligned")):
            yield Sample(
                _SPECS[metric], table.with_columns(value=rows[column].cast(pl.Float64)), groups="task", method=path
            )


def _patient() -> pl.Expr:
    known = pl.col("patient").is_not_null() & (pl.col("patient") != "")
    return pl.when(known).then("patient").otherwise(pl.concat_str(pl.lit("dialogue "), "dialogue"))
