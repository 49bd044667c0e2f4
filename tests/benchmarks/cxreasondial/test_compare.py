"""CXReasonDial compared: turns and dialogues of one judge, on rows by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting
from medground.benchmarks.comparable import Contender, pair_of
from medground.benchmarks.comparing import compare_pairs
from medground.benchmarks.cxreasondial import CXReasonDial
from medground.benchmarks.cxreasondial.baselines import AllNormal, Parrot
from medground.benchmarks.cxreasondial.compare import compare
from medground.benchmarks.cxreasondial.rows import SCHEMA
from medground.benchmarks.cxreasondial.stage_task import SCHEMA as STAGES
from medground.errors import RunError

FAITHFUL = [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1], [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]
DIALOGUES = [f"d{k // 3}" for k in range(12)]


def bench(**given: Any) -> CXReasonDial:
    made = CXReasonDial(**given)
    judges = [] if given.get("judge", "evidence") == "evidence" else [Entry("j", "parrot", Parrot)]
    made.bind(Setting([Entry("n", "normal", AllNormal)], roles={"judges": judges}))
    return made


def rows(faithful: list[int | None], *, mode: str = "model", patient: str = "", **more: Any) -> pl.DataFrame:
    applicable = ["coverage", "faithfulness"] + (["dti", "eti"] if mode == "agent" else [])
    base = dict.fromkeys(SCHEMA) | {"mode": mode, "applicable": applicable, "coverage": 1, "dti": 1, "eti": 1}
    base |= {"tasks": ["cardiomegaly"], "evidence_types": ["label"], "evidence": "enlarged"} | more
    made = [
        base | {"dialogue": d, "turn": k % 3, "patient": patient and f"{patient}{k // 6}", "faithfulness": value}
        for k, (d, value) in enumerate(zip(DIALOGUES, faithful, strict=True))
    ]
    return pl.DataFrame(made, schema=SCHEMA)


def records(how: Any, one: pl.DataFrame, two: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    first, second = (Contender(name, name, "", "set", table) for name, table in (("a", one), ("b", two)))
    return {(r["metric"], r["method"]): r for r in compare_pairs([pair_of(how, first, second)])}


def test_turns_are_compared_with_dialogues_as_clusters_and_dialogues_by_their_success(exact: Any) -> None:
    got = records(compare(bench()), rows(FAITHFUL[0]), rows(FAITHFUL[1]))
    value, p = exact(*FAITHFUL, DIALOGUES)
    faith = got["faithfulness", ""]
    assert (faith["difference"], faith["p"], faith["n"], faith["patients"]) == pytest.approx((value, p, 12, 4))
    assert got["hallucination", ""]["difference"] == pytest.approx(-value)  # everything is covered
    shares = [[sum(one[3 * k : 3 * k + 3]) / 3 for k in range(4)] for one in FAITHFUL]
    average = got["average_success", "model"]
    assert (average["difference"], average["p"]) == pytest.approx(exact(*shares, ["d0", "d1", "d2", "d3"]))
    strict = [[float(min(one[3 * k : 3 * k + 3])) for k in range(4)] for one in FAITHFUL]
    assert got["strict_success", "model"]["difference"] == pytest.approx(sum(strict[0]) / 4 - sum(strict[1]) / 4)


def test_patients_are_the_clusters_where_they_are_known(exact: Any) -> None:
    got = records(compare(bench()), *(rows(one, patient="p") for one in FAITHFUL))
    value, p = exact(*FAITHFUL, [f"p{k // 6}" for k in range(12)])
    assert (got["faithfulness", ""]["difference"], got["faithfulness", ""]["p"]) == pytest.approx((value, p))


def test_a_verdict_that_is_not_known_is_left_out_and_counted() -> None:
    known = [None, None, *FAITHFUL[0][2:]]
    got = records(compare(bench()), rows(known), rows(FAITHFUL[1]))["faithfulness", ""]
    assert (got["n"], got["n_undefined"]) == (10, 2)
    assert got["difference"] == pytest.approx((sum(FAITHFUL[0][2:]) - sum(FAITHFUL[1][2:])) / 10)


def test_success_of_an_agent_is_not_held_against_that_of_a_model() -> None:
    got = records(compare(bench()), rows(FAITHFUL[0], mode="agent"), rows(FAITHFUL[1]))
    assert {metric for metric, _ in got} == {"faithfulness", "coverage", "hallucination"}
    both = records(compare(bench()), *(rows(one, mode="agent") for one in FAITHFUL))
    assert {"dti", "eti", "average_success"} <= {metric for metric, _ in both}


def test_other_evidence_for_one_turn_is_refused() -> None:
    with pytest.raises(RunError, match="another one in the two"):
        records(compare(bench()), rows(FAITHFUL[0]), rows(FAITHFUL[1], evidence="normal"))


def test_judges_protocols_and_dialogues_are_settings() -> None:
    base = compare(bench()).settings
    for name, change in (
        ("judge", {"judge": "llm"}),
        ("protocol", {"protocol": "cxreasonbench"}),
        ("dialogues", {"phantoms": 3}),
        ("longest reply", {"max_new_tokens": 8}),
    ):
        assert {k for k, v in compare(bench(**change)).settings.items() if base[k] != v} == {name}


def test_walks_of_the_staged_protocol_are_compared_by_task(exact: Any) -> None:
    completed = [1, 1, 1, 0, 1, 1, 1, 0], [0, 1, 0, 0, 1, 0, 0, 0]
    tables = []
    for one in completed:
        base = dict.fromkeys(STAGES) | {"kind": "measurement", "path": "direct", "failed": ""}
        made = [base | {"case": f"c{k // 2}", "task": f"t{k % 2}", "completed": bool(v)} for k, v in enumerate(one)]
        tables.append(pl.DataFrame(made, schema=STAGES))
    first, second = (Contender(name, name, "", "set", table) for name, table in zip("ab", tables, strict=True))
    how = compare(bench(protocol="cxreasonbench"))
    got = {(r["metric"], r["scope"], r["group"]): r for r in compare_pairs([pair_of(how, first, second)])}
    for side, task in enumerate(("t0", "t1")):
        expected = exact(completed[0][side::2], completed[1][side::2], ["c0", "c1", "c2", "c3"])
        record = got["completion", "task", task]
        assert (record["difference"], record["p"]) == pytest.approx(expected)
        assert record["decision"] == "cannot be told"  # the metric has no direction
