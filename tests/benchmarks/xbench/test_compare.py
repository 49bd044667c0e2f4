from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from medground.benchmarks.comparable import Pair
from medground.benchmarks.comparing import compare_pairs
from medground.benchmarks.xbench.compare import samples, shared_rows
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.datasets.base import Case
from medground.errors import RunError
from medground.imaging.regions import Region

FINDINGS = ("Mass", "Nodule")
PROTOCOL = resolve_protocol({"base": "xbench", "grid": [8, 8], "name": "small"})


def make_rows(seed: int, *, n: int = 30, skill: float = 0.0, seen: frozenset[str] = frozenset()) -> pl.DataFrame:
    """A model that looks into the box with a chance of ``skill``, else anywhere."""
    world, own = np.random.default_rng(0), np.random.default_rng(seed)
    cases, maps, scores = [], {}, {}
    for i in range(n):
        finding = FINDINGS[i % 2]
        x, y = world.integers(0, 6, size=2).tolist()
        cases.append(
            Case(f"c{i}", Path("x.png"), f"p{i // 2}", None, {f: f == finding for f in FINDINGS},
                 {finding: Region.from_boxes((8, 8), [(x, y, x + 2, y + 2)])})
        )  # fmt: skip
        array = own.random((8, 8))
        if own.random() < skill:
            array[y, x] = 2
        maps[f"c{i}", finding] = array
        for f in FINDINGS:
            scores[f"c{i}", f] = float(own.normal() + 2 * skill * (f == finding))
    return rows_from_maps(
        cases,
        FINDINGS,
        lambda c, f: ScoredMap(maps.get((c, f)), score=scores[c, f], probability=0.5),
        PROTOCOL,
        seen=seen,
    )


def compared(first: pl.DataFrame, second: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    one, two = (list(samples(rows, FINDINGS, PROTOCOL)) for rows in shared_rows(first, second))
    records = compare_pairs([Pair("a", "b", "d", list(zip(one, two, strict=True)))])
    return {(r["metric"], r["group"]): r for r in records}


def test_differences_are_those_of_the_means() -> None:
    a, b = shared_rows(make_rows(1, skill=0.9), make_rows(2))
    records = compared(a, b)
    one, two = Pairs.of(a, PROTOCOL), Pairs.of(b, PROTOCOL)
    by_class = []
    for finding in FINDINGS:
        mask = one.finding == finding
        by_class.append(one.pointing()[mask].mean() - two.pointing()[mask].mean())
        assert records["pointing", finding]["difference"] == pytest.approx(by_class[-1])
        labels, scores = (a.filter(pl.col("finding") == finding)[c].to_numpy() for c in ("label", "score"))
        theirs = b.filter(pl.col("finding") == finding)["score"].to_numpy()
        expected = roc_auc_score(labels, scores) - roc_auc_score(labels, theirs)
        assert records["auc", finding]["difference"] == pytest.approx(expected)
    macro = records["pointing", ""]
    assert macro["difference"] == pytest.approx(np.mean(by_class))
    assert macro["low"] > 0
    assert macro["p_family"] < 0.05
    assert macro["decision"] == "better"
    searched = records["dice@best", ""]["difference"]
    assert searched != records["dice@crossfit", ""]["difference"]


def test_a_model_against_itself_does_not_differ() -> None:
    rows = make_rows(1)
    for record in compared(rows, rows).values():
        assert record["difference"] == 0
        assert record["p"] == 1


@pytest.mark.parametrize("change", [pl.lit(False).alias("label"), pl.col("area") + 1])
def test_cases_that_only_share_their_names_are_refused(change: pl.Expr) -> None:
    rows = make_rows(1)
    with pytest.raises(RunError, match="another truth"):
        shared_rows(rows, rows.with_columns(change))
    unread = rows.with_columns(area=pl.lit(None, pl.Int64), state=pl.lit("failed"))
    assert len(shared_rows(rows, unread)[0]) == len(rows)


def test_only_shared_and_unseen_pairs_are_used() -> None:
    first, second = make_rows(1, seen=frozenset({"p0"})), make_rows(2, n=20)
    a, b = shared_rows(first, second)
    assert a["case_id"].to_list() == b["case_id"].to_list()
    assert set(a["case_id"]) == {f"c{i}" for i in range(2, 20)}
    assert a["finding"].to_list() == b["finding"].to_list()


def test_ranks_need_no_probability() -> None:
    rows = make_rows(1).with_columns(probability=pl.lit(None, pl.Float64))
    records = compared(rows, rows)
    assert records["auc", "Mass"]["n"] == 30
    assert records["f1@0.5", "Mass"]["difference"] is None
