"""A chat model plays the user: what it may do, what is set aside, and that it always ends."""

import itertools
import json

import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.cxreasondial import CXReasonDial, users
from medground.benchmarks.cxreasondial.agent import Agent
from medground.benchmarks.cxreasondial.baselines import Refuser
from medground.errors import ConfigError
from medground.models.base import ModelInfo, Reply

SIZE = 128


class StubUser:
    """Words the next query as its script says, from what it is sent."""

    name = "stub_user"
    info = ModelInfo("stub user")
    capabilities = frozenset({"reply"})

    def __init__(self, script="rewords"):
        self.script = script

    def fingerprint(self):
        return self.script

    def reply(self, conversations, options=None):
        assert options.schema == users.SCHEMA
        return [self.one(json.loads(c[-1].text)) for c in conversations]

    def one(self, asked):
        coming, may = asked["to ask next"], asked["may"]
        replies = [line["text"] for line in asked["conversation"] if line["role"] == "assistant"]
        if self.script == "slow":
            return Reply("", "timeout", "no answer in 10 s")
        if self.script == "malformed":
            return Reply('{"action": "answer the question myself"}')
        if self.script == "endless":
            return Reply("", data={"action": "next", "query": "Why? " * 400})
        if self.script == "stubborn" and "ask_again" in may:
            return Reply("", data={"action": "ask_again", "query": "You did not answer that. What is it?"})
        if self.script == "doubting" and "doubt" in may:
            return Reply("", data={"action": "doubt", "query": f"Are you sure? You wrote: {replies[-1][:60]}"})
        query = "Is there a fracture?" if self.script == "astray" else f"Right. {coming}"
        return Reply("", data={"action": "next", "query": query})


def held(script, model=Refuser, **options):
    made = CXReasonDial(phantoms=5, size=SIZE, history="simulator", **options)
    user = Entry("user", "stub_user", StubUser, {"script": script})
    made.bind(Setting(models=[Entry("m", "m", model)], seed=2, roles={"simulator": [user]}))
    (task,) = made.tasks()
    players = {role: entry.build() for role, entry in task.roles.items()}
    rows = [row for measured in evaluate(task, players) for row in measured.rows]
    planned = sum(not t.visual or model is Agent for d in made.source.dialogues() for t in d.turns)
    return rows, planned


def test_it_words_the_queries_and_the_evidence_stays():
    rows, planned = held("rewords")
    assert len(rows) == planned
    later = [row for row in rows if row["turn"] > 0]
    own = [row for row in later if row["asked_by"] == "model"]
    assert len(own) > 0.9 * len(later)
    assert all(row["query"].startswith("Right. ") for row in own)
    assert all(row["asked_by"] == "planned" for row in rows if row["turn"] == 0)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("slow", "no message (timeout)"),
        ("malformed", "schema"),
        ("endless", "too long"),
        ("astray", "something else"),
    ],
)
def test_what_cannot_be_used_is_set_aside_with_its_reason(script, reason):
    rows, planned = held(script)
    assert len(rows) == planned
    later = [row for row in rows if row["turn"] > 0]
    assert later
    assert all(row["asked_by"].startswith("planned: ") and reason in row["asked_by"] for row in later)


def test_each_turn_is_asked_again_once_at_most():
    rows, planned = held("stubborn")
    again = [row for row in rows if row["kind"] == "asked_again"]
    assert again
    assert len(rows) <= 2 * planned
    for before, row in itertools.pairwise(rows):
        if row["kind"] == "asked_again":
            assert before["kind"] != "asked_again"
            assert row["tasks"] == before["tasks"]


def test_a_doubted_number_asks_for_the_same_evidence():
    rows, _ = held("doubting", Agent)
    doubted = [row for row in rows if row["kind"] == "doubted"]
    assert doubted
    assert all(row["answer_in_history"] for row in doubted)
    assert all(row["faithfulness"] == 1 for row in doubted)


def test_the_user_sees_the_conversation_and_no_evidence():
    made = CXReasonDial(phantoms=2, size=SIZE)
    turn = made.source.dialogues()[0].turns[0]
    asked = users.ask([("user", "Hello"), ("assistant", "</reply> 0.5")], turn, ("next",), 3)
    body = json.loads(asked["conversation"][-1].text)
    assert set(body) == {"conversation", "to ask next", "may"}
    assert body["to ask next"] == turn.query
    assert "</reply" not in asked["conversation"][-1].text


def test_a_simulator_without_a_history_for_it_is_refused():
    made = CXReasonDial(phantoms=2, size=SIZE)
    user = Entry("user", "stub_user", StubUser)
    with pytest.raises(ConfigError, match="no history asks for one"):
        made.bind(Setting(models=[Entry("m", "m", Refuser)], roles={"simulator": [user]}))


def test_who_plays_the_user_is_part_of_what_the_replies_depend_on():
    tasks = []
    for script in ("rewords", "doubting"):
        made = CXReasonDial(phantoms=2, size=SIZE, history="simulator")
        user = Entry("user", "stub_user", StubUser, {"script": script})
        made.bind(Setting(models=[Entry("m", "m", Refuser)], roles={"simulator": [user]}))
        tasks += made.tasks()
    rules = CXReasonDial(phantoms=2, size=SIZE, history="simulator")
    rules.bind(Setting(models=[Entry("m", "m", Refuser)]))
    assert len({task.fingerprint() for task in [*tasks, *rules.tasks()]}) == 3
