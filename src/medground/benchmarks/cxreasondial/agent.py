"""An agent that measures: plan, tools, and a reply from what the tools returned.

It answers as a chat model does, so a run asks it like any other. It knows the case by the id of the picture that it is
shown, and measures on that case's own masks alone; it never looks at the pixels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from medground.benchmarks.cxreasondial.build import VIEW_UNKNOWN
from medground.benchmarks.cxreasondial.evidence import evidence_of, sentences
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.benchmarks.cxreasondial.planner import plan
from medground.benchmarks.cxreasondial.plans import Plan, read_plan, record
from medground.errors import DataError
from medground.identity import fingerprint_of
from medground.imaging.reading import Radiograph
from medground.judges.base import EVIDENCE_TYPES, Request
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply, ToolSpec, require
from medground.tools import TASKS, Anatomy, Folder, Masks, Measurement, Segmented, tool

PARTS = ("measurement", "criterion", "conclusion")
#: The one tool that a planning model is offered.
MEASURE = ToolSpec(
    "measure",
    "Measure one diagnostic task on the radiograph of this conversation. Call it once for each task and evidence type "
    "that the user's last message asks for; call nothing if it asks for none.",
    {
        "type": "object",
        "properties": {
            "task": {"type": "string", "enum": list(TASKS)},
            "evidence_type": {"type": "string", "enum": list(EVIDENCE_TYPES)},
        },
        "required": ["task", "evidence_type"],
        "additionalProperties": False,
    },
)
_SYSTEM = (
    "You plan measurements on a chest radiograph. Do not answer from your own knowledge or from the picture. "
    "diagnostic: value, criterion and conclusion in words. visual: the measurement drawn on the picture."
)


@dataclass(frozen=True)
class Step:
    """One tool call of a turn: what was measured, and what came of it."""

    task: str
    evidence_type: str
    status: str
    reason: str | None
    seconds: float
    output: str

    def record(self) -> dict[str, Any]:
        """The step as JSON-like data; how long it took is told, and is no part of any identity."""
        return {
            "task": self.task,
            "evidence_type": self.evidence_type,
            "status": self.status,
            "reason": self.reason,
            "output": self.output,
        }


class Agent:
    """Plans, measures and replies from the tools' output alone.

    Args:
        masks: a folder of masks, one folder a case (:class:`medground.tools.Folder`); by default phantoms are measured.
        segmenter: a model with ``masks(radiograph)`` that finds them in the picture instead, as ``{name: ...}``; view
            and landmarks then come from the folder's ``case.json``, where there is one.
        names: the segmenter's name of a structure -> the tools' name.
        planner: a chat model that can call tools, as ``{name: ...}``; by default rules plan.
        time_limit: seconds that the measurements of one turn may take.
    """

    name: ClassVar[str] = "cxreason_agent"
    parts: ClassVar[Mapping[str, str]] = {"planner": "model", "segmenter": "model"}
    info: ClassVar[ModelInfo] = ModelInfo(
        title="Measuring agent", kind="zero-shot", licence="part of medground", obtain="nothing; masks of the cases"
    )
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "pictures", "several_pictures", "draws"})

    def __init__(
        self,
        masks: Path | None = None,
        segmenter: Any = None,
        names: dict[str, str] | None = None,
        planner: Any = None,
        time_limit: float = 10.0,
    ) -> None:
        self._folder = None if masks is None else Folder(masks)
        self._planner = _built(planner, "reply", "the planner of the agent")
        self._segmenter = _built(segmenter, "masks", "the segmenter of the agent")
        self._names = names or {}
        self._limit = time_limit
        self._cached: tuple[tuple[str, int], Anatomy] | None = None

    @property
    def ledger(self) -> Any:
        """What was asked of a server, where a model behind one plans."""
        return getattr(self._planner, "ledger", None)

    def fingerprint(self) -> str:
        """Planner, tools and masks."""
        planner = self._planner.fingerprint() if self._planner is not None else "rules/1"
        masks = "phantoms" if self._folder is None else str(self._folder.root)
        if self._segmenter is not None:
            masks = fingerprint_of(self._segmenter.fingerprint(), self._names, masks)
        return fingerprint_of("cxreason_agent/1", planner, masks)

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Answer the last message of each conversation.

        ``Reply.data`` holds the plan, a trace of every step, and the overlays with their named points.
        """
        plans = self._plans(conversations, options)
        return [self._answer(c, p) for c, p in zip(conversations, plans, strict=True)]

    def _plans(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None
    ) -> list[tuple[Plan, str]]:
        if self._planner is None:
            return [(plan_of(conversation), "rules") for conversation in conversations]
        asked = [[Message("system", _SYSTEM), *_without_pictures(c)] for c in conversations]
        given = options or GenerationOptions()
        replies = self._planner.reply(asked, GenerationOptions(given.max_new_tokens, seed=given.seed, tools=(MEASURE,)))
        return [planned(reply) for reply in replies]

    def _answer(self, conversation: Sequence[Message], planned: tuple[Plan, str]) -> Reply:
        steps, how = planned
        if how.startswith("failed"):
            return Reply("", "error", how)
        try:
            anatomy = self._anatomy(_picture_of(conversation)) if steps else None
            trace, overlays, text = ([], [], []) if anatomy is None else self._measure(anatomy, sorted(steps))
        except DataError as error:
            return Reply("", "error", error.what)
        words = " ".join(text) or "That is not among what I can measure."
        data = {"plan": record(steps), "planner": how, "trace": [s.record() for s in trace], "overlays": overlays}
        return Reply(words, data=data)

    def _measure(
        self, anatomy: Anatomy, steps: Sequence[tuple[str, str]]
    ) -> tuple[list[Step], list[dict[str, Any]], list[str]]:
        started, trace, overlays, text = time.monotonic(), [], [], []
        for task, kind in steps:
            before = time.monotonic()
            measured = within(self._limit - (before - started), tool(task).measure, anatomy)
            seconds = time.monotonic() - before
            if measured is None:
                trace.append(Step(task, kind, "skipped", "time limit", seconds, ""))
                text.append(f"I ran out of time before measuring {task.replace('_', ' ')}.")
                continue
            if measured.status == "dropped":
                output = f"{task.replace('_', ' ').capitalize()} cannot be measured here ({measured.reason})."
            else:
                evidence = evidence_of(measured, anatomy.view)
                output = sentences(Request(task, kind, evidence, PARTS))
                if kind == "visual":
                    points = [{"name": p.name, "x": p.x, "y": p.y} for p in evidence.landmarks]
                    overlays.append({"task": task, "landmarks": points})
            trace.append(Step(task, kind, measured.status, measured.reason, seconds, output))
            text.append(output)
        return trace, overlays, text

    def _anatomy(self, picture: Radiograph) -> Anatomy:
        """The anatomy of the case that is shown, and of no other; a phantom's is made for the picture's width."""
        key = (picture.case_id, picture.size[0])
        if self._cached is None or self._cached[0] != key:
            case_id = picture.case_id.removesuffix(VIEW_UNKNOWN)
            if self._segmenter is not None:
                found = Segmented(self._segmenter, self._names, self._folder)
                anatomy = found.find(replace(picture, case_id=case_id))
            else:
                masks: Masks = self._folder or Phantoms(size=picture.size[0])
                anatomy = masks.anatomy(case_id)
            self._cached = key, replace(anatomy, view=None) if case_id != picture.case_id else anatomy
        return self._cached[1]


def within(seconds: float, call: Callable[[Anatomy], Measurement], anatomy: Anatomy) -> Measurement | None:
    """Return what a tool measures, or None where it takes longer; a tool that does is left behind, not waited for."""
    if seconds <= 0:
        return None
    done: list[Measurement | Exception] = []

    def run() -> None:
        try:
            done.append(call(anatomy))
        except Exception as error:
            done.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        return None
    if isinstance(done[0], Exception):
        raise done[0]
    return done[0]


def plan_of(conversation: Sequence[Message]) -> Plan:
    """Plan the last message by rules; earlier messages say what it may refer back to."""
    last: Plan = frozenset()
    steps: Plan = frozenset()
    for message in conversation:
        if message.role == "user":
            steps = plan(message.text, last)
            last = steps or last
    return steps


def planned(reply: Reply) -> tuple[Plan, str]:
    """Read a planning model's tool calls; a call outside the lists makes the plan invalid."""
    if reply.outcome != "ok":
        return frozenset(), f"failed: the planner answered nothing ({reply.outcome})"
    try:
        return read_plan([dict(c.arguments) for c in reply.tool_calls if c.name == MEASURE.name]), "model"
    except DataError:
        return frozenset(), "failed: the plan names what there is not"


def _picture_of(conversation: Sequence[Message]) -> Radiograph:
    """The first picture, whose case is measured."""
    for message in conversation:
        for image in message.images:
            return image
    raise DataError("the agent was shown no picture", expected="one, whose case has masks")


def _without_pictures(conversation: Sequence[Message]) -> list[Message]:
    return [Message(m.role, m.text) for m in conversation if m.role in ("user", "assistant")]


def _built(part: Any, capability: str, by: str) -> Any:
    """A component that a run file names, or an object that has what is needed."""
    if part is None:
        return None
    made = part.build() if hasattr(part, "build") else part
    require(made, {capability}, by=by)
    return made
