"""Models by what they were pretrained on: plain means and ranges, who has seen the data left out."""

from __future__ import annotations

from typing import Any

import polars as pl

from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.regimes import known_regimes, regimes
from medground.benchmarks.xbench.specs import specs
from medground.registry import load

SPECS = {spec.name: spec for spec in specs(resolve_protocol("xbench"))}


def task(model: str, pretrained_on: str | None, **more: Any) -> dict[str, Any]:
    return {"model": model, "dataset": "d", "kind": "zero-shot", "seen": None, "pretrained_on": pretrained_on} | more


def cell(model: str, metric: str, value: float | None, scope: str = "macro", n: int = 30) -> dict[str, Any]:
    place = {"model": model, "dataset": "d", "subset": "main", "group": "", "scope": scope}
    return place | {"metric": metric, "value": value, "n": n}


TASKS = [
    task("clip", "general"),
    task("kad", "chest radiographs"),
    task("mavl", "chest radiographs"),
    task("seen", "chest radiographs", seen="images"),
    task("own", None),
    task("prior", None, kind="baseline"),
]
CELLS = pl.DataFrame(
    [
        *(cell(model, "auc", value) for model, value in (("clip", 0.5), ("kad", 0.8), ("mavl", 0.6), ("seen", 1.0))),
        *(cell(model, "pointing", value) for model, value in (("clip", 0.1), ("kad", None), ("mavl", 0.3))),
        *(cell(model, "pointing", 0.2, "pairs", n) for model, n in (("clip", 30), ("kad", 28), ("mavl", 30))),
        cell("mavl", "dice@best", 0.25),
    ]
)


def test_a_line_a_regime_with_mean_and_range() -> None:
    table = regimes(CELLS, TASKS, "macro", SPECS)
    general, chest, unknown = table.to_dicts()
    assert (general["pretrained on"], general["models"], general["AUC"]) == ("general", "clip", "50.00")
    assert (chest["models"], chest["AUC"]) == ("kad, mavl", "70.00 (60.00 to 80.00; 2 models)")
    assert chest["Pointing"] == "30.00"  # the other model has none
    assert chest["regions"] == "28 to 30"
    assert (unknown["pretrained on"], unknown["models"], unknown["AUC"]) == ("not stated", "own", None)
    assert "prior" not in str(table.to_dicts())
    assert "seen" not in table["models"].to_list()


def test_the_view_needs_two_regimes() -> None:
    assert known_regimes(TASKS) == ["general", "chest radiographs"]
    assert known_regimes(TASKS[1:]) == ["chest radiographs"]
    assert known_regimes([task("prior", "general", kind="baseline")]) == []


def test_the_papers_models_state_what_they_were_pretrained_on() -> None:
    general, figures = {"clip"}, {"biomedclip", "pmc_clip", "m3ae", "llava_med"}
    for name in ("clip", "biomedclip", "pmc_clip", "m3ae", "llava_med", "medclip", "medklip", "kad", "mavl", "carzero"):
        expected = "general" if name in general else "biomedical" if name in figures else "chest radiographs"
        assert load("model", name).info.pretrained_on == expected
