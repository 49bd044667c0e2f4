"""The report of CXReasonDial: scores beside what sees nothing, and dialogues as conversations with their evidence."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from medground.reporting.composition import Composition, Section
from medground.reporting.plain import compose as plain
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images

PHANTOM = "dialogue-phantom-"
"""Dialogues whose pictures are drawn here, and may be shown to anybody."""
WIDTH = 256
"""Of a drawn picture, in pixels."""
MOST = 6
"""Pictures of a page at most: each is drawn and measured again."""

_SIGNS = {1: "yes", 0: "no", None: "undecided"}
_WORDS = {"coverage": "covered", "faithfulness": "faithful"}


def compose(runs: Sequence[Run], images: Images) -> Composition:
    """Return the tables of every run, then its dialogues."""
    tables = plain(runs, images)
    sections = list(tables.sections)
    summary, left = [], MOST
    for number, (run, name) in enumerate(zip(runs, unique_names(runs), strict=True)):
        summary += [
            (_SIGN.get(verdict.answer, "undecided"), f"{verdict.model}, {verdict.dataset}: {verdict.because}")
            for verdict in run.summary.verdicts
        ]
        shown = []
        for who, turns in run.data["dialogues"].items():
            dialogues, used = _dialogues(turns, left if images != "no" else 0)
            left -= used
            shown.append((who, dialogues, _tried(run.data["canaries"].get(who, {}))))
        title = f"Dialogues of {name}" if len(runs) > 1 else "Dialogues"
        sections.append(Section(f"dialogues-{number}", title, "cxreasondial/dialogues.html", {"shown": shown}))
    readings = sorted({run.summary.reading for run in runs})
    facts = [("Judge", ", ".join(readings))]
    if len(readings) > 1:
        facts.append(
            ("Not comparable", "These runs were judged by different judges; their figures stay in tables apart.")
        )
    return Composition("Dialogues (CXReasonDial)", summary, facts, sections)


_SIGN = {"yes": "yes", "in part": "partly", "no": "no"}


def _tried(canaries: Mapping[str, int]) -> str:
    if not canaries.get("tried"):
        return ""
    return f"Attacks on the judge: {canaries['tried']} tried, {canaries['changed']} changed a ruling."


def _dialogues(turns: Sequence[Mapping[str, Any]], left: int) -> tuple[list[tuple[str, list[dict[str, Any]]]], int]:
    out, used = [], 0
    for name, group in groupby(turns, key=lambda turn: turn["dialogue"]):
        shown = []
        for turn in group:
            picture = ""
            if used < left and "visual" in turn["evidence_types"]:
                picture = _picture(name, turn["tasks"][turn["evidence_types"].index("visual")])
                used += bool(picture)
            shown.append(_turn(turn, picture))
        out.append((name, shown))
    return out, used


def _turn(turn: Mapping[str, Any], picture: str) -> dict[str, Any]:
    verdicts = [(_SIGNS[turn[key]], _WORDS[key]) for key in ("faithfulness", "coverage")]
    return {
        "query": turn["query"],
        "reply": turn["reply"] or "(no reply)",
        "evidence": turn["evidence"],
        "verdicts": verdicts if turn["judge_status"] != "skipped" else [],
        "reason": turn["reason"],
        "steps": _steps(turn["trace"]),
        "picture": picture,
    }


def _steps(trace: str) -> list[str]:
    try:
        steps = json.loads(trace) if trace else []
    except ValueError:
        return []
    return [
        f"{step.get('task', '')}, {step.get('evidence_type', '')}: {step.get('reason') or step.get('status', '')}"
        for step in steps
        if isinstance(step, dict)
    ]


def _picture(dialogue: str, task: str) -> str:
    """The measurement drawn on a phantom, as a data URL; empty for other pictures."""
    if not dialogue.startswith(PHANTOM):
        return ""
    from PIL import Image

    from medground.benchmarks.cxreasondial.phantoms import Phantoms
    from medground.tools import tool
    from medground.tools.overlay import overlay
    from medground.worlds.phantom.drawing import draw

    case_id, world = dialogue.removeprefix("dialogue-"), Phantoms(size=WIDTH)
    anatomy = world.anatomy(case_id)
    pixels = draw(world.scene(case_id), WIDTH).pixels
    drawn = overlay(pixels, tool(task).measure(anatomy), anatomy)
    buffer = io.BytesIO()
    Image.fromarray(drawn).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
