"""The report as a whole: where it lies, that its numbers are the run's, and that nothing in it can run or load."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.reporting.report import write_report
from medground.reporting.runs import read_run
from medground.running.reading import reading_path

from .conftest import FINDINGS, IMAGE, SCRIPT, make_run
from .reading import Element, block, read, tables

COUNT = re.compile(r"^[\d,]+$")


@pytest.fixture(scope="module")
def page(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Element:
    return read(write_report([finished], tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="module")
def summary(finished: Path) -> dict:
    return json.loads((reading_path(finished) / "summary.json").read_text())


def test_it_lies_in_the_run_s_folder_or_where_it_is_told(run_copy: Path, tmp_path: Path) -> None:
    assert write_report([run_copy]) == run_copy / "report.html"
    assert write_report([run_copy], tmp_path) == tmp_path / "report.html"
    named = tmp_path / "sub" / "mine.html"
    assert write_report([run_copy], named) == named
    assert named.read_bytes() == (run_copy / "report.html").read_bytes()


def test_several_runs_lie_in_the_working_directory(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_report([finished, finished]) == Path("report.html")
    assert (tmp_path / "report.html").exists()


def test_what_is_no_finished_run_is_refused(run_copy: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="a report needs a run"):
        write_report([])
    with pytest.raises(RunError, match="not a run folder"):
        write_report([tmp_path])
    (reading_path(run_copy) / "summary.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        write_report([run_copy])
    (reading_path(run_copy) / "summary.json").unlink()
    with pytest.raises(RunError, match="not finished"):
        write_report([run_copy])
    with pytest.raises(RunError, match="cannot be written"):
        write_report([make_run(tmp_path / "other")], Path("/proc/nothing/report.html"))


def test_the_top_says_models_data_protocol_date_and_answers(page: Element, finished: Path, summary: dict) -> None:
    (header,) = page.all("header")
    assert header.all("h1")[0].text == "Looker and Corner on Ours"
    assert read_run(finished).date in header.text
    assert " ".join(summary["described"].split()) in header.text
    assert "30 cases, 15 patients, 45 regions" in header.text
    assert "Corner: tells present from absent: yes; points at the finding: no;" in header.text
    warnings = [w.text for w in page.all("ul", class_="warnings")]
    assert any("1 of 45 maps are flat" in w and "1 of 30 cases could not be read" in w for w in warnings)


def printed(cell: dict, key: str = "value") -> str:
    plain = cell["metric"] in {"brier", "log_loss", "ece"}
    return f"{cell[key]:.4f}" if plain else f"{100 * cell[key]:.2f}"


def test_every_number_of_every_table_is_in_the_summary(page: Element, summary: dict) -> None:
    known = {printed(c) for c in summary["cells"] if c["value"] is not None}
    intervals = {f"[{printed(c, 'low')}, {printed(c, 'high')}]" for c in summary["cells"] if c["low"] is not None}
    counts = {str(c[k]) for c in summary["cells"] for k in ("n", "undefined", "flat", "failed")}
    counts |= {str(c["n"] + c["undefined"] + c["failed"]) for c in summary["cells"]}
    counts |= {str(task["pairs"]) for task in summary["data"]["tasks"]}
    counts.add(str(sum(task["cases"] for task in summary["data"]["tasks"][:1]) * len(FINDINGS)))  # annotated pairs
    seen = 0
    for rows in tables(page).values():
        for cell in [c for row in rows for c in row if c.tag == "td" and c.text]:
            value = cell.text.split()[0]
            seen += 1
            assert value in known | {"undefined"} or (COUNT.match(value) and value.replace(",", "") in counts), value
            for small in cell.all("small", class_="interval"):
                assert small.text in intervals
            for small in cell.all("small", class_="note"):
                assert {n.replace(",", "") for n in re.findall(r"[\d,]*\d", small.text)} <= counts
    assert seen > 150


def test_the_n_of_every_table_adds_up(page: Element, summary: dict) -> None:
    checked = 0
    for title, rows in tables(page).items():
        sizes = [row for row in rows if row[0].text in {"regions", "cases"}]
        for row in sizes:
            numbers = [int(c.text.split()[0].replace(",", "")) for c in row[1:]]
            missing = int(row[-1].text.split()[1]) if "no group" in row[-1].text else 0
            assert sum(numbers[:-1]) + missing == numbers[-1], title
            assert row[0].text == "cases" or numbers[-1] == 45
            checked += 1
        for row in rows[1:]:
            rests = re.match(r"(\d+) (\d+) undefined, \d+ flat, (\d+) failed", row[-1].text)
            if rests:
                assert sum(map(int, rests.groups())) == 45
                checked += 1
    assert checked >= 15


def test_every_number_of_every_figure_is_in_the_summary(page: Element, summary: dict) -> None:
    values = {round(100 * c["value"], 4) for c in summary["cells"] if c["value"] is not None}
    curves = {round(100 * v, 4) for c in summary["data"]["curves"] for v in c["dice"] if v is not None}
    bins = {v for r in summary["data"]["reliability"] for k in ("probability", "frequency") for v in r[k]}
    for figure in block(page, "figures"):
        known = bins if "reliability" in figure["anchor"] else values | curves
        known = {r["rank"] for r in summary["data"]["ranks"]} if "ranks" in figure["anchor"] else known
        along = "x" if figure["anchor"].endswith(("forest", "ranks")) else "y"
        for _, traces in figure["choices"]:
            for trace in traces:
                if trace.get("hoverinfo") != "skip":
                    assert {v for v in trace[along] if v is not None} <= known


def test_baselines_are_never_the_best(page: Element) -> None:
    for rows in tables(page).values():
        for row in rows:
            if "baseline" in row[0].text:
                assert not [mark for cell in row for mark in (*cell.all("strong"), *cell.all("u"))]


def test_searched_thresholds_are_called_optimistic_everywhere(page: Element) -> None:
    for title, rows in tables(page).items():
        for head in rows[0]:
            if "searched" in head.text.lower():
                assert "(optimistic)" in head.text
        if "searched" in title:
            assert "(optimistic)" in title


def policy(page: Element) -> dict[str, list[str]]:
    (meta,) = [m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"]
    parts = [part.split() for part in meta.attributes["content"].split(";")]
    return {name: values for name, *values in parts}


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_the_page_s_own_scripts_and_styles_and_nothing_else(page: Element) -> None:
    rules = policy(page)
    assert rules["default-src"] == ["'none'"]
    assert rules["base-uri"] == rules["form-action"] == ["'none'"]
    assert rules["img-src"] == ["data:", "blob:"]
    scripts = ["".join(s.parts) for s in page.all("script") if s.attributes.get("type") != "application/json"]
    assert rules["script-src"] == [digest(script) for script in scripts]
    assert rules["style-src"] == list(dict.fromkeys(digest("".join(s.parts)) for s in page.all("style")))
    assert "unsafe" not in str(rules)


def test_nothing_in_it_asks_the_network(page: Element) -> None:
    def every(element: Element) -> list[Element]:
        return [element, *(e for child in element.children for e in every(child))]

    for element in every(page):
        for name in ("src", "href", "srcset", "action", "poster"):
            assert element.attributes.get(name, "#").startswith(("#", "data:"))
        assert not [name for name in element.attributes if name.startswith("on") or name == "style"]


def test_text_that_came_from_data_stays_text(hostile: Path, tmp_path: Path) -> None:
    page = read(write_report([hostile], tmp_path, images="yes"))
    assert not page.all("img")
    assert not page.all("b")
    attributes = page.all("script")
    assert all(set(script.attributes) <= {"type", "id"} for script in attributes)
    assert len([s for s in attributes if not s.attributes]) == 3  # ours, plotly's, ours
    assert f"A {SCRIPT}" in page.all("h1")[0].text
    provenance = page.all("section", id="provenance")[0].text
    assert provenance.count(SCRIPT) > 5
    assert IMAGE in provenance
    cases = block(page, "xbench-0-cases")
    assert cases["pairs"][0]["case"].startswith(f"{SCRIPT}{IMAGE}")
    assert "{{ 7 * 7 }} </script><b>bold</b>" in cases["datasets"][0]["findings"]
    names = {t.get("name", "") for f in block(page, "figures") for _, traces in f["choices"] for t in traces}
    assert "A &lt;script&gt;window.hit = 1&lt;/script&gt;" in names


def test_tables_travel_with_the_page_in_three_forms(page: Element) -> None:
    links = [a for a in page.all("a") if "download" in a.attributes]
    kinds = {a.attributes["download"].rpartition(".")[2] for a in links}
    assert kinds == {"csv", "md", "tex", "yaml"}
    for link in links:
        text = base64.b64decode(link.attributes["href"].partition("base64,")[2]).decode()
        assert text.strip()


def test_runs_side_by_side_keep_their_names_apart(finished: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", prefix="second")
    page = read(write_report([finished, other], tmp_path / "two.html"))
    heads = [row[0].text for row in tables(page)["Pointing and Dice, mean over classes"]]
    assert heads[1:5] == ["Looker · small", "Corner · small", "Looker · other", "Corner · other"]
    assert len(page.all("section", id="provenance")[0].all("h3")) == 2


def test_a_run_beside_itself_is_shown_once(finished: Path, tmp_path: Path) -> None:
    page = read(write_report([finished, finished], tmp_path / "same.html"))
    heads = [row[0].text for row in tables(page)["Pointing and Dice, mean over classes"]]
    assert [head.split()[0] for head in heads[1:3]] == ["Looker", "Corner"]
    assert len(heads) == 5


def test_protocols_never_share_a_table(finished: Path, tmp_path: Path) -> None:
    config = {"protocol": {"base": "xbench", "scope": "class"}, "replicates": 0}
    folder = tmp_path / "by-class"
    files = folder.parent / "by-class-files"
    dataset = [{"name": "manifest", "label": "Ours", "root": str(files / "data")}]
    other = make_run(folder, benchmark={"name": "xbench", "datasets": dataset, **config})
    page = read(write_report([finished, other], tmp_path / "two.html"))
    titles = [h.text for h in page.all("h2")]
    assert "Ours (xbench)" in titles
    assert "Ours (xbench (changed))" in titles
    assert "points at the finding: cannot be told" in page.all("header")[0].text


def test_a_benchmark_without_a_component_shows_its_tables(run_copy: Path) -> None:
    manifest = json.loads((run_copy / "manifest.json").read_text())
    manifest["benchmark"]["name"] = "somebody_elses"
    (run_copy / "manifest.json").write_text(json.dumps(manifest))
    (reading_path(run_copy) / "summary.json").write_text(
        json.dumps(Summary(benchmark="somebody_elses", notes=[SCRIPT]).to_json())
    )
    (reading_path(run_copy) / "tables" / "long.csv").write_text(
        "name,value\n" + "".join(f"{SCRIPT},{k}\n" for k in range(600))
    )
    page = read(write_report([run_copy]))
    found = tables(page)
    assert len(found["Long"]) == 501
    assert found["Long"][1][0].text == SCRIPT
    assert found["Long"][1][1].attributes["data-value"] == "0.0"
    assert "100 more rows are in tables/long.csv" in page.text
    assert len(found["Overview"]) == 5
    assert page.all("section", id="provenance")


def test_findings_become_rows_where_they_are_many(tmp_path: Path) -> None:
    many = tuple(f"Finding {k}" for k in range(12))
    folder = make_run(tmp_path / "wide", findings=many)
    page = read(write_report([folder]))
    rows = tables(page)["Pointing by finding"]
    assert [row[0].text for row in rows[1:13]] == list(many)
    assert [cell.text for cell in rows[0][:4]] == ["finding", "regions", "Looker", "Corner"]


def test_the_tables_follow_the_order_of_the_findings(page: Element) -> None:
    rows = tables(page)["Pointing by finding"]
    assert [cell.text for cell in rows[0]] == ["model", *FINDINGS, "Mean over classes"]
