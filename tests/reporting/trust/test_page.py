"""The page: every figure is in the summaries, text stays text, nothing is loaded, several benchmarks give one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from medground.benchmarks.printing import text
from medground.benchmarks.results import Cell, ModelFacts, Summary, Verdict
from medground.reporting import report
from medground.reporting.runs import Run
from medground.reporting.trust.page import render

from ..conftest import IMAGE, SCRIPT
from ..reading import Element, read_text
from .conftest import run_of


@pytest.fixture
def page(runs: list[Run]) -> Element:
    return read_text(render(runs, "details.html"))


def test_the_first_screen_holds_a_tile_for_every_model_and_question(page: Element) -> None:
    assert page.all("h1")[0].text == "Do these two models look at the evidence?"
    (board,) = page.all("table", class_="board")
    tiles = [td for td in board.all("td") if td.attributes.get("role") == "cell"]
    assert len(tiles) == 4 * 4 + 4
    assert "Not asked: answers no questions" in board.text
    assert len(page.all("div", class_="one")) == 4


def test_every_figure_of_the_matrix_is_in_the_summaries(page: Element, suite: list[Summary]) -> None:
    known = {
        text(summary.spec(c.metric), number, 1)
        for summary in suite
        for v in summary.verdicts
        for c in v.roles.values()
        for number in (c.value, c.low, c.high, c.floor)
        if number is not None
    }
    (board,) = page.all("table", class_="board")
    shown = [e.text for e in board.all("span", class_="fig")]
    figures = [re.sub(r"[a-z]+$", "", figure) for figure in shown]
    assert len(figures) == 5  # what cannot be told has none in large type
    assert set(figures) <= known


def test_every_verdict_has_a_line_with_its_reason(page: Element, suite: list[Summary]) -> None:
    for number, summary in enumerate(suite):
        (section,) = page.all("section", id=f"b{number}")
        for v in summary.verdicts:
            assert v.because in section.text
    assert "Mass" in page.all("section", id="b0")[0].text


def test_sections_lead_to_the_details_and_vanish_without_them(runs: list[Run]) -> None:
    assert "Cases and figures" in render(runs, "details.html")
    assert "Cases and figures" not in render(runs)


def test_nothing_is_loaded_and_no_style_or_handler_stands_in_the_markup(page: Element) -> None:
    def every(element: Element) -> list[Element]:
        return [element, *(e for child in element.children for e in every(child))]

    for element in every(page):
        assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
        for name in ("src", "srcset", "action"):
            assert name not in element.attributes
        assert not element.attributes.get("href", "#").startswith(("http:", "https:", "//", "javascript:"))
    (meta,) = [m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in meta.attributes["content"]
    assert "unsafe" not in meta.attributes["content"]


def test_text_that_came_from_data_stays_text() -> None:
    attack = f"{SCRIPT}{IMAGE}{{{{ 7 * 7 }}}}"
    headline = Cell(benchmark=attack, model=attack, metric=attack, value=0.5, n=1, dataset=attack, group="")
    groups = [replace(headline, scope=attack, group=f"{attack}{k}") for k in range(2)]
    verdict = Verdict(
        benchmark=attack,
        question="points",
        model=attack,
        answer="yes",
        because=attack,
        dataset=attack,
        roles={"headline": headline},
    )
    summary = Summary(
        cells=[headline, *groups],
        verdicts=[verdict],
        benchmark=attack,
        reading=attack,
        models=[ModelFacts(label=attack, kind=attack)],
        described=attack,
        notes=[attack],
    )
    page = read_text(render([run_of(summary)]))
    assert not page.all("img")
    assert len(page.all("script")) == 1
    assert attack in page.all("section", id="b0")[0].text


def test_several_benchmarks_give_a_trust_report_and_its_details(
    suite: list[Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_folder = {Path(f"r{k}"): run_of(summary) for k, summary in enumerate(suite)}
    monkeypatch.setattr(report, "read_run", lambda folder, _: by_folder[folder])
    for run in by_folder.values():
        run.__dict__["tables"] = {}
    path = report.write_report(list(by_folder), tmp_path / "trust.html")
    assert "Do these two models look at the evidence?" in path.read_text()
    assert 'href="trust-details.html"' in path.read_text()
    assert (tmp_path / "trust-details.html").exists()
    assert path.stat().st_size < 12_000_000


def test_limits_of_the_run_file_are_held_against_the_cells(suite: list[Summary]) -> None:
    stated = {"limits": [{"question": "points", "above_floor_by": 20}, {"metric": "pointing", "at_least": 95}]}
    page = read_text(render([run_of(suite[0], stated)]))
    rows = [[c.text for c in row.children] for row in page.all("section", id="page")[0].all("tr")]
    assert ["“points” above its floor by 20", "looker", "d", "60.0 [58.0, 62.0]", "passed"] in rows
    assert ["pointing at least 95", "looker", "d", "60.0 [58.0, 62.0]", "failed"] in rows


def test_a_summary_with_scores_alone_makes_a_proper_page(suite: list[Summary]) -> None:
    only = replace(suite[0], verdicts=[suite[0].verdicts[1]], models=[ModelFacts(label="looker")])
    html = render([run_of(Summary.from_json(json.loads(json.dumps(only.to_json()))))])
    page = read_text(html)
    assert page.all("h1")[0].text == "Does this model look at the evidence?"
    (board,) = page.all("table", class_="board")
    assert len([td for td in board.all("td") if td.attributes.get("role") == "cell"]) == 2
