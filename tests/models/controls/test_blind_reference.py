"""The blind twin of the reference model: chance, no better than the class prior, and the report says so."""

from __future__ import annotations

from pathlib import Path

from medground.config import parse_run_file
from medground.reporting.report import write_report
from medground.session import assemble, run_session


def test_a_twin_that_does_not_look_knows_nothing(tmp_path: Path) -> None:
    model = {"name": "reference", "device": "cpu"}
    data = {
        "name": "r",
        "benchmark": {"name": "xbench", "replicates": 0, "datasets": [{"name": "phantom", "cases": 40}]},
        "models": [model, {"name": "blind", "of": model}],
        "engine": {"workers": 1, "torch_threads": 1},
    }
    summary = run_session(assemble(parse_run_file(data)), tmp_path / "run").summary
    (auc,) = [c for c in summary.cells if (c.model, c.metric, c.scope) == ("blind", "auc", "macro")]
    assert auc.low is not None
    assert auc.high is not None
    assert auc.low <= 0.5 <= auc.high
    (pointing,) = [c for c in summary.cells if (c.model, c.metric, c.scope) == ("blind", "pointing", "macro")]
    assert pointing.value is not None
    assert pointing.floor is not None
    assert pointing.value <= pointing.floor + 0.02
    verdicts = {v.question: v.answer for v in summary.verdicts if v.model == "blind"}
    assert "yes" not in verdicts.values()
    (line,) = [
        r for r in summary.tables["looking"].to_dicts() if r["metric"] == "pointing" and r["scope"] in ("all", "macro")
    ]
    assert line["low"] > 0.3
    html = write_report([tmp_path / "run"]).read_text()
    assert "What looking adds" in html
    assert line["words"] in html
