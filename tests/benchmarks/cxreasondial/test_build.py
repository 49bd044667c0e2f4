"""Dialogues over phantoms: balanced, seeded, planned and answered by the measuring agent."""

import numpy as np
import pytest

from medground.benchmarks.cxreasondial.agent import Agent
from medground.benchmarks.cxreasondial.build import Builder
from medground.benchmarks.cxreasondial.contract import parse, record
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.benchmarks.cxreasondial.planner import plan
from medground.imaging.reading import Radiograph
from medground.judges.evidence import Evidence
from medground.models.base import Message

SIZE = 192


@pytest.fixture(scope="module")
def phantoms():
    return Phantoms(seed=11, size=SIZE)


@pytest.fixture(scope="module")
def cases(phantoms):
    return list(phantoms.cases(40))


@pytest.fixture(scope="module")
def built(cases):
    builder = Builder(seed=3)
    return builder, list(builder.build(cases))


def test_the_same_seed_builds_the_same_dialogues(cases, built):
    assert list(Builder(seed=3).build(cases)) == built[1]
    assert list(Builder(seed=4).build(cases)) != built[1]


def test_dialogues_meet_their_own_contract(built):
    import json

    for dialogue in built[1]:
        assert parse(json.dumps(record(dialogue)), "here") == dialogue


def test_shortcuts_are_closed(built):
    report = built[0].report.record()
    both = {"0": 0, "1": 0}
    for counts in report["labels"].values():
        for label in both:
            both[label] += counts.get(label, 0)
    assert 0.4 < both["1"] / (both["0"] + both["1"]) < 0.6
    assert report["answer_in_history"]["requests"] <= 0.25 * report["answer_in_history"]["of"] + 1
    truths = report["premises"]
    assert 0.25 < truths["true"] / (truths["true"] + truths["false"]) < 0.75


def test_no_value_could_be_taken_for_a_later_one(built):
    for dialogue in built[1]:
        seen = {}
        for turn in dialogue.turns:
            for request in turn.requests:
                for q in request.evidence.measurements:
                    if not isinstance(q.value, (int, float)) or q.unit == "px":
                        continue
                    others = [v for task, values in seen.items() if task != request.task for v in values]
                    assert all(abs(v - q.value) > (q.tolerance or 0.005) for v in others), dialogue.id
                    if request.evidence_type == "diagnostic":
                        seen.setdefault(request.task, []).append(q.value)


def test_rules_plan_every_turn(built):
    wrong = []
    for dialogue in built[1]:
        last = frozenset()
        for turn in dialogue.turns:
            got = plan(turn.query, last)
            if got != turn.plan:
                wrong.append((turn.query, got))
            last = got or last
    assert len(wrong) <= 1, wrong


def test_reference_replies_are_right(built):
    judge, wrong = Evidence(), []
    for dialogue in built[1]:
        for turn in dialogue.turns:
            if turn.requests and not turn.visual:
                ruling = judge.judge(dialogue.query(turn, draws=False), turn.reference_reply)
                if (ruling.coverage, ruling.faithfulness) != (1, 1):
                    wrong.append((turn.reference_reply, ruling))
    assert wrong == []


def test_the_agent_measures_its_own_case_alone(phantoms, built):
    dialogue = built[1][0]
    agent = Agent()
    image = Radiograph(np.zeros((SIZE, SIZE), np.float32), dialogue.image.dicom_id)
    first = dialogue.turns[0]
    (reply,) = agent.reply([[Message("user", first.query, (image,))]])
    assert reply.outcome == "ok"
    assert {(s["task"], s["evidence_type"]) for s in reply.data["plan"]} == first.plan
    assert [step["status"] for step in reply.data["trace"]] != []
    (lost,) = agent.reply([[Message("user", first.query)]])
    assert (lost.outcome, lost.text) == ("error", "")
