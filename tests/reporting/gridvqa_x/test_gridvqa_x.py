"""The report of GridVQA-X: from a real small run of the analytic pair and from summaries that say what they please."""

from __future__ import annotations

import copy
import json
import re
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from medground.config import parse_run_file
from medground.reporting.gridvqa_x.component import compose
from medground.reporting.gridvqa_x.pictures import FIGURES, _outline, drawings
from medground.reporting.report import write_report
from medground.reporting.runs import Run, read_run
from medground.running.options import Options
from medground.running.reading import reading_path
from medground.running.run import execute
from medground.session import assemble

from ..reading import Element, read, tables

SCRIPT = '"><script>window.hit = 1</script>'


def make(folder: Path, models: list[str], *explainers: str) -> Path:
    """Run two scenes a bucket on analytic models."""
    spec = {
        "name": folder.name,
        "benchmark": {
            "name": "gridvqa_x",
            "per_bucket": 2,
            "pictures": 1,
            "replicates": 20,
            "explainers": [{"name": name} for name in explainers],
        },
        "models": [{"name": name} for name in models],
        "seed": 1,
    }
    session = assemble(parse_run_file(spec))
    execute(session.benchmark, folder, config=session.run.model_dump(mode="json"), options=Options(workers=0))
    return folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("grid") / "pair", ["gridvqa_rule", "gridvqa_counter"], "dime", "emap")


@pytest.fixture(scope="module")
def run(pair: Path) -> Run:
    return read_run(pair)


@pytest.fixture(scope="module")
def page(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Element:
    return read(write_report([pair], tmp_path_factory.mktemp("report")))


def changed(run: Run, **fields: Any) -> Run:
    """Return a run whose summary says something else."""
    return replace(run, summary=replace(run.summary, data={**copy.deepcopy(dict(run.data)), **fields}))


def test_models_stand_in_the_paper_s_order_and_every_verdict_is_said(run: Run, page: Element) -> None:
    assert "gridvqa_rule and gridvqa_counter" in page.all("h1")[0].text
    said = [e.text for e in page.all("li", class_="verdict")]
    assert len(said) == len(run.data["local"]) + 1
    first = run.data["local"][0]
    assert f"gridvqa_rule {100 * first['reasoning']:.1f} %, gridvqa_counter {100 * first['shortcut']:.1f} %" in said[0]
    assert f"{100 * first['difference']:+.1f} points [{100 * first['low']:.1f}, {100 * first['high']:.1f}]" in said[0]


@pytest.mark.parametrize(
    ("verdict", "sign"),
    [
        ("tells them apart", "yes"),
        ("treats them alike", "no"),
        ("is not shown to tell them apart", "undecided"),
        ("points the wrong way", "no"),
        ("undefined", "undecided"),
    ],
)
def test_a_sign_follows_the_verdict(run: Run, verdict: str, sign: str) -> None:
    lines = [v | {"verdict": verdict} for v in run.data["local"]]
    assert compose([changed(run, local=lines)], "auto").summary[0][0] == sign


def test_explainers_beyond_a_screenful_are_counted(run: Run) -> None:
    lines = [v | {"method": f"m{k}"} for k in range(20) for v in run.data["local"]]
    summary = compose([changed(run, local=lines)], "auto").summary
    assert len(summary) <= 4
    assert sum(int(re.search(r": (\d+) of 21", text)[1]) for _, text in summary) == 21  # type: ignore[index]  # it must match


def test_a_pair_that_does_not_differ_is_warned_of(run: Run) -> None:
    def warned(by_shortcut: float) -> list[str]:
        place = ("gridvqa_counter", "pure", "accuracy", "all")
        cells = [
            replace(c, value=by_shortcut) if (c.model, c.dataset, c.metric, c.scope) == place else c
            for c in run.summary.cells
        ]
        changed = replace(run, summary=replace(run.summary, cells=cells))
        return list(compose([changed], "auto").sections[0].content["warnings"])

    assert warned(1.0)
    assert not warned(0.1)


def test_tables_hold_the_run_s_numbers_and_the_printed_ones(run: Run, page: Element) -> None:
    shown = {row.text for row in page.all("tr")}
    cells = run.tables["cells"].to_dicts()
    wanted = ("cross", "dime", "image_mass", "all")
    found = next(c for c in cells if (c["regime"], c["method"], c["metric"], c["scope"]) == wanted)
    start = f"dime: gridvqa_counter on pure {100 * float(found['value']):.1f}"
    assert any(row.startswith(start) for row in shown)
    printed = next(row for row in run.tables["published"].to_dicts() if row["table"] == "emap")
    assert any("as printed" in row and printed["published"] in row for row in shown)
    assert len(tables(page)) >= 8


def test_long_tables_are_folded(page: Element) -> None:
    folded = page.all("section", id="gridvqa-0-groups")[0].all("details")[0]
    assert "D3-M-count-d07" in folded.text
    assert "D2-SO-exists-d07" not in page.all("section", id="gridvqa-0-results")[0].text


def test_pictures_show_both_models_with_words_in_their_place(page: Element) -> None:
    drawn = page.all("section", id="gridvqa-0-pictures")[0].all("svg")
    assert 0 < len(drawn) <= FIGURES
    for svg in drawn:
        alt = svg.attributes["aria-label"]
        assert "gridvqa_rule says" in alt
        assert "gridvqa_counter says" in alt
        assert len(svg.all("image")) == 1
        assert svg.all("image")[0].attributes["href"].startswith("data:image/png;base64,")
    assert not [e for e in page.all("section", id="gridvqa-0-pictures")[0].all("rect") if "style" in e.attributes]


def test_figures_are_bounded_however_many_explainers_there_are(run: Run) -> None:
    pictures = copy.deepcopy(run.data["pictures"])
    for picture in pictures:
        picture["maps"] = [m | {"method": f"m{k}"} for k in range(25) for m in picture["maps"]]
    found = drawings(pictures, {r: v["model"] for r, v in run.data["regimes"].items()})
    assert len(found) == 25
    assert 25 <= sum(len(figures) for _, figures in found) <= FIGURES


def test_a_missing_map_is_said_and_a_flat_one_stays_white(run: Run) -> None:
    pictures = copy.deepcopy(run.data["pictures"])
    for picture in pictures:
        for held in picture["maps"]:
            if held["regime"] == "pure":
                held |= {
                    "image_map": None,
                    "text_map": None,
                    "image_mass": None,
                    "text_mass": None,
                    "reason": "no gradient",
                }
            else:
                held["image_map"] = [0.0] * 25
    for _, figures in drawings(pictures, {"pure": "a", "cross": "b"}):
        for drawn in figures:
            _, first, second = drawn.panels
            assert first.missing == "no gradient"
            assert {opacity for *_, opacity in second.squares} == {0.0}


def test_an_outline_is_the_edges_between_a_set_and_the_rest() -> None:
    cells = [[0, 0], [1, 0], [3, 2]]
    held = {(x, y) for x, y in cells}
    edges = sum((x + dx, y + dy) not in held for x, y in held for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)))
    assert _outline(cells, 10).count("M") == edges == 10
    assert _outline([list(c) for c in product(range(3), range(3))], 1).count("M") == 12


def test_what_comes_from_data_is_escaped(pair: Path, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(pair, copied)
    (reading_path(copied) / "sums.json").unlink()
    text = (reading_path(copied) / "summary.json").read_text()
    (reading_path(copied) / "summary.json").write_text(
        text.replace('"dime"', json.dumps(SCRIPT)).replace("gridvqa_rule", json.dumps(SCRIPT)[1:-1])
    )
    html = write_report([copied]).read_text()
    assert SCRIPT not in html
    assert "&lt;script&gt;window.hit" in html


def test_one_model_has_no_verdict_but_tables_and_pictures(tmp_path: Path) -> None:
    folder = make(tmp_path / "one", ["gridvqa_rule"], "dime")
    page = read(write_report([folder]))
    assert "One model" in page.all("ul", class_="summary")[0].text
    assert not page.all("li", class_="verdict")
    svg = page.all("section", id="gridvqa-0-pictures")[0].all("svg")[0]
    assert "gridvqa_rule says" in svg.attributes["aria-label"]


def test_two_runs_stand_side_by_side_by_name(pair: Path, tmp_path: Path) -> None:
    page = read(write_report([pair, pair], tmp_path))
    ids = [section.attributes["id"] for section in page.all("section")]
    assert len(set(ids)) == len(ids) == 9
