"""What is kept of a turn: verdicts and how they came about, one row a turn."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.cxreasondial.contract import Dialogue, Turn
from medground.benchmarks.cxreasondial.plans import Plan, read_plan, record, task_identified, type_identified
from medground.benchmarks.cxreasondial.scores import AGENT_METRICS, MODEL_METRICS
from medground.errors import DataError
from medground.judges.base import Landmark, Overlay, Ruling
from medground.models.base import Reply

_COLUMNS: dict[str, Any] = {
    "dialogue": pl.String,
    "patient": pl.String,
    "turn": pl.Int32,
    "history": pl.String,
    "mode": pl.String,
    "kind": pl.String,
    "tasks": pl.List(pl.String),
    "evidence_types": pl.List(pl.String),
    "answer_in_history": pl.Boolean,
    "applicable": pl.List(pl.String),
    "dti": pl.Int8,
    "eti": pl.Int8,
    "coverage": pl.Int8,
    "faithfulness": pl.Int8,
    "judge_status": pl.String,
    "judge_source": pl.String,
    "reason": pl.String,
    "mismatches": pl.List(pl.String),
    "by_judge": pl.String,
    "copied": pl.Int8,
    "canaries": pl.Int32,
    "canaries_changed": pl.Int32,
    "outcome": pl.String,
    "asked_by": pl.String,
    "query": pl.String,
    "reply": pl.String,
    "plan": pl.String,
    "trace": pl.String,
    "evidence": pl.String,
}
SCHEMA = pl.Schema(_COLUMNS)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def applicable(turn: Turn, *, agent: bool) -> tuple[str, ...]:
    """The metrics that apply to a turn: planning of agents alone, judging where something was asked."""
    if agent:
        return AGENT_METRICS if turn.requests else ("dti", "eti")
    return MODEL_METRICS if turn.requests and not turn.visual else ()


def plan_of(reply: Reply) -> Plan | None:
    """The plan that an agent reports beside its reply; None where it reports none that is valid."""
    if not isinstance(reply.data, Mapping) or "plan" not in reply.data:
        return None
    try:
        return read_plan(reply.data["plan"])
    except DataError:
        return None


def overlays_of(reply: Reply) -> tuple[Overlay, ...]:
    """What an agent drew, read with care: it is a model's output."""
    drawn = reply.data.get("overlays") if isinstance(reply.data, Mapping) else None
    out = []
    for entry in drawn if isinstance(drawn, Sequence) and not isinstance(drawn, str) else ():
        try:
            points = tuple(Landmark(str(p["name"]), float(p["x"]), float(p["y"])) for p in entry.get("landmarks", ()))
            out.append(Overlay(str(entry["task"]), points))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return tuple(out)


def copied(turn: Turn, reply: str, history: Sequence[str]) -> int | None:
    """Whether a reply states a number of the history that is wrong for this turn; None without such a history."""
    earlier = {text for line in history for text in _NUMBER.findall(line)}
    if not earlier or not turn.requests:
        return None
    right = [
        (float(q.value), q.tolerance or 0.0)
        for r in turn.requests
        for q in r.evidence.measurements
        if isinstance(q.value, (int, float))
    ]
    limits = _NUMBER.findall(" ".join(str(r.evidence.criterion.thresholds) for r in turn.requests))
    for text in _NUMBER.findall(reply):
        value = float(text)
        own = any(abs(value - reference) <= max(tolerance, 0.01 * abs(reference)) for reference, tolerance in right)
        if text in earlier and not own and "." in text and all(abs(value - float(t)) > 1e-9 for t in limits):
            return 1
    return 0


def row(
    dialogue: Dialogue,
    turn: Turn,
    reply: Reply,
    *,
    history: str,
    agent: bool,
    ruling: Ruling,
    by_judge: Mapping[str, Ruling] | None = None,
    shown: Sequence[str] = (),
    canaries: tuple[int, int] = (0, 0),
    asked_by: str = "dialogue",
) -> dict[str, Any]:
    """Make the row of one turn that was asked.

    Args:
        dialogue: that it belongs to.
        turn: that was asked.
        reply: to it.
        history: the mode.
        agent: whether planning applies.
        ruling: of the judge; ignored where judging does not apply.
        by_judge: what each judge said of the reply, where several judged.
        shown: assistant turns that stood in the history.
        canaries: attacks on the judge that were tried, and rulings that they changed.
        asked_by: whose words the query is.
    """
    metrics = applicable(turn, agent=agent)
    plan = plan_of(reply) if agent else None
    judged = "coverage" in metrics
    identified = agent and reply.outcome == "ok"
    empty: Plan = frozenset()
    return {
        "dialogue": dialogue.id,
        "patient": dialogue.patient_id,
        "turn": turn.index,
        "history": history,
        "mode": "agent" if agent else "model",
        "kind": turn.kind,
        "tasks": [request.task for request in turn.requests],
        "evidence_types": [request.evidence_type for request in turn.requests],
        "answer_in_history": turn.answer_in_history,
        "applicable": list(metrics),
        "dti": task_identified(turn.plan, empty if plan is None else plan) if identified else None,
        "eti": type_identified(turn.plan, empty if plan is None else plan) if identified else None,
        "coverage": ruling.coverage if judged else None,
        "faithfulness": ruling.faithfulness if judged else None,
        "judge_status": ruling.status if judged else "skipped",
        "judge_source": ruling.source if judged else "",
        "reason": ruling.reason if judged else "nothing was asked",
        "mismatches": list(ruling.mismatches),
        "by_judge": json.dumps({name: [told.coverage, told.faithfulness] for name, told in (by_judge or {}).items()}),
        "copied": copied(turn, reply.text, shown),
        "canaries": canaries[0],
        "canaries_changed": canaries[1],
        "outcome": reply.outcome,
        "asked_by": asked_by,
        "query": turn.query,
        "reply": reply.text,
        "plan": json.dumps(record(plan)) if plan is not None else "",
        "trace": json.dumps(reply.data.get("trace", [])) if isinstance(reply.data, Mapping) else "",
        "evidence": turn.reference_reply or "",
    }


def lost(dialogue: Dialogue, turn: Turn, reason: str, *, history: str, agent: bool) -> dict[str, Any]:
    """The row of a turn about which nothing was said: every applicable verdict is undefined."""
    ruling = Ruling(None, None, "api_error", reason)
    return row(dialogue, turn, Reply("", "error", reason), history=history, agent=agent, ruling=ruling)
