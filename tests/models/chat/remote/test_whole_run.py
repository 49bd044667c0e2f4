"""Whole runs against a server: the ledger in the run's folder, and a key that stands nowhere."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest

from medground.config import parse_run_file
from medground.reporting.report import write_report
from medground.running.ledger import read_ledger
from medground.running.reading import read_transcripts
from medground.session import assemble, run_session
from medground.spending import StopRunError

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def run(stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TEST_KEY", SECRET)

    def make(**more: Any) -> Any:
        model = {"name": "api_chat", "label": "served", "base_url": stub.url, "model": "stub-1", "key_env": "TEST_KEY"}
        given = model | {"cache": str(tmp_path / "cache.sqlite3"), "base_wait": 0.005, "max_tries": 2} | more
        data = {
            "name": "r",
            "benchmark": {"name": "cxreasondial", "phantoms": 1, "size": 64, "canaries": 0.0},
            "models": [given],
            "engine": {"workers": 0, "torch_threads": 1},
        }
        return assemble(parse_run_file(data))

    return make


def test_the_ledger_lies_in_the_run_and_in_its_report(stub: Any, run: Any, answered: Any, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("{date: 2026-11-01, currency: USD, models: {stub-1: {prompt: 1, completion: 2}}}")
    report = run_session(run(prices=str(prices)), tmp_path / "run")
    (line,) = read_ledger(tmp_path / "run")
    counts = line["asked"]["served"]
    assert counts["requests"] == stub.seen
    assert counts["money"] == pytest.approx(stub.seen * (10 * 1 + 2 * 2) / 1e6)
    assert line["reading"] == report.reading.name
    html = write_report([tmp_path / "run"]).read_text()
    assert f"{stub.seen} requests" in html
    assert "USD by the prices of 2026-11-01" in html
    # The same run in another folder finds every reply, and says so.
    run_session(run(prices=str(prices)), tmp_path / "again")
    (line,) = read_ledger(tmp_path / "again")
    assert line["asked"]["served"]["cache_hits"] == counts["requests"]
    assert "requests" not in line["asked"]["served"]


def test_a_run_that_stops_tells_what_it_asked(stub: Any, run: Any, answered: Any, tmp_path: Path) -> None:
    stub.answer = lambda n, b: {"body": answered(model="stub-1" if n < 2 else "stub-2")}
    with pytest.raises(StopRunError, match="another model answers"):
        run_session(run(concurrency=1), tmp_path / "run")
    (line,) = read_ledger(tmp_path / "run")
    assert line["asked"]["served"]["requests"] == stub.seen


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_stands_nowhere_in_a_run(
    stub: Any, run: Any, answered: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    body = answered("no") if status == 200 else {"error": {"message": f"wrong key {SECRET}", "code": SECRET}}
    stub.answer = lambda n, b: {"status": status, "body": body}
    told = ""
    try:
        run_session(run(), tmp_path / "run")
        write_report([tmp_path / "run"])
    except StopRunError as error:
        told = "".join(traceback.format_exception(error))
    assert stub.headers[0]["Authorization"] == f"Bearer {SECRET}"
    places = [told, caplog.text, *capsys.readouterr()]
    assert all(SECRET not in place for place in places)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "run.yaml" for path in files)
    assert all(SECRET.encode() not in path.read_bytes() for path in files)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["format"]


def test_repeated_samples_stand_in_a_table_of_their_own(stub: Any, answered: Any, tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        text, seed = body["messages"][0]["content"][1]["text"], body["seed"]
        assert body["temperature"] == 0.8
        # Hangs on the captions in the first sample, and is the other way round for lungs in the second.
        first = (len(text) % 2 == 0) != (seed == 1 and "lung" in text)
        return {"body": answered("Caption A" if first else "Caption B")}

    stub.answer = answer
    served = {"name": "api_chat", "base_url": stub.url, "model": "stub-1", "cache": "none"}
    data = {
        "name": "r",
        "benchmark": {"name": "medical_checklist", "pairs": 6, "ask": "reply", "controls": [], "audit": False},
        "models": [{"name": "repeated", "label": "m", "of": served, "samples": 2, "temperature": 0.8}],
        "engine": {"workers": 0, "torch_threads": 1},
    }
    session = assemble(parse_run_file(data))
    report = run_session(session, tmp_path / "run")
    summary = report.summary
    assert [facts.label for facts in summary.models] == ["m"]
    assert {cell.model for cell in summary.cells} == {"m"}
    (line,) = [r for r in summary.tables["repeats"].to_dicts() if r["metric"] == "accuracy"]
    assert (line["members"], line["kind"]) == (2, "sample")
    items = 2 * 6
    assert line["n"] == items
    assert stub.seen == 2 * 2 * items
    each = summary.tables["repeats_each"].filter(metric="accuracy")
    assert each["member"].to_list() == ["sample 1", "sample 2"]
    assert line["range"] == pytest.approx(abs(each["value"][0] - each["value"][1]))
    assert any("2 samples: agree with each other" in note for note in summary.notes)
    html = write_report([tmp_path / "run"]).read_text()
    assert "The same model once more" in html
    assert "2 samples: agree with each other" in html
    # The same folder is assembled again from its own run file.
    assert run_session(assemble(parse_run_file(data)), tmp_path / "run").reused == report.chunks


def test_a_grounder_made_of_a_repeated_model_is_repeated(
    stub: Any, answered: Any, tiny_manifest: Path, tmp_path: Path
) -> None:
    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(body["messages"])
        box = [100, 100, 500, 500] if body["seed"] == 0 else [500, 500, 900, 900]
        return {
            "body": answered(json.dumps({"boxes": [box]} if "boxes" in text or "box [" in text else {"answer": "yes"}))
        }

    stub.answer = answer
    served = {"name": "api_chat", "base_url": stub.url, "model": "stub-1", "cache": "none", "structured": "text"}
    twice = {"name": "repeated", "of": served, "samples": 2, "temperature": 1.0}
    model = {"name": "chat_grounder", "label": "g", "of": twice, "box_format": "thousandths"}
    data = {
        "name": "r",
        "benchmark": {
            "name": "xbench",
            "replicates": 0,
            "datasets": [{"name": "manifest", "root": str(tiny_manifest)}],
        },
        "models": [model],
        "engine": {"workers": 0, "torch_threads": 1},
    }
    summary = run_session(assemble(parse_run_file(data)), tmp_path / "run").summary
    assert {cell.model for cell in summary.cells} == {"g"}
    assert {facts.label for facts in summary.models} == {"g"}
    metrics = summary.tables["repeats"]["metric"].to_list()
    assert metrics
    assert read_ledger(tmp_path / "run")[0]["asked"].keys() == {"g", "g, sample 2"}
    # What was said is kept as it came, with the format that boxes were asked for in.
    (said,) = next(read_transcripts(tmp_path / "run", ("g", "manifest"))).answers()
    kept = said.values["replies"]["0"]
    assert json.loads(kept["presence"]["text"]) == {"answer": "yes"}
    assert json.loads(kept["place"]["text"]) == {"boxes": [[100, 100, 500, 500]]}
    assert kept["box_format"] == "thousandths"
