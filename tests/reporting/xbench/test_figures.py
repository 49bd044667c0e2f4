"""Figures: plotly takes them, models look alike everywhere, and names are text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medground.reporting.figures.base import ReportFigure, text
from medground.reporting.runs import read_run
from medground.reporting.xbench.figures.calibration import reliability
from medground.reporting.xbench.figures.correlation import auc_against_pointing, findings_against
from medground.reporting.xbench.figures.groups import forest, short, size_against_pointing
from medground.reporting.xbench.figures.ranks import ranking
from medground.reporting.xbench.figures.searching import gain_of_searching
from medground.reporting.xbench.figures.thresholds import threshold_curves
from medground.reporting.xbench.pool import Pooled


@pytest.fixture(scope="module")
def pool(finished: Path) -> Pooled:
    return Pooled.of([read_run(finished)])


@pytest.fixture(scope="module")
def drawn(pool: Pooled) -> list[ReportFigure]:
    return [
        threshold_curves(pool, "Ours", "curves"),
        size_against_pointing(pool, "Ours", "size"),
        forest(pool, "Ours", "forest", ["pointing", "auc"]),
        reliability(pool, "Ours", "reliability"),
        auc_against_pointing(pool, "auc", {"CLIP <b>": 7.42}),
        *(figure for figure in (ranking(pool, "Ours", "ranks"), findings_against(pool, "findings")) if figure),
        gain_of_searching(pool, "searching"),
    ]


def test_plotly_takes_every_choice_of_every_figure(drawn: list[ReportFigure]) -> None:
    import plotly.graph_objects as go

    for figure in drawn:
        assert figure.title
        assert figure.caption
        for traces in figure.choices.values():
            go.Figure(data=[{**trace, "type": "scatter"} for trace in traces], layout=figure.layout)


def test_a_model_looks_the_same_in_every_figure_and_like_no_other(drawn: list[ReportFigure]) -> None:
    looks: dict[str, set[Any]] = {}
    for figure in drawn:
        for trace in [t for traces in figure.choices.values() for t in traces if t["meta"]["series"] != "grey"]:
            symbol = trace["marker"]["symbol"].removesuffix("-open")
            looks.setdefault(trace["name"], set()).add((trace["meta"]["series"], symbol, trace["line"]["dash"]))
    assert all(len(found) == 1 for found in looks.values())
    assert len(set.union(*looks.values())) == len(looks) == 4


def test_searched_and_fixed_points_lie_on_the_curve(pool: Pooled) -> None:
    figure = threshold_curves(pool, "Ours", "curves")
    for finding, traces in figure.choices.items():
        curves = {t["name"]: dict(zip(t["x"], t["y"], strict=True)) for t in traces if t["mode"] == "lines"}
        points = [t for t in traces if t["mode"] == "markers"]
        assert len(points) == 8, finding
        for point in points:
            assert curves[point["name"]][point["x"][0]] == pytest.approx(point["y"][0], abs=1e-3)


def test_intervals_reach_from_low_to_high(pool: Pooled) -> None:
    figure = forest(pool, "Ours", "forest", ["pointing"])
    looker = figure.choices["Pointing"][0]
    cell = pool.cell("Looker", "Ours", "pointing", "class", "Nodule")
    assert cell is not None
    assert looker["x"][0] - looker["error_x"]["arrayminus"][0] == pytest.approx(100 * (cell.low or 0), abs=1e-3)
    assert looker["x"][0] + looker["error_x"]["array"][0] == pytest.approx(100 * (cell.high or 0), abs=1e-3)


def test_too_few_models_give_a_reason_and_no_line(pool: Pooled) -> None:
    figure = auc_against_pointing(pool, "auc", {})
    assert "No line: fewer than 3 points." in figure.caption
    assert [t["mode"] for t in figure.choices[""]] == ["markers", "markers"]


def test_three_models_give_a_line_and_its_r2(pool: Pooled) -> None:
    fit = {"models": ["Looker", "Corner"], "auc": [0.6, 0.7], "pointing": [0.2, 0.4], "residuals": [0.1, None]}
    line = fit | {"r2": 0.75, "slope": 2.0, "intercept": -1.0, "reason": None}
    run = pool.runs[0]
    changed = Pooled(
        [run.__class__(**{**vars(run), "summary": replace(run.summary, data={**run.data, "correlation": line})})], {}
    )
    changed = Pooled(changed.runs, {label: (changed.runs[0], label) for label in pool.models})
    figure = auc_against_pointing(changed, "auc", {})
    assert figure.caption == "R² 0.75 over 2 models; baselines take no part."
    drawn = figure.choices[""][-1]
    assert (drawn["x"], drawn["y"]) == ([60, 70], pytest.approx([20, 40]))
    assert "+10.00 from the line" in figure.choices[""][0]["hovertemplate"]


def test_ranks_reach_from_low_to_high_and_say_how_often_a_model_is_first(pool: Pooled) -> None:
    figure = ranking(pool, "Ours", "ranks")
    assert figure is not None
    records = [r for r in pool.runs[0].data["ranks"] if r["metric"] == "pointing"]
    traces = figure.choices["Pointing"]
    assert [t["name"] for t in traces] == [r["model"] for r in records]
    for trace, record in zip(traces, records, strict=True):
        (x,), bars = trace["x"], trace["error_x"]
        assert (x - bars["arrayminus"][0], x, x + bars["array"][0]) == (record["low"], record["rank"], record["high"])
        assert f"first in {100 * record['first']:.1f} %" in trace["hovertemplate"]
    assert ranking(pool, "another", "ranks") is None


def test_the_gain_of_searching_is_the_gap(pool: Pooled) -> None:
    figure = gain_of_searching(pool, "searching")
    for trace in figure.choices["Dice gap (optimistic)"]:
        cell = pool.cell(trace["name"], "Ours", "dice_gap")
        assert cell is not None
        assert cell.value is not None
        assert trace["x"] == ["Ours"]
        assert trace["y"] == [pytest.approx(100 * cell.value, abs=1e-3)]


def test_every_finding_is_a_point_with_its_distance_from_the_line(pool: Pooled) -> None:
    figure = findings_against(pool, "findings")
    assert figure is not None
    entries = {entry["model"] or "all models": entry for entry in pool.runs[0].data["correlation_by_class"]}
    assert list(figure.choices) == list(entries)
    for name, traces in figure.choices.items():
        points = [p for trace in traces if trace["mode"] == "markers" for p in trace["x"]]
        assert points == pytest.approx([100 * p["auc"] for p in entries[name]["points"]], abs=1e-3)
        r2 = entries[name]["r2"]
        assert f"R² {r2:.2f}" in figure.caption if r2 is not None else f"{name}: no line" in figure.caption


def test_size_bands_fit_below_an_axis() -> None:
    bands = ["below 0.01 of the picture", "0.01 to 0.05 of the picture", "0.15 and more of the picture"]
    assert [short(band) for band in bands] == ["< 0.01", "0.01-0.05", "≥ 0.15"]


def test_markup_in_names_is_text_for_plotly() -> None:
    assert text('<a href="x">A & B</a>') == '&lt;a href="x"&gt;A &amp; B&lt;/a&gt;'
    assert text("a" * 50) == "a" * 39 + "…"
