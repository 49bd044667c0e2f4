"""Dialogues, histories, plans and scores against the golden files."""

import json
from pathlib import Path

import pytest

from medground.benchmarks.cxreasondial.contract import parse, problems, read_dialogues, record, write_dialogues
from medground.benchmarks.cxreasondial.histories import messages
from medground.benchmarks.cxreasondial.planner import plan
from medground.benchmarks.cxreasondial.plans import read_plan, task_identified, type_identified
from medground.benchmarks.cxreasondial.scores import (
    AGENT_METRICS,
    Judged,
    dialogue_scores,
    hallucination,
    identity,
    metric_share,
)
from medground.errors import DataError
from medground.metrics.agreement import agreement, alpha, estimate_kappa, majority
from medground.metrics.bootstrap import clusters

GOLDEN = Path(__file__).parents[2] / "golden" / "cxreasondial"
TABLES = sorted(json.loads((GOLDEN / "scoring" / "expected.json").read_text()))


@pytest.fixture(scope="module")
def dialogues():
    return {dialogue.id: dialogue for dialogue in read_dialogues(GOLDEN / "dialogues.jsonl")}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_dialogues_are_read_and_written_without_loss(dialogues, tmp_path):
    assert len(dialogues) == 40
    assert sum(len(turn.requests) for d in dialogues.values() for turn in d.turns) == 214
    write_dialogues(tmp_path / "again.jsonl", dialogues.values())
    assert {d.id: d for d in read_dialogues(tmp_path / "again.jsonl")} == dialogues


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda d: d.update(turns=[]), "turns"),
        (lambda d: d["image"].update(view="lateral"), "image.view"),
        (lambda d: d["image"].update(path="../../etc/passwd"), "image.path"),
        (lambda d: d["turns"][0].update(index=7), "turns.0.index"),
        (lambda d: d["turns"][0]["requests"][0].update(task="heart_size"), "turns.0.requests.0.task"),
        (lambda d: d["turns"][0]["requests"][0].update(evidence_type="prose"), "turns.0.requests.0.evidence_type"),
        (lambda d: d["turns"][0]["requests"][0]["evidence"]["conclusion"].update(label=None), "conclusion"),
        (lambda d: d.update(turn=[]), "turn"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_field(tmp_path, change, names):
    good = (GOLDEN / "dialogues.jsonl").read_text().splitlines()[0]
    bad = json.loads(good)
    change(bad)
    path = tmp_path / "d.jsonl"
    path.write_text(good + "\n" + json.dumps({**bad, "id": "other"}) + "\n")
    with pytest.raises(DataError) as error:
        read_dialogues(path)
    assert "line 2" in str(error.value)
    assert names in str(error.value)
    assert len(problems(path)) == 1


def test_an_id_may_stand_once(tmp_path):
    good = (GOLDEN / "dialogues.jsonl").read_text().splitlines()[0]
    (tmp_path / "d.jsonl").write_text(good + "\n" + good + "\n")
    with pytest.raises(DataError, match="stands twice"):
        read_dialogues(tmp_path / "d.jsonl")


def test_a_record_is_read_again(dialogues):
    dialogue = next(iter(dialogues.values()))
    assert parse(json.dumps(record(dialogue)), "here") == dialogue


def test_message_lists_of_every_history_mode(dialogues):
    cases = json.loads((GOLDEN / "history.json").read_text())["cases"]
    assert len(cases) > 20
    for case in cases:
        replies = {int(turn): text for turn, text in case["own_replies"].items()}
        history = "with_gt" if case["mode"] == "with_gt" else "without_gt"
        skipped = "placeholder" if case["mode"].endswith("placeholder") else "drop"
        for turn in case["turns"]:
            got = messages(
                dialogues[case["dialogue"]],
                turn["turn"],
                replies,
                history,
                agent=case["kind"] == "agent",
                skipped=skipped,
            )
            expected = turn["messages"]
            assert (got is not None) == turn["asked"]
            assert got == (None if expected is None else [(m["role"], m["content"]) for m in expected])


def test_plans_by_rules():
    wrong = []
    for query in lines(GOLDEN / "plans" / "queries.jsonl"):
        before = query["previous_request"]
        got = plan(query["query"], [(before["task"], before["evidence_type"])] if before else [])
        if got != read_plan(query["expected"]):
            wrong.append(query["id"])
    assert wrong == []


def test_plans_compare_as_task_and_type():
    golden = json.loads((GOLDEN / "plans" / "comparisons.json").read_text())
    for check in golden["checks"]:
        expected, got = read_plan(check["expected"]), read_plan(check["plan"])
        assert (task_identified(expected, got), type_identified(expected, got)) == (check["dti"], check["eti"]), check[
            "case"
        ]
    for bad in golden["not_valid_plans"]:
        with pytest.raises(DataError):
            read_plan(bad["plan"])


def percent(value):
    return None if value is None else pytest.approx(100 * value, abs=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_scores_of_a_verdict_table(name):
    expected = json.loads((GOLDEN / "scoring" / "expected.json").read_text())[name]
    turns = [Judged.of(row) for row in reversed(lines(GOLDEN / "scoring" / f"{name}.jsonl"))]

    for metric in AGENT_METRICS:
        share, right = metric_share(turns, metric), expected[metric]
        assert (share.ones, share.used, share.failed, share.not_applicable) == (
            right["ones"],
            right["used"],
            right["failed"],
            right["not_applicable"],
        )
        assert right["percent"] == percent(share.value)
    assert expected["hallucination"]["percent"] == percent(hallucination(turns).value)
    parts = identity(turns)
    assert parts.turns == expected["identity"]["turns_with_both"]
    assert expected["identity"]["sum"] == percent(parts.total)
    for rule, right in (("complete", expected), ("three_valued", expected["three_valued_rule"])):
        scores = dialogue_scores(turns, rule)
        assert right["average_success"]["percent"] == percent(scores.average)
        known = {k: v for k, v in right["average_success"]["per_dialogue"].items() if v is not None}
        assert scores.per_dialogue == pytest.approx(known)
        assert sorted(scores.without_turn) == sorted(right["average_success"]["dialogues_without_applicable_turn"])
        assert sorted(scores.undecided) == sorted(right["average_success"]["dialogues_undecided"])
        assert right["strict_success"]["percent"] == percent(scores.strict.value)
        assert sorted(scores.strict_undecided) == sorted(right["strict_success"]["undecided"])
        if scores.bounds is not None:
            assert right["strict_success"]["bounds_percent"] == [percent(bound) for bound in scores.bounds]
    trap = expected["traps"].get("average_over_all_turns_percent")
    assert trap == percent(dialogue_scores(turns, "all_turns").average)


def test_agreement_between_judges():
    golden = json.loads((GOLDEN / "scoring" / "agreement.json").read_text())
    for name, case in golden["pairs"].items():
        right, got = case["expected"], agreement(case["judge_a"], case["judge_b"], [0, 1])
        kappa = estimate_kappa(case["judge_a"], case["judge_b"], clusters(list(range(len(case["judge_a"])))))
        for key, value in (
            ("pairs", got.n),
            ("missing", got.n_undefined),
            ("raw_agreement", got.raw),
            ("kappa", got.kappa),
            ("kappa", kappa.value),
            ("pabak", got.pabak),
            ("prevalence_index", 2 * got.prevalence["1"] - 1 if got.n else None),
            ("bias_index", got.bias["1"] if got.n else None),
        ):
            assert right[key] == (value if value is None else pytest.approx(value, abs=1e-12)), (name, key)
        assert (got.reason is None) == (right["reason"] is None)
    three = golden["three_judges"]
    assert [majority(unit) for unit in three["items"]] == three["majority"]
    assert alpha(list(zip(*three["items"], strict=True))) == pytest.approx(three["alpha_nominal"])
