"""Cells, verdicts and summaries: what they refuse, how they are found, and that a file gives back what was written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from medground.benchmarks.results import (
    ANSWERS,
    FORMAT,
    KEYS,
    QUESTIONS,
    Cell,
    Cells,
    ModelFacts,
    Question,
    Summary,
    Verdict,
    frame,
    with_floors,
)
from medground.errors import MetricError, RunError
from medground.metrics.spec import MetricSpec


def cell(**given: Any) -> Cell:
    return Cell(**({"benchmark": "b", "model": "m", "metric": "auc", "value": 0.5, "n": 10} | given))


@pytest.fixture
def summary() -> Summary:
    headline, floor = cell(low=0.4, high=0.6, floor=0.5), cell(metric="chance", value=0.5)
    undefined = cell(metric="dice", value=None, reason="no region", undefined=3, failed=1, n=0, counts={"skipped": 2})
    verdicts = [
        Verdict(
            benchmark="b",
            question="points",
            model="m",
            answer="no",
            because="it does not",
            margin=0.02,
            roles={"headline": headline, "floor": floor},
            notes=("seen",),
        ),
        Verdict(benchmark="b", question="own", model="m", answer="not asked", because="it has no `match`"),
    ]
    return Summary(
        cells=[headline, floor, undefined],
        verdicts=verdicts,
        data={"curves": [[0.1, None]]},
        benchmark="b",
        reading="strict",
        models=[ModelFacts(label="m", title="M", kind="zero-shot", seen={"d": "training split"}, missing=("match",))],
        metrics=[MetricSpec("auc", "AUC", floor="chance", floor_value=0.5)],
        questions=[Question(key="own", title="Own", asks="Own?")],
        level=0.9,
        notes=["a note"],
    )


def test_a_summary_comes_back_from_its_file_as_it_was(summary: Summary) -> None:
    content = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert Summary.from_json(content) == summary
    assert Summary.from_json(content).to_json() == summary.to_json()


def test_a_summary_of_another_format_is_refused_with_a_sentence(summary: Summary) -> None:
    for other in (FORMAT + 1, None, "2"):
        with pytest.raises(RunError, match="another version") as caught:
            Summary.from_json(summary.to_json() | {"format": other}, "runs/x/summary.json")
        assert caught.value.where == "runs/x/summary.json"
    with pytest.raises(RunError, match="object"):
        Summary.from_json([])


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("value", "high"),
        ("value", float("nan")),
        ("value", None),
        ("low", None),
        ("n", 1.5),
        ("model", 3),
        ("extra", 1),
        ("counts", {"a": "b"}),
    ],
)
def test_a_damaged_cell_is_named(summary: Summary, where: str, value: Any) -> None:
    content = summary.to_json()
    content["cells"][0][where] = value
    with pytest.raises(RunError, match="damaged") as caught:
        Summary.from_json(content)
    assert "cells" in str(caught.value.where)


@pytest.mark.parametrize("part", ["cells", "verdicts", "models", "level", "data"])
def test_a_missing_part_is_named(summary: Summary, part: str) -> None:
    content = summary.to_json()
    del content[part]
    with pytest.raises(RunError, match="damaged") as caught:
        Summary.from_json(content)
    assert part in str(caught.value.where)


def test_a_damaged_verdict_is_named(summary: Summary) -> None:
    for field, value in (("answer", "maybe"), ("roles", {"headline": {}}), ("roles", {"star": summary.cells[0]})):
        content = summary.to_json()
        content["verdicts"][0][field] = value
        with pytest.raises(RunError, match="damaged") as caught:
            Summary.from_json(content)
        assert "verdicts" in str(caught.value.where)


@pytest.mark.parametrize("name", ["value", "low", "high", "sd", "floor", "ceiling"])
def test_no_number_of_a_cell_is_nan_or_infinite(name: str) -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(MetricError):
            cell(**{"low": 0.1, "high": 0.9, name: number})


def test_a_value_or_a_reason_and_never_both() -> None:
    for value, reason in ((None, None), (0.5, "why")):
        with pytest.raises(MetricError, match="reason"):
            cell(value=value, reason=reason)


def test_a_verdict_rests_on_a_headline_unless_nothing_was_asked() -> None:
    given: dict[str, Any] = {"benchmark": "b", "question": "points", "model": "m", "because": "why"}
    for answer in ANSWERS:
        roles = {} if answer == "not asked" else {"headline": cell()}
        assert Verdict(answer=answer, roles=roles, **given).headline == roles.get("headline")
        with pytest.raises(MetricError, match="headline"):
            Verdict(answer=answer, roles={"headline": cell()} if answer == "not asked" else {}, **given)


def test_the_twin_is_the_comparator_before_the_floor() -> None:
    roles = {"headline": cell(), "floor": cell(value=0.2), "twin": cell(value=0.3)}
    verdict = Verdict(benchmark="b", question="points", model="m", answer="yes", because="", roles=roles)
    assert verdict.comparator == roles["twin"]
    assert (
        Verdict(
            benchmark="b",
            question="points",
            model="m",
            answer="yes",
            because="",
            roles=roles | {"twin": roles["floor"]},
        ).comparator
        == roles["floor"]
    )


def test_cells_are_found_by_any_field() -> None:
    cells = Cells([cell(), cell(group="a", scope="class"), cell(model="k"), cell(metric="dice")])
    assert cells.where(metric="auc", model="m") == [cells[0], cells[1]]
    assert cells.where(scope="class") == [cells[1]]
    assert cells.one(model="k", metric="auc") is cells[2]
    assert cells.one(model="k", metric="dice") is None
    assert cells.values("model") == ["m", "k"]
    assert len(cells) == len({c.key for c in cells}) == 4
    with pytest.raises(MetricError, match="several"):
        cells.one(metric="auc")
    with pytest.raises(MetricError, match="told apart"):
        cells.where(value="0.5")


def test_questions_are_known_and_may_be_added(summary: Summary) -> None:
    assert list(QUESTIONS) == [
        "recognises",
        "points",
        "overlaps",
        "words",
        "pixels",
        "captions",
        "dialogue",
        "explains",
    ]
    assert summary.question("points") is QUESTIONS["points"]
    assert summary.question("own").title == "Own"
    with pytest.raises(MetricError, match="question"):
        summary.question("other")


def test_facts_of_a_model_that_nothing_is_known_of() -> None:
    assert Summary().facts("m") == ModelFacts(label="m")
    assert ModelFacts(label="blind", twin_of="m").baseline
    assert ModelFacts(label="x", kind="baseline").baseline
    assert not ModelFacts(label="m", kind="zero-shot").baseline


def test_a_metric_that_nobody_specifies_claims_nothing(summary: Summary) -> None:
    assert summary.spec("auc").floor == "chance"
    assert summary.spec("mine").direction == "neither"


def test_floors_come_from_the_specification() -> None:
    cells = [cell(), cell(metric="pointing", value=0.6), cell(metric="prior", value=0.2), cell(metric="free")]
    cells.append(cell(metric="pointing", group="a", scope="class", value=0.7))
    specs = [MetricSpec("auc", "AUC", floor_value=0.5), MetricSpec("pointing", "Pointing", floor_metric="prior")]
    assert [c.floor for c in with_floors(cells, specs)] == [0.5, 0.2, None, None, None]
    (undefined,) = with_floors([cell(value=None, reason="no positives", n=0)], specs)
    assert undefined.floor is None


def test_cells_as_a_table_keep_every_digit_and_further_counts() -> None:
    table = frame([cell(value=1 / 3, counts={"skipped": 2}), cell(value=None, reason="none", n=0)])
    assert table["value"].to_list() == [1 / 3, None]
    assert table["skipped"].to_list() == [2, 0]
    assert frame([]).columns[: len(KEYS)] == list(KEYS)
    with pytest.raises(MetricError, match="name of its own"):
        cell(counts={"n": 1})
