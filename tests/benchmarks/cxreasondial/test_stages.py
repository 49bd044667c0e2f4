"""CXReasonBench over the same evidence: paths, stages, stops, and what they come to."""

from pathlib import Path

import pytest

from medground.benchmarks.cxreasondial.contract import read_dialogues
from medground.benchmarks.cxreasondial.stages import (
    NO_ANSWER,
    PATHS,
    REFINED,
    RIGHT,
    UNKNOWN,
    WRONG,
    Walk,
    guided_next,
    macro,
    pick,
    printed_score,
    questions,
    score,
    seed_of,
    walk,
)
from medground.tools import TASKS

GOLDEN = Path(__file__).parents[2] / "golden" / "cxreasondial"


@pytest.fixture(scope="module")
def requests():
    found = {}
    for dialogue in read_dialogues(GOLDEN / "dialogues.jsonl"):
        for turn in dialogue.turns:
            for request in turn.requests:
                if request.evidence.conclusion.label is not None:
                    found.setdefault(request.task, request)
    return found


def take(request, path, replier):
    """Walk a path with a replier (question -> reply)."""
    going = walk(request, path)
    asked = {q.prompt(): q for q in questions(request, path)}
    prompt = next(going)
    while True:
        try:
            prompt = going.send(replier(asked[prompt]))
        except StopIteration as stop:
            return stop.value


def right(question):
    return f"({chr(65 + question.answer)})"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("path", PATHS)
def test_one_that_knows_everything_passes_every_stage(requests, task, path):
    request = requests[task]
    stages = [q.stage for q in questions(request, path)]
    done = take(request, path, right)
    assert done.passed == tuple(stages)
    assert done.completed
    assert ("refined criterion" in stages) == (path != "guided" and task in REFINED)
    assert stages[-1] == "final"
    assert questions(request, path) == questions(request, path)


def test_a_path_stops_at_the_first_stage_that_is_not_right(requests):
    wrong = take(requests["cardiomegaly"], "direct", lambda q: right(q) if q.stage == "init" else "(Z) (A) (B)")
    assert wrong.passed == ("init",)
    assert wrong.codes[-1] == ("criterion", NO_ANSWER)
    assert not wrong.completed
    lost = take(requests["cardiomegaly"], "direct", lambda q: "I don't know")
    assert lost.codes == (("init", UNKNOWN),)
    assert guided_next(lost)
    assert not guided_next(wrong)


def test_prose_that_denies_is_not_read_as_a_choice():
    assert pick("That is not true.", ("Yes", "No", "I don't know")) == NO_ANSWER
    assert pick("Yes, it is.", ("Yes", "No", "I don't know")) == 0
    assert pick("I cannot tell from this picture.", ("Yes", "No", "I don't know")) == 2
    assert pick("B", ("Yes", "No")) == 1
    assert pick("(A) or (B)", ("Yes", "No")) == NO_ANSWER


def test_scores_of_walks(requests):
    request = requests["cardiomegaly"]
    value = request.evidence.measurements[0].value
    good = take(request, "direct", lambda q: f"{right(q)} {value}" if q.stage == "final" else right(q))
    off = take(request, "direct", lambda q: f"{right(q)} 9.5" if q.stage == "final" else right(q))
    bad = take(request, "direct", lambda q: f"({chr(65 + 1 - q.answer)})" if q.stage == "init" else right(q))
    assert bad.codes == (("init", WRONG),)
    assert good.codes[-1] == ("final", RIGHT)
    got = score([good, off, bad])
    assert (got.completion.ones, got.completion.used) == (2, 3)
    assert got.depth == pytest.approx(2 * 4 / 3)  # four numbered stages each; the first decision is none of them
    assert (got.consistency.ones, got.consistency.used) == (2, 2)
    assert (got.alignment.ones, got.alignment.used) == (1, 2)
    empty = score([])
    assert (empty.completion.value, empty.depth) == (None, None)
    assert macro([0.5, None, 1.0]) == 0.75
    assert printed_score(0, 0) is None


R, W = RIGHT, WRONG
DIRECT = ("init", "criterion", "refined criterion", "body part", "measurement", "final")
#: (task, path, codes in order, stated value, chosen range) -> depth, completed, aligned; worked out on paper.
BY_HAND = [
    ("aortic_knob_enlargement", "direct", (R, R, R, R, R, R), 2.1, (2.0, 2.2), 4, True, True),
    ("aortic_knob_enlargement", "direct", (R, R, R, R, R, R), 2.3, (2.0, 2.2), 4, True, False),
    ("aortic_knob_enlargement", "direct", (R, R, R, R, R, W), None, (2.0, 2.2), 3, False, False),
    ("aortic_knob_enlargement", "direct", (R, R, R, R, W), None, (2.4, 2.6), 2, False, None),
    ("aortic_knob_enlargement", "direct", (R, R, W), None, None, 0, False, None),
    ("aortic_knob_enlargement", "direct", (UNKNOWN,), None, None, 0, False, None),
]


def by_hand(task, path, codes, stated, chosen):
    stages = DIRECT if path != "guided" else DIRECT[3:]
    pairs = tuple(zip(stages, codes, strict=False))
    return Walk(task, path, tuple(s for s, c in pairs if c == R), pairs, stated, chosen)


def test_scores_against_a_hand_computed_table():
    walks = [by_hand(*case[:5]) for case in BY_HAND]
    assert [w.depth for w in walks] == [case[5] for case in BY_HAND]
    assert [w.completed for w in walks] == [case[6] for case in BY_HAND]
    assert [w.aligned for w in walks] == [case[7] for case in BY_HAND]
    got = score(walks)
    assert (got.completion.ones, got.completion.used) == (2, 6)
    assert got.depth == pytest.approx((4 + 4 + 3 + 2 + 0 + 0) / 6)
    assert (got.consistency.ones, got.consistency.used) == (2, 2)
    assert (got.alignment.ones, got.alignment.used) == (1, 3)
    guided = score([by_hand("rotation", "guided", (R, R, R), 0.3, (0.2, 0.4))])
    assert guided.depth == 3
    assert guided.consistency.value is None  # there is no first decision on the guided path
    # Wilson, on paper: p = 2/6, z = 1.96: centre .4033, half width .3061.
    assert printed_score(2, 6) == pytest.approx(0.4033 * (1 - 0.3061), abs=2e-3)


def test_the_order_of_options_tells_nothing_from_case_to_case(requests):
    request = requests["cardiomegaly"]
    places = {tuple(q.answer for q in questions(request, "direct", seed_of(f"case {i}", 0))[1:-1]) for i in range(30)}
    assert len(places) > 15
