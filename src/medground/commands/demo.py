"""``medground demo``: all five benchmarks on drawn radiographs, run as any suite is; no network, no data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medground import terminal
from medground.benchmarks.results import Cells, Summary, Verdict
from medground.running.options import available_cores
from medground.running.progress import progress_on
from medground.suite import Suite, SuiteReport, run_suite, suite_of

SEED = 11
"""Of the phantoms; the models that ship were trained on those of other seeds."""

AGENT = "medground.benchmarks.cxreasondial.agent:Agent"
NORMAL = "medground.benchmarks.cxreasondial.baselines:AllNormal"


def demo_suite(scale: float = 1.0) -> Suite:
    """Return the suite of the demo; ``scale`` multiplies the number of cases of every benchmark."""

    def cases(count: int) -> int:
        return max(4, round(count * scale))

    def phantoms(count: int) -> dict[str, Any]:
        return {
            "name": "phantom",
            "cases": cases(count),
            "size": 224,
            "seed": SEED,
            "workers": min(2, available_cores()),
        }

    data: dict[str, Any] = {
        "name": "demo",
        "benchmarks": [
            {"name": "xbench", "datasets": [phantoms(240)]},
            {"name": "medical_checklist", "pairs": cases(120)},
            {"name": "heal_medvqa", "datasets": [phantoms(60)], "quartets": cases(20), "questions": [2, 3]},
            {"name": "cxreasondial", "phantoms": cases(40), "size": 224},
            {"name": "gridvqa_x", "per_bucket": 4, "explainers": [{"name": "emap"}, {"name": "multiviz"}]},
        ],
        "models": [
            {"name": "reference"},
            {"name": "blind", "label": "reference (blind)", "of": {"name": "reference"}},
            {"name": "baseline_class_prior", "label": "class prior"},
            {"name": "baseline_all_foreground", "label": "all foreground"},
            {"name": "small_chat", "label": "small chat"},
            {"name": "small_chat_twin", "label": "shortcut twin"},
            {"name": AGENT, "label": "measuring agent"},
            {"name": NORMAL, "label": "everything is normal"},
            {"name": "gridvqa_pure", "label": "reasons"},
            {"name": "gridvqa_spur", "label": "counts words"},
        ],
    }
    chosen = {
        "xbench": ["reference", "reference (blind)", "class prior", "all foreground"],
        "medical_checklist": ["reference", "reference (blind)", "small chat"],
        "heal_medvqa": ["small chat", "shortcut twin"],
        "cxreasondial": ["measuring agent", "everything is normal", "small chat"],
        "gridvqa_x": ["reasons", "counts words"],
    }
    for part in data["benchmarks"]:
        part["models"] = chosen[part["name"]]
    return suite_of(data, Path.cwd())


def run_demo(out: Path) -> None:
    """Run the demo, say in a few lines what it shows, and write the report."""
    terminal.say("Drawing chest radiographs whose every fact is known, then asking five questions of ten small models.")
    done = run_suite(demo_suite(), out, progress=progress_on())
    for line in explain({label: report.summary for label, report in done.parts}):
        terminal.say(line)
    terminal.say(f"\nreport: {write(done)}")


def write(done: SuiteReport) -> Path:
    """Write the trust report of a finished demo and return where it lies."""
    from medground.reporting.report import write_report

    return write_report([done.folder])


def explain(summaries: Mapping[str, Summary]) -> list[str]:
    """Return five lines that read the demo's numbers aloud, one a benchmark."""
    return [
        "",
        f"1. {_recognition(summaries['xbench'])}",
        *(f"{i}. {_verdicts(summaries[name])}" for i, name in enumerate(list(summaries)[1:], start=2)),
        "Models that ship were trained on pictures drawn by the same program: this shows that the instrument works.",
    ]


def _recognition(summary: Summary) -> str:
    cells = Cells(summary.cells)

    def percent(model: str, metric: str) -> str:
        cell = cells.one(model=model, metric=metric, scope="macro", subset="main")
        return "undefined" if cell is None or cell.value is None else f"{100 * cell.value:.0f} %"

    return (
        f"xbench: the reference model ranks findings with an AUC of {percent('reference', 'auc')} (blind: "
        f"{percent('reference (blind)', 'auc')}) and points at them in {percent('reference', 'pointing')} of cases; "
        f"looking where a finding usually is gives {percent('class prior', 'pointing')}."
    )


def _verdicts(summary: Summary) -> str:
    """Return one answer a question and model, in the order of the summary."""
    told = {(v.question, v.method, v.model): v for v in summary.verdicts}
    return f"{summary.benchmark}: " + "; ".join(_verdict(summary, verdict) for verdict in told.values()) + "."


def _verdict(summary: Summary, verdict: Verdict) -> str:
    who = f"{verdict.method} on {verdict.model}" if verdict.method else verdict.model
    return f"{who} {summary.question(verdict.question).title.lower()}: {verdict.answer}"
