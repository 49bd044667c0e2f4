"""The measuring agent: who plans, what is measured, how long it may take, and what its trace tells."""

import json
import time
from typing import ClassVar

import numpy as np
import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.cxreasondial import CXReasonDial, agent as agents
from medground.benchmarks.cxreasondial.agent import Agent, within
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.benchmarks.cxreasondial.planner import plan
from medground.benchmarks.cxreasondial.scores import AGENT_METRICS, Judged, dialogue_scores, metric_share
from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Message, ModelInfo, Reply, ToolCall
from medground.registry import Part
from medground.tools import measure, tool

SIZE = 160


class StubPlanner:
    """A chat model with tool calls that plans as its script says."""

    name = "stub_planner"
    info = ModelInfo("stub planner")
    capabilities = frozenset({"reply"})

    seen: ClassVar[list[object]] = []

    def __init__(self, script="right"):
        self.script = script

    def fingerprint(self):
        return self.script

    def reply(self, conversations, options=None):
        self.seen += conversations
        assert options.tools[0].name == "measure"
        return [self.one(c) for c in conversations]

    def one(self, conversation):
        if self.script == "slow":
            return Reply("", "timeout", "no answer in 10 s")
        if self.script == "prose":
            return Reply("I would measure the heart.")
        last, steps = frozenset(), frozenset()
        for message in conversation:
            if message.role == "user":
                steps = plan(message.text, last)
                last = steps or last
        task = "../../etc/passwd" if self.script == "astray" else None
        calls = [ToolCall("measure", {"task": task or t, "evidence_type": kind}) for t, kind in sorted(steps)]
        return Reply("", tool_calls=tuple(calls))


def part(script="right"):
    """The planner as a run file names it."""
    return Part("stub_planner", StubPlanner, {"script": script})


class TrueMasks:
    """A segmenter that knows the phantoms."""

    name = "true_masks"
    info = ModelInfo("true masks")
    capabilities = frozenset({"masks"})

    def fingerprint(self):
        return "true"

    def masks(self, radiograph):
        return {f"their {k}": m for k, m in Phantoms(size=SIZE).anatomy(radiograph.case_id).masks.items()}


def turns_of(model, seed=5, phantoms=8, **parameters):
    made = CXReasonDial(phantoms=phantoms, size=SIZE)
    made.bind(Setting(models=[Entry("agent", "agent", model, parameters)], seed=seed))
    (task,) = made.tasks()
    rows = [row for m in evaluate(task, {"model": task.model.build()}) for row in m.rows]
    judged = [Judged(r["dialogue"], r["turn"], tuple(r["applicable"]), {m: r[m] for m in AGENT_METRICS}) for r in rows]
    return rows, judged


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_rules_plan_and_tools_measure_unseen_phantoms(seed):
    _, judged = turns_of(Agent, seed, phantoms=20)
    assert metric_share(judged, "faithfulness").value >= 0.99
    assert metric_share(judged, "dti").value == 1.0
    assert metric_share(judged, "eti").value == 1.0
    assert dialogue_scores(judged).strict.value >= 0.95


def test_a_chat_model_plans_by_tool_calls_and_never_sees_the_picture():
    rows, judged = turns_of(Agent, planner=part())
    assert metric_share(judged, "dti").value == 1.0
    assert metric_share(judged, "faithfulness").value == 1.0
    assert all(not message.images for conversation in StubPlanner.seen for message in conversation)
    traces = [json.loads(row["trace"]) for row in rows if row["trace"]]
    steps = [step for trace in traces for step in trace]
    assert steps
    assert {"task", "evidence_type", "status", "reason", "output"} == set(steps[0])


@pytest.mark.parametrize(("script", "reason"), [("slow", "timeout"), ("astray", "what there is not")])
def test_a_plan_that_fails_is_an_undefined_turn(script, reason):
    rows, judged = turns_of(Agent, planner=part(script))
    asked = [t for t in judged if "coverage" in t.applicable]
    assert metric_share(asked, "faithfulness").used == 0
    assert metric_share(asked, "dti").used == 0
    assert {row["outcome"] for row in rows if row["tasks"]} == {"error"}
    (reply,) = Agent(planner=StubPlanner(script)).reply([[Message("user", "Is the heart enlarged?")]])
    assert reason in reply.reason


def test_a_model_that_calls_no_tool_identifies_no_task():
    _, judged = turns_of(Agent, planner=part("prose"))
    asked = [t for t in judged if "coverage" in t.applicable]
    assert metric_share(asked, "dti").value == 0.0
    assert metric_share(asked, "coverage").value == 0.0


def test_a_segmenter_stands_for_the_folder(tmp_path):
    phantoms = Phantoms(seed=3, size=SIZE)
    case = phantoms.case_id(1)
    anatomy = phantoms.anatomy(case)
    place = tmp_path / case
    place.mkdir()
    landmarks = {k: np.asarray(v).tolist() for k, v in anatomy.landmarks.items()}
    (place / "case.json").write_text(json.dumps({"view": anatomy.view, "landmarks": landmarks}))
    names = {f"their {name}": name for name in anatomy.masks}
    picture = Radiograph(np.zeros((SIZE, SIZE), np.float32), case)
    asked = [[Message("user", "What is the cardiothoracic ratio, and is the heart enlarged?", (picture,))]]
    (own,) = Agent().reply(asked)
    (found,) = Agent(masks=tmp_path, segmenter=TrueMasks(), names=names).reply(asked)
    assert found.text == own.text
    (without,) = Agent(segmenter=TrueMasks(), names=names).reply(asked)
    assert "As the view is unknown" in without.text
    with pytest.raises(ModelError, match="segmenter of the agent"):
        Agent(segmenter=StubPlanner())


def test_an_agent_reaches_no_other_case(tmp_path):
    (tmp_path / "masks").mkdir()
    agent = Agent(masks=tmp_path / "masks")
    for case in ("../secret", "", "/etc"):
        picture = Radiograph(np.zeros((SIZE, SIZE), np.float32), case)
        (reply,) = agent.reply([[Message("user", "Is the heart enlarged?", (picture,))]])
        assert (reply.outcome, reply.text) == ("error", "")
        assert str(tmp_path) not in reply.reason


def test_a_tool_that_takes_too_long_is_left_behind():
    anatomy = Phantoms(size=SIZE).anatomy("phantom-1-00001")
    started = time.monotonic()
    assert within(0.05, lambda _: time.sleep(60), anatomy) is None
    assert within(0.0, tool("cardiomegaly").measure, anatomy) is None
    assert time.monotonic() - started < 40
    assert within(5.0, tool("cardiomegaly").measure, anatomy) == tool("cardiomegaly").measure(anatomy)
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda _: 1 / 0, anatomy)


def test_a_turn_that_ran_out_of_time_says_so(monkeypatch):
    monkeypatch.setattr(agents, "within", lambda *_: None)
    picture = Radiograph(np.zeros((SIZE, SIZE), np.float32), "phantom-1-00001")
    (reply,) = Agent().reply([[Message("user", "Is the heart enlarged?", (picture,))]])
    assert reply.text == "I ran out of time before measuring cardiomegaly."
    assert reply.data["trace"][0]["reason"] == "time limit"


def test_quality_control_drops_little_of_what_was_drawn():
    phantoms, dropped, measured = Phantoms(seed=77, size=384), 0, 0
    for number in range(12):
        anatomy = phantoms.anatomy(phantoms.case_id(number))
        for result in measure(anatomy).values():
            dropped += result.status == "dropped"
            measured += result.status != "dropped"
    assert dropped <= 0.05 * (dropped + measured)
