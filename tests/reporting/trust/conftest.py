"""Hand-made summaries of a suite: three models, three benchmarks, every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from medground.benchmarks.results import Answer, Cell, ModelFacts, Question, Summary, Verdict
from medground.metrics.spec import MetricSpec
from medground.reporting.runs import Run

POINTING = MetricSpec("pointing", "Pointing", floor="class prior", floor_metric="prior", digits=2)
AUC = MetricSpec("auc", "AUC", statistic="ranking", floor="chance", floor_value=0.5)
TURNED = MetricSpec("turned", "Yes to no", floor="base rate", floor_value=0.05)
SCORE = MetricSpec("score", "Synergy", unit="none", family="score", bounds=None, digits=3)


def cell(benchmark: str, model: str, metric: str, value: float, half: float = 0.02, **more: object) -> Cell:
    given = {"n": 240, "low": value - half, "high": value + half} | more
    return Cell(benchmark=benchmark, model=model, metric=metric, value=value, **given)  # type: ignore[arg-type]  # a test's own


def verdict(
    headline: Cell, question: str, answer: Answer, because: str = "It does.", notes: Sequence[str] = (), **roles: Cell
) -> Verdict:
    return Verdict(
        benchmark=headline.benchmark,
        question=question,
        model=headline.model,
        dataset=headline.dataset,
        answer=answer,
        because=because,
        margin=0.02,
        roles={"headline": headline, **roles},
        notes=tuple(notes),
    )


@pytest.fixture
def suite() -> list[Summary]:
    looks = cell("grounding", "looker", "pointing", 0.6, dataset="d")
    prior = cell("grounding", "looker", "prior", 0.3, dataset="d")
    gain = cell("grounding", "looker", "pointing_gain", 0.3, dataset="d")
    groups = [
        cell("grounding", "looker", "pointing", value, scope="class", group=name, dataset="d", floor=0.3)
        for name, value in (("Mass", 0.7), ("Nodule", 0.4))
    ]
    grounding = Summary(
        cells=[looks, prior, *groups],
        verdicts=[
            verdict(looks, "points", "yes", floor=prior, difference=gain),
            verdict(cell("grounding", "looker", "auc", 0.9, floor=0.5), "recognises", "yes", notes=["seen"]),
            verdict(cell("grounding", "random", "pointing", 0.3), "points", "no", "It does not.", floor=prior),
        ],
        benchmark="grounding",
        reading="strict",
        models=[ModelFacts(label="random", kind="baseline"), ModelFacts(label="looker", kind="zero-shot")],
        metrics=[POINTING, AUC],
        described="strict: in one sentence.",
        notes=["a note"],
    )
    twin = cell("perturbation", "talker (blind)", "turned", 0.1)
    perturbation = Summary(
        cells=[twin],
        verdicts=[
            verdict(cell("perturbation", "talker", "turned", 0.59), "words", "in part", "Half of it.", twin=twin),
            verdict(twin, "words", "no", "It reads only the words."),
        ],
        benchmark="perturbation",
        models=[
            ModelFacts(label="talker", kind="zero-shot"),
            ModelFacts(label="talker (blind)", twin_of="talker"),
            ModelFacts(label="looker", missing=("reply",)),
        ],
        metrics=[TURNED],
    )
    own = Question(key="own", title="Does its own thing", asks="Does it?")
    few = verdict(cell("other", "talker", "score", 4.0, 3.0), "own", "cannot be told", "Too few.", notes=["few"])
    other = Summary(cells=[], verdicts=[few], benchmark="other", metrics=[SCORE], questions=[own])
    return [grounding, perturbation, other]


@pytest.fixture
def runs(suite: list[Summary]) -> list[Run]:
    return [run_of(summary) for summary in suite]


def run_of(summary: Summary, config: Mapping[str, object] | None = None) -> Run:
    manifest = {
        "benchmark": {"name": summary.benchmark},
        "environment": {"medground": "1", "python": "3.11", "platform": "x", "packages": {"torch": "2"}},
        "sessions": [{"started": "2026-01-01", "ended": "2026-01-02T03:04:05", "outcome": "finished"}],
        "reading": summary.reading,
        "settings": {"torch_threads": 1},
        "plan": [],
    }
    name = f"run of {summary.benchmark}"
    return Run(
        Path("runs") / "r", {"name": name, **(config or {})}, f"name: {name}\n", manifest, summary, "ab" * 32, []
    )
