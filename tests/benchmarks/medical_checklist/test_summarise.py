"""Cells against tables computed elsewhere; invariants of policies, groups and rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.medical_checklist import groups, published
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.scoring import parsing, probabilities
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.specs import SPECS
from medground.benchmarks.medical_checklist.summarise import (
    Scored,
    expected_calibration_error,
    pair_credit,
    policy_credit,
)
from medground.benchmarks.medical_checklist.tables import comparisons
from medground.benchmarks.results import Cells


def made_items(golden: Any) -> list[ChecklistItem]:
    return [
        ChecklistItem(
            r["item_id"], r["item_id"], r["image_id"], "s", "", r["image_id"], "", r["category"],
            r["term_positive"], r["term_replacement"], 0, len(r["term_positive"]), r["term_positive"],
            r["term_replacement"], ("a",), ("b",),
            r["term_positive"], r["term_replacement"], 1.0, int(r["n_tokens"]), float(r["term_similarity"]), "x",
            r["side_of_positive"],
        )  # type: ignore[arg-type]
        for r in golden.rows("scoring/items.csv")
    ]  # fmt: skip


def column(golden: Any, name: str) -> np.ndarray:
    return np.array([float(r[name]) for r in golden.rows("scoring/items.csv")])


def frame_of(p: np.ndarray, **more: Any) -> pl.DataFrame:
    n = len(p)
    return pl.DataFrame(
        {
            "p": p, "credit": probabilities.credit(p), "parsed": [1] * n, "answers": [1] * n, "outcome": ["ok"] * n,
            "identical": [False] * n, "beyond_limit": [False] * n,
            "p_first": [None] * n, "p_second": [None] * n, "choice_first": [None] * n,
            "choice_second": [None] * n, **more,
        },
        schema_overrides={"p_first": pl.Float64, "p_second": pl.Float64},
    )  # fmt: skip


def scored(golden: Any, kind: str = "itc", **more: Any) -> Scored:
    scales = golden.load("scoring/expected.json")["scales"]
    if kind == "itm":
        pairs = [np.stack([column(golden, f"itm_{s}_no"), column(golden, f"itm_{s}_match")], 1) for s in ("pos", "neg")]
        p = probabilities.matching(*pairs)
    else:
        p = probabilities.contrastive(column(golden, f"{kind}_pos"), column(golden, f"{kind}_neg"), scales[kind])
    return Scored(kind, "d", "r", made_items(golden), frame_of(p), {}, None, **more)


def test_cells_of_a_contrastive_model(golden: Any) -> None:
    wanted = golden.load("scoring/expected.json")
    for kind in ("itc", "itc2", "itm"):
        cells = Cells(scored(golden, kind).cells())
        whole = wanted["overall"][kind]
        assert cells.one(metric="accuracy", scope="all", group="").value == pytest.approx(whole["accuracy"], abs=1e-9)
        assert cells.one(metric="brier", scope="all", group="").value == pytest.approx(whole["brier"], abs=1e-9)
        loss = cells.one(metric="log_loss", scope="all", group="").value
        assert loss == pytest.approx(whole["log_loss_eps_1e-12"], abs=1e-9)
        ece = cells.one(metric="ece", scope="all", group="").value
        assert ece == pytest.approx(whole["ece_10_on_half_to_one"], abs=1e-9)
        for tui, held in wanted["per_category"][kind].items():
            cell = cells.one(metric="accuracy", scope="type", group=TYPES[tui].label)
            assert (cell.n, cell.value) == (held["n"], pytest.approx(held["accuracy"], abs=1e-9))
        for scope, name in (("length", "length_bins"), ("similarity", "similarity_bins")):
            got = {c.group: c for c in cells.where(metric="accuracy", scope=scope)}
            for i, held in enumerate(wanted[name][kind]):
                (cell,) = [c for g, c in got.items() if g.startswith(f"{i + 1}:")]
                assert (cell.n, cell.value) == (held["n"], pytest.approx(held["accuracy"], abs=1e-9))
        macro = wanted["macro_accuracy"][kind]
        assert cells.one(metric="accuracy", scope="macro", group="").value == pytest.approx(macro, abs=1e-9)


def test_bins(golden: Any) -> None:
    wanted = golden.load("scoring/expected.json")
    items = made_items(golden)
    edges = groups.length_edges([i.n_tokens for i in items])
    assert edges == pytest.approx(wanted["length_bins"]["inner_edges"])
    counts = np.bincount(groups.length_bins([i.n_tokens for i in items], edges), minlength=9)
    assert counts.tolist() == wanted["length_bins"]["counts"]
    counts = np.bincount(groups.similarity_bins([i.similarity for i in items]), minlength=9)
    assert counts.tolist() == wanted["similarity_bins"]["counts"]
    assert groups.similarity_bins([-0.2, 0, 1 / 9, 1]).tolist() == [0, 0, 1, 8]


def test_terms(golden: Any) -> None:
    wanted = golden.load("scoring/expected.json")["by_term"]
    for kind in wanted:
        if kind not in ("itc", "itc2", "itm"):
            continue
        held = scored(golden, kind)
        rows = {
            r.term: r
            for r in groups.by_term(
                [i.term_positive for i in held.items], [i.term_negative for i in held.items], held.credit
            )
        }
        assert sum(r.hits + r.wins for r in rows.values()) == pytest.approx(len(held.items))
        for term, expected in wanted[kind].items():
            row = rows[term]
            assert row.n_positive + row.n_replacement == expected["appearances"]
            assert row.preference == pytest.approx(expected["preference"], abs=1e-9)
            assert row.hits == pytest.approx(expected["as_positive"]["correct"])
            assert row.wins == pytest.approx(expected["as_replacement_wins"]["correct"])


def test_policies_agree(golden: Any) -> None:
    rows = golden.rows("scoring/items.csv")
    choices = [parsing.lenient(json.loads(r["answer"])) for r in rows]
    right = [float(c == r["side_of_positive"]) for c, r in zip(choices, rows, strict=True)]
    frame = frame_of(np.full(len(rows), np.nan), credit=right, parsed=[int(c is not None) for c in choices])
    wanted = golden.load("scoring/expected.json")["parsing"]
    cells = Cells(Scored("m", "d", "r", made_items(golden), frame, {}, None).cells())
    got = {
        n: cells.one(metric=n, scope="all", group="").value
        for n in ("coverage", "accuracy_excluded", "accuracy_wrong", "accuracy_half")
    }
    assert got["coverage"] == pytest.approx(wanted["coverage"], abs=1e-9)
    assert got["accuracy_excluded"] == pytest.approx(wanted["excluded"]["accuracy"], abs=1e-9)
    assert got["accuracy_wrong"] == pytest.approx(wanted["as_wrong"]["accuracy"], abs=1e-9)
    assert got["accuracy_half"] == pytest.approx(wanted["half_credit"]["accuracy"], abs=1e-9)
    assert got["accuracy_excluded"] * got["coverage"] == pytest.approx(got["accuracy_wrong"])
    assert got["accuracy_half"] == pytest.approx(got["accuracy_wrong"] + (1 - got["coverage"]) / 2)
    assert cells.one(metric="brier", scope="all", group="").reason
    assert np.nanmean(policy_credit(frame, "wrong")) == pytest.approx(got["accuracy_wrong"])


def test_models_are_compared_as_elsewhere(golden: Any) -> None:
    table = comparisons([scored(golden, "itc"), scored(golden, "itc2"), scored(golden, "itm")])
    wanted = {(r["first"], r["second"]): r for r in golden.load("scoring/expected.json")["mcnemar"]}
    for row in table.iter_rows(named=True):
        assert row["mcnemar_p"] == pytest.approx(wanted[row["first"], row["second"]]["p_exact"], abs=1e-9)
        assert row["p_family"] is not None


def test_order_of_rows_and_failures(golden: Any) -> None:
    held = scored(golden)
    frame = held.frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("timeout")).otherwise(pl.col("outcome")).alias("outcome")
    )
    cells = Cells(Scored("m", "d", "r", held.items, frame, {}, None).cells())
    cell = cells.one(metric="accuracy", scope="all", group="")
    assert (cell.n, cell.failed, cell.undefined) == (267, 3, 0)


def test_pairs_need_both_members() -> None:
    assert pair_credit([1.0, 1.0]) == 1
    assert pair_credit([1.0, 0.5]) == 0
    assert np.isnan(pair_credit([1.0]))


def test_a_uniform_guesser() -> None:
    assert expected_calibration_error(np.full(8, 0.5)) == 0


def test_every_metric_is_described(golden: Any) -> None:
    named = {s.name for s in SPECS}
    assert {c.metric for c in scored(golden).cells()} <= named


def test_what_is_printed_holds_as_far_as_it_does(golden: Any) -> None:
    checks = {c["id"]: c for c in golden.load("published/recomputations.json")["checks"]}
    for model in ("MedCLIP", "PMC-CLIP", "M3AE", "LLaVA-Med"):
        assert published.weighted(model) == pytest.approx(checks[f"table3_weighted_{model}"]["computed"], abs=1e-3)
    for name in published.TABLES:
        assert len(published.table(name)) > 0
    assert "Body System" in published.beside({("m", "Body System"): 0.5})["type"].to_list()
