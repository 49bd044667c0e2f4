"""A dialogue in the report reads like a conversation, with evidence, verdict and overlay; judges stay apart."""

import json
import re

import pytest

from medground.commands.table import Wanted, table_of
from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.reporting.report import write_report
from medground.session import assemble, run_session

AGENT = {"name": "medground.benchmarks.cxreasondial.agent:Agent", "label": "agent <script>"}
PARROT = {"name": "medground.benchmarks.cxreasondial.baselines:Parrot", "label": "parrot"}
#: Declines in words, so that as a judge it gives no verdict at all.
DECLINES = {"name": "medground.benchmarks.cxreasondial.baselines:Refuser", "label": "declining judge"}


def ran(tmp_path_factory, name, models, **benchmark):
    roles = benchmark.pop("roles", {})
    run = parse_run_file(
        {
            "name": name,
            "seed": 4,
            "benchmark": {"name": "cxreasondial", "phantoms": 4, "size": 128, **benchmark},
            "models": models,
            "roles": roles,
        }
    )
    return run_session(assemble(run), tmp_path_factory.mktemp("runs") / name).folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return ran(tmp_path_factory, "dial", [AGENT, PARROT], history=["without_gt", "with_gt"])


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return ran(tmp_path_factory, "other", [PARROT], judge="llm", roles={"judges": [DECLINES]})


def turns_of(folder):
    reading = next(folder.glob("readings/*/summary.json"))
    return json.loads(reading.read_text())["data"]["dialogues"]


def test_dialogues_are_shown_turn_by_turn(folder):
    page = write_report([folder]).read_text(encoding="utf-8")
    turns = next(turns for who, turns in turns_of(folder).items() if who.startswith("agent"))
    assert turns[0]["query"].replace("'", "&#39;") in page
    for part in ('class="user"', 'class="reply"', "\u2713 faithful", "Evidence:", "Tool:"):
        assert part in page
    assert "agent <script>" not in page
    assert "phantoms, own history" in page
    assert page.count("data:image/png") >= 1  # the radiograph that the first dialogue is about


def test_the_overlay_stands_below_the_reply_that_drew_it(folder):
    page = write_report([folder]).read_text(encoding="utf-8")
    every = [turn for who, turns in turns_of(folder).items() if who.startswith("agent") for turn in turns]
    assert any("visual" in turn["evidence_types"] for turn in every)
    assert "The measurement drawn on the radiograph" in page


def test_scores_stand_beside_what_sees_nothing_with_intervals(folder):
    page = write_report([folder]).read_text(encoding="utf-8")
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    for name in ("all normal", "parrot", "refuser"):
        assert f"{name} sees nothing" in words
    assert re.search(r"\d\.\d \[\d+\.\d, \d+\.\d\] n \d", words)
    assert "By turn" in page
    assert "By task" in page
    assert "By what the history tells" in page


def test_runs_of_different_judges_are_kept_apart_and_the_page_says_why(folder, other):
    page = write_report([folder, other], out=other / "both.html").read_text(encoding="utf-8")
    assert "Judged by different judges" in page
    assert "judge them alike" in page
    assert page.count("Scores, judged by") >= 2
    tables = re.findall(r"<table.*?</table>", page, re.S)
    of_both = [t for t in tables if "agent &lt;script&gt;" in t and '<small class="note">other' in t]
    assert of_both == []


def test_a_table_for_a_paper_refuses_figures_of_different_judges(folder, other):
    with pytest.raises(ConfigError, match="different judges"):
        table_of([folder, other], Wanted(("faithfulness",)))
    assert table_of([folder], Wanted(("faithfulness",))).height == 4


def test_runs_of_one_judge_share_a_table(folder, tmp_path_factory):
    second = ran(tmp_path_factory, "second", [PARROT])
    page = write_report([folder, second], out=second / "both.html").read_text(encoding="utf-8")
    assert "Judged by different judges" not in page
    tables = re.findall(r"<table.*?</table>", page, re.S)
    assert any(">dial<" in t and ">second<" in t for t in tables)


def test_a_judge_that_never_rules_leaves_everything_undecided(other):
    page = write_report([other]).read_text(encoding="utf-8")
    assert "? faithfulness undecided" in page
    assert re.search(r"\d+ undecided", page) or "undefined" in page
