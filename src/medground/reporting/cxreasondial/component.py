"""The report of CXReasonDial: scores beside what sees nothing, and dialogues as conversations with their evidence."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from medground.reporting.composition import Composition, Section
from medground.reporting.cxreasondial.moments import moments
from medground.reporting.cxreasondial.tables import APART, by_judge, called, grouped, scores
from medground.reporting.moments import thumbnail
from medground.reporting.plain import compose as plain
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images

PHANTOM = "dialogue-phantom-"
"""Dialogues whose pictures are drawn here, and may be shown to anybody."""
WIDTH = 256
"""Of a phantom's picture where the run file does not say, in pixels."""
MOST = 12
"""Pictures of a page at most: each is drawn, and a visual one measured, again."""
_OWN = ("scores", "repliers")
"""Tables of the run that stand here with their intervals."""
_SIGN = {"yes": "yes", "in part": "partly", "no": "no"}
_MARKS = {
    "faithfulness": {1: "\u2713 faithful", 0: "\u2717 not faithful", None: "? faithfulness undecided"},
    "coverage": {1: "\u2713 covered", 0: "\u2717 not covered", None: "? coverage undecided"},
}


def compose(runs: Sequence[Run], images: Images) -> Composition:
    """Return the scores of every judge apart, what the runs' tables hold beside them, and the dialogues."""
    named = list(zip(runs, unique_names(runs), strict=True))
    held = [(run, name) for run, name in named if run.data.get("judge")]
    judges = by_judge(held)
    apart = [APART.format(judges="; ".join(judges))] if len(judges) > 1 else []
    facts = [("Judge", judge) for judge in judges] + [("Not comparable", line) for line in apart]
    facts += [("Note", note) for note in dict.fromkeys(note for run in runs for note in run.summary.notes)]
    sections = [
        Section(
            f"dialogue-scores-{number}",
            f"Scores, judged by {own[0][0].summary.reading}" if len(judges) > 1 else "Scores",
            "tables.html",
            tables=[
                scores(own, "Every model, with intervals by dialogue", apart),
                *(table for run, _ in own for table in grouped(run)),
            ],
        )
        for number, own in enumerate(judges.values())
    ]
    sections += [section for section in map(_others, plain(runs, images).sections) if section.tables]
    left = [MOST if images != "no" else 0]
    sections += [
        Section(
            f"dialogues-{number}",
            f"Dialogues of {name}" if len(runs) > 1 else "Dialogues",
            "cxreasondial/dialogues.html",
            {"shown": [_shown(run, who, turns, left) for who, turns in run.data["dialogues"].items()]},
        )
        for number, (run, name) in enumerate(held)
    ]
    best_and_worst = [m for run, _ in held for m in moments(run.data["dialogues"], _beside(run, images))]
    return Composition("Dialogues (CXReasonDial)", _summary(named), facts, sections, moments=best_and_worst)


def _beside(run: Run, images: Images) -> Callable[[Mapping[str, Any]], str]:
    """Return what gives the picture that a turn is about, small; only drawn ones are shown."""
    width = int(run.config.get("benchmark", {}).get("size", WIDTH))

    def picture(turn: Mapping[str, Any]) -> str:
        address, _ = _picture(turn["dialogue"], None, width, [0 if images == "no" else 1])
        return thumbnail(address.partition(",")[2]) if address else ""

    return picture


def _summary(named: Sequence[tuple[Run, str]]) -> list[tuple[str, str]]:
    return [
        (_SIGN.get(v.answer, "undecided"), f"{v.model}, {called(v.dataset)}: {v.because}.")
        for run, _ in named
        for v in run.summary.verdicts
    ]


def _others(section: Section) -> Section:
    """The run's own tables, without those that are shown with their intervals."""
    kept = [table for table in section.tables if table.title.lower() not in _OWN]
    return Section(section.anchor, section.title, section.template, section.content, kept, section.figures)


def _shown(run: Run, who: str, turns: Sequence[Mapping[str, Any]], left: list[int]) -> tuple[str, list[Any], list[str]]:
    model, _, dataset = who.partition(" / ")
    width = int(run.config.get("benchmark", {}).get("size", WIDTH))
    dialogues = []
    for name, group in groupby(turns, key=lambda turn: turn["dialogue"]):
        about = _picture(name, None, width, left)
        dialogues.append((name, about[0], [_turn(turn, model, width, left) for turn in group]))
    return f"{model}: {called(dataset)}", dialogues, _remarks(run, who)


def _remarks(run: Run, who: str) -> list[str]:
    tried = run.data["canaries"].get(who, {})
    asked = {by: count for by, count in run.data.get("asked_by", {}).get(who, {}).items() if by != "dialogue"}
    out = []
    if tried.get("tried"):
        out.append(f"Attacks on the judge: {tried['tried']} tried, {tried['changed']} changed a ruling.")
    if asked:
        out.append("Queries by: " + "; ".join(f"{by} {count}" for by, count in asked.items()) + ".")
    return out


def _turn(turn: Mapping[str, Any], model: str, width: int, left: list[int]) -> dict[str, Any]:
    judged = turn["judge_status"] != "skipped"
    faithful = turn["faithfulness"] if judged else None
    visual = "visual" in turn["evidence_types"]
    task = turn["tasks"][turn["evidence_types"].index("visual")] if visual else None
    picture, caption = _picture(turn["dialogue"], task, width, left) if visual else ("", "")
    return {
        "name": model,
        "query": turn["query"],
        "reply": turn["reply"] or "(no reply)",
        "evidence": turn["evidence"] if judged else "",
        "marks": [words[turn[key]] for key, words in _MARKS.items()] if judged else [],
        "sign": "undecided" if faithful is None else "yes" if faithful else "no",
        "reason": turn["reason"],
        "steps": _steps(turn["trace"]),
        "picture": picture,
        "caption": caption,
    }


def _steps(trace: str) -> list[str]:
    """What an agent did, one line a tool call."""
    try:
        steps = json.loads(trace) if trace else []
    except ValueError:
        return []
    return [
        f"Tool: {str(step.get('task', '')).replace('_', ' ')} ({step.get('evidence_type', '')}), "
        f"{step.get('reason') or step.get('status', '')}"
        for step in steps
        if isinstance(step, dict)
    ]


def _picture(dialogue: str, task: str | None, width: int, left: list[int]) -> tuple[str, str]:
    """A phantom's picture, or one task's measurement drawn on it, as a data URL with its caption."""
    if not dialogue.startswith(PHANTOM) or left[0] < 1:
        return "", ""
    left[0] -= 1
    return _drawn(dialogue.removeprefix("dialogue-"), task, width)


@cache
def _drawn(case_id: str, task: str | None, width: int) -> tuple[str, str]:
    import numpy as np
    from PIL import Image

    from medground.benchmarks.cxreasondial.phantoms import Phantoms
    from medground.tools import tool
    from medground.tools.overlay import caption, overlay
    from medground.worlds.phantom.drawing import draw

    world, words = Phantoms(size=width), ""
    pixels = draw(world.scene(case_id), width).pixels
    if task is None:
        drawn = pixels if pixels.dtype == np.uint8 else (pixels * 255).round().astype(np.uint8)
    else:
        anatomy = world.anatomy(case_id)
        measured = tool(task).measure(anatomy)
        drawn, words = overlay(pixels, measured, anatomy, captioned=False), caption(measured)
    buffer = io.BytesIO()
    Image.fromarray(drawn).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode(), words
