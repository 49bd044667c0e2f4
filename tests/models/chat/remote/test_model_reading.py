"""Runs whose replies are read again by a language model: HEAL-MedVQA and Medical-Checklist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from medground.commands.score import score_run
from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.reporting.report import write_report
from medground.running.ledger import read_ledger
from medground.running.reading import readings
from medground.session import assemble, run_session


@pytest.fixture
def served(stub: Any) -> dict[str, Any]:
    return {"name": "api_chat", "base_url": stub.url, "model": "stub-1", "cache": "none", "max_tries": 1}


def told_question(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a reading model is asked about, the reply under reading in it."""
    text = body["messages"][-1]["content"]
    (line,) = [line for line in text.splitlines() if line.startswith("Question: ")]
    return json.loads(line.removeprefix("Question: ")) | {"reply": json.loads(text.splitlines()[-2])}


def answering(answered: Any, replies: Any, reads: Any) -> Any:
    """A server that plays both: a model that replies, and one that reads replies in a fixed form."""

    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        if "response_format" not in body:
            return {"body": answered(replies(body))}
        told = reads(told_question(body))
        return told if isinstance(told, dict) and "status" in told else {"body": answered(json.dumps(told))}

    return answer


HEAL = {
    "name": "heal_medvqa",
    "datasets": [{"name": "phantom", "cases": 6, "size": 64}],
    "quartets": 0,
    "pictures": 0,
}


def run(benchmark: dict[str, Any], model: dict[str, Any], folder: Path, **more: Any) -> Any:
    data = {"name": "r", "benchmark": benchmark, "models": [model | {"label": "m"}], **more}
    data["engine"] = {"workers": 0, "torch_threads": 1}
    return run_session(assemble(parse_run_file(data)), folder)


def test_heal_is_read_again_by_a_model_and_both_stand_in_the_report(
    stub: Any, served: dict[str, Any], answered: Any, tmp_path: Path
) -> None:
    def replies(body: dict[str, Any]) -> str:
        return "Yes." if "lower" in body["messages"][0]["content"][1]["text"] else "No."

    def reads(asked: dict[str, Any]) -> Any:
        if "finding" not in asked:
            return {"findings": [], "normal": True, "state": "read", "quote": ""}
        said = "yes" if asked["reply"] == "Yes." else "no"
        # It takes some denials for doubt.
        doubt = said == "no" and len(asked["text"]) % 2
        return {"answer": "uncertain" if doubt else said, "quote": asked["reply"]}

    stub.answer = answering(answered, replies, reads)
    run(HEAL, served, tmp_path / "run")
    asked_before = stub.seen
    score = score_run(tmp_path / "run", "reader", {"name": "llm", "by": served})
    assert score.reading == "llm"
    assert len(readings(tmp_path / "run")) == 2
    lines = {line["task"]: line for line in score.summary.tables["readers"].to_dicts()}
    closed = lines["yes_no"]
    assert 0 < closed["raw"] < 1
    assert closed["n_undefined"] == 0
    assert closed["kappa"] is not None
    assert any("llm and rules read" in note for note in score.summary.notes)
    # No reply was asked for again: only readings, each different one once an item.
    again = [body for body in stub.bodies[asked_before:] if "response_format" not in body]
    assert again == []
    assert stub.seen > asked_before
    entries = read_ledger(tmp_path / "run")
    assert [sorted(entry["asked"]) for entry in entries] == [["m"], ["llm, the reader"]]
    held = score.summary
    assert {cell.reading for cell in held.cells} == {"llm"}
    rule = score_run(tmp_path / "run", "reader", "rules")
    assert "readers" not in rule.summary.tables


def test_a_run_may_be_read_by_a_model_from_the_start(
    stub: Any, served: dict[str, Any], answered: Any, tmp_path: Path
) -> None:
    def reads(asked: dict[str, Any]) -> Any:
        if "finding" in asked:
            return {"answer": "yes", "quote": "Yes."}
        return {"findings": [], "normal": False, "state": "unreadable", "quote": ""}

    stub.answer = answering(answered, lambda _: "Yes.", reads)
    benchmark = HEAL | {"open_share": 0.0}
    report = run(benchmark, served, tmp_path / "run", roles={"readers": {"name": "llm", "by": served}})
    line = report.summary.tables["readers"].filter(task="yes_no").to_dicts()[0]
    assert (line["raw"], line["kappa"], line["reason"]) == (1.0, None, "both always say the same")
    html = write_report([tmp_path / "run"]).read_text()
    assert "Two readers of the same replies" in html
    assert "llm and rules read 100.0 %" in html


def test_a_reading_model_that_fails_leaves_replies_undefined(
    stub: Any, served: dict[str, Any], answered: Any, tmp_path: Path
) -> None:
    stub.answer = answering(answered, lambda _: "Yes.", lambda asked: {"status": 500, "body": {"error": "down"}})
    benchmark = HEAL | {"open_share": 0.0}
    report = run(benchmark, served, tmp_path / "run", roles={"readers": {"name": "llm", "by": served}})
    cells = [c for c in report.summary.cells if c.metric == "non_answers" and c.scope == "all"]
    assert cells
    assert all(cell.value in (None, 0.0) for cell in cells)
    assert all(cell.failed or cell.undefined for cell in cells)
    line = report.summary.tables["readers"].filter(task="yes_no").to_dicts()[0]
    assert line["n"] == 0
    assert line["n_undefined"] > 0


def test_the_checklist_is_read_again_by_a_model(
    stub: Any, served: dict[str, Any], answered: Any, tmp_path: Path
) -> None:
    # The rules cannot read "the former"; the model can.
    stub.answer = answering(answered, lambda _: "The former.", lambda asked: {"answer": "1", "quote": "former"})
    benchmark = {"name": "medical_checklist", "pairs": 3, "ask": "reply", "controls": [], "audit": False}
    first = run(benchmark, served, tmp_path / "run")
    accuracy = {c.metric: c for c in first.summary.cells if c.scope == "all" and not c.group}
    score = score_run(tmp_path / "run", "reader", {"name": "llm", "by": served})
    assert score.reading == "llm-ratio-half"
    (line,) = score.summary.tables["readers"].to_dicts()
    assert (line["task"], line["second"], line["raw"], line["n"]) == ("choice", "lenient", 0.0, 2 * 2 * 3)
    assert accuracy["accuracy"].value == 0.5
    strict = score_run(tmp_path / "run", "reader", "strict")
    assert "readers" not in strict.summary.tables


def test_a_reader_without_a_model_is_refused(served: dict[str, Any]) -> None:
    for reader in ({"name": "llm"}, {"name": "yes_no"}):
        data = {"name": "r", "benchmark": HEAL, "models": [served], "roles": {"readers": reader}}
        with pytest.raises(ConfigError, match="is a language model"):
            assemble(parse_run_file(data))
