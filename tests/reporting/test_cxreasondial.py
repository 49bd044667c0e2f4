"""A dialogue in the report reads like a conversation, with evidence, verdict and overlay; nothing of it runs."""

import json

import pytest

from medground.config import parse_run_file
from medground.reporting.report import write_report
from medground.session import assemble, run_session


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run = parse_run_file(
        {
            "name": "dial",
            "seed": 4,
            "benchmark": {"name": "cxreasondial", "phantoms": 4, "size": 128},
            "models": [{"name": "medground.benchmarks.cxreasondial.agent:Agent", "label": "agent <script>"}],
        }
    )
    out = tmp_path_factory.mktemp("runs") / "dial"
    return run_session(assemble(run), out).folder


def test_dialogues_are_shown_turn_by_turn(folder):
    page = write_report([folder]).read_text(encoding="utf-8")
    reading = next(folder.glob("readings/*/summary.json"))
    turns = next(iter(json.loads(reading.read_text())["data"]["dialogues"].values()))
    assert turns[0]["query"].replace("'", "&#39;") in page
    assert "Measured:" in page
    assert "Attacks on the judge" in page or "canaries" not in page
    assert "agent <script>" not in page
    assert ("data:image/png" in page) == any("visual" in turn["evidence_types"] for turn in turns)
