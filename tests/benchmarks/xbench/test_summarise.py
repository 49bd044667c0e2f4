"""Summaries against independent counting: scikit-learn, plain means, and what must stay undefined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, roc_auc_score

from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import PROTOCOLS, resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.datasets.base import Case
from medground.imaging.regions import Region
from medground.metrics.differences import compare_means
from medground.models.base import ModelInfo

FINDINGS = ("Mass", "Nodule", "Never")
PROTOCOL = resolve_protocol({"base": "xbench", "grid": [16, 16], "name": "small"})


def make_cases(n: int = 40) -> list[Case]:
    rng = np.random.default_rng(3)
    cases = []
    for i in range(n):
        labels: dict[str, bool | None] = {"Mass": bool(rng.random() < 0.5), "Nodule": bool(rng.random() < 0.3)}
        if i % 10 == 9:
            labels["Nodule"] = None
        regions = {}
        for finding in ("Mass", "Nodule"):
            if labels[finding] and rng.random() < 0.8:
                x, y, side = [*rng.integers(0, 8, size=2).tolist(), int(rng.integers(2, 8))]
                regions[finding] = Region.from_boxes((16, 16), [(x, y, x + side, y + side)])
        cases.append(
            Case(f"c{i:02d}", Path("x.png"), f"p{i % 25}", "PA" if i % 3 else "AP", labels | {"Never": False}, regions)
        )
    return cases


def make_rows(seed: int = 0, seen: frozenset[str] = frozenset(), failed: dict[str, str] | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(seed)

    def lookup(case: str, finding: str) -> ScoredMap:
        array = rng.random((4, 4))
        return ScoredMap(array, score=float(rng.normal()), probability=float(rng.integers(0, 11)) / 10)

    return rows_from_maps(make_cases(), FINDINGS, lookup, PROTOCOL, failed=failed, seen=seen)


def run(rows: dict[tuple[str, ...], pl.DataFrame], replicates: int = 50) -> Any:
    cards = {path[0]: ModelInfo(path[0]) for path in rows}
    datasets = {path[1]: FINDINGS for path in rows}
    return summarise(rows, cards, datasets, SummaryOptions(PROTOCOL, 0, replicates))


def cell(summary: Any, **where: str) -> dict[str, Any]:
    wanted = {"subset": "main", "group": ""} | where
    found = [c for c in summary.to_json()["cells"] if all(c[k] == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


def test_recognition_equals_scikit_learn() -> None:
    rows = make_rows()
    summary = run({("m", "d"): rows})
    for finding in ("Mass", "Nodule"):
        mine = rows.filter((pl.col("finding") == finding) & pl.col("label").is_not_null())
        y, s, p = mine["label"].to_numpy(), mine["score"].to_numpy(), mine["probability"].to_numpy()
        expected = {
            "auc": roc_auc_score(y, s),
            "average_precision": average_precision_score(y, s),
            "f1@0.5": f1_score(y, p >= 0.5),
            "accuracy@0.5": ((p >= 0.5) == y).mean(),
            "brier": brier_score_loss(y, p),
        }
        for metric, value in expected.items():
            got = cell(summary, scope="class", group=finding, metric=metric)
            assert got["value"] == pytest.approx(value)
            assert got["n"] == len(y)
    known = rows.filter(pl.col("label").is_not_null())
    right = ((known["probability"] >= 0.5) == known["label"]).mean()
    assert cell(summary, scope="macro", metric="hamming@0.5")["value"] == pytest.approx(right)


def test_a_class_without_positives_is_undefined_and_leaves_the_macro_mean() -> None:
    summary = run({("m", "d"): make_rows()})
    for metric in ("auc", "auprc_trapezoid", "average_precision", "f1@0.5"):
        never = cell(summary, scope="class", group="Never", metric=metric)
        assert (never["value"], never["low"], never["reason"]) == (None, None, "no positives")
        macro = cell(summary, scope="macro", metric=metric)
        assert (macro["n"], macro["undefined"]) == (2, 1)
        both = [cell(summary, scope="class", group=f, metric=metric)["value"] for f in ("Mass", "Nodule")]
        assert macro["value"] == pytest.approx(np.mean(both))
    pointing = cell(summary, scope="class", group="Never", metric="pointing")
    assert (pointing["value"], pointing["reason"]) == (None, "no localised case")


def test_grounding_is_a_mean_over_pairs_and_then_over_classes() -> None:
    rows = make_rows()
    summary = run({("m", "d"): rows})
    pairs = Pairs.of(rows, PROTOCOL)
    for metric, values in {
        "pointing": pairs.pointing(),
        "dice@0.5": pairs.curves["dice"][:, 50],
        "iou@best": pairs.at_searched("iou"),
        "dice_floor": pairs.floor[0],
        "dice_gap": pairs.at_searched("dice") - pairs.curves["dice"][:, 50],
        "dice_gain": pairs.at_searched("dice") - pairs.floor[0],
    }.items():
        by_class = []
        for finding in ("Mass", "Nodule"):
            got = cell(summary, scope="class", group=finding, metric=metric)
            by_class.append(values[pairs.finding == finding].mean())
            assert got["value"] == pytest.approx(by_class[-1])
            assert got["n"] == (pairs.finding == finding).sum()
            assert got["low"] <= got["value"] + 1e-12
            assert got["high"] >= got["value"] - 1e-12
        assert cell(summary, scope="macro", metric=metric)["value"] == pytest.approx(np.mean(by_class))
        assert cell(summary, scope="pairs", metric=metric)["value"] == pytest.approx(values.mean())


@pytest.mark.parametrize("scope", ["view", "size"])
def test_views_and_sizes_part_the_pairs(scope: str) -> None:
    rows = make_rows()
    cells = [c for c in run({("m", "d"): rows}).to_json()["cells"] if c["scope"] == scope and c["metric"] == "pointing"]
    assert sum(c["n"] for c in cells) == len(Pairs.of(rows, PROTOCOL))
    assert len(cells) == (2 if scope == "view" else 4)


def test_failed_cases_are_counted_and_scored_as_nothing() -> None:
    rows = make_rows(failed={"c00": "the file is truncated", "c05": "the file is truncated"})
    summary = run({("m", "d"): rows})
    task = summary.data["tasks"][0]
    assert task["cases_failed"] == 2
    assert task["reasons"] == {"the file is truncated": 6}
    localised = {f: rows.filter((pl.col("finding") == f) & pl.col("localised")) for f in ("Mass", "Nodule")}
    for finding, table in localised.items():
        got = cell(summary, scope="class", group=finding, metric="pointing")
        failed = (table["state"] == "failed").sum()
        assert (got["n"], got["failed"], got["undefined"]) == (len(table) - failed, failed, 0)
    auc = cell(summary, scope="class", group="Mass", metric="auc")
    assert (auc["n"], auc["failed"]) == (38, 2)


def test_a_model_without_scores_has_no_auc_but_may_point() -> None:
    rows = make_rows().with_columns(score=pl.lit(None, dtype=pl.Float64), probability=pl.lit(None, dtype=pl.Float64))
    summary = run({("m", "d"): rows})
    auc = cell(summary, scope="class", group="Mass", metric="auc")
    assert (auc["value"], auc["n"], auc["undefined"]) == (None, 0, 40)
    assert cell(summary, scope="class", group="Mass", metric="pointing")["value"] is not None
    assert summary.data["reliability"] == []


def test_what_a_model_has_seen_is_left_out_and_a_shared_table_stays_fair() -> None:
    seen = frozenset({"p0", "p1", "p2", "p3", "p4"})
    trained, fresh = make_rows(1, seen), make_rows(2)
    summary = run({("trained", "d"): trained, ("fresh", "d"): fresh})
    hidden = trained.filter(pl.col("seen"))["case_id"].n_unique()
    assert hidden == 10
    assert [t["cases_seen"] for t in summary.data["tasks"]] == [10, 0]
    n = {
        (model, subset): cell(summary, model=model, subset=subset, scope="class", group="Mass", metric="auc")["n"]
        for model in ("trained", "fresh")
        for subset in ("main", "shared")
    }
    assert n == {("trained", "main"): 30, ("fresh", "main"): 40, ("trained", "shared"): 30, ("fresh", "shared"): 30}
    assert "shared" in summary.tables
    items = summary.items["pairs"]
    assert (
        set(items.filter(model="trained")["case_id"]) & {c.case_id for c in make_cases() if c.patient_id in seen}
        == set()
    )
    assert set(items.filter(model="fresh")["case_id"]) == set(fresh.filter("localised")["case_id"])
    marked = summary.tables["grounding"].filter(pl.col("model") == "trained")["seen in training"]
    assert marked.to_list() == ["patients; scored on the rest"]


def test_the_summary_is_json_without_nan_and_the_same_each_time() -> None:
    rows = {("m", "d"): make_rows()}
    one, two = (json.dumps(run(rows).to_json(), allow_nan=False, sort_keys=True) for _ in range(2))
    assert one == two


def test_every_defined_class_of_several_patients_has_an_interval_that_cannot_collapse() -> None:
    without = {"auprc_trapezoid", "ece"}
    for c in run({("m", "d"): make_rows()}, replicates=0).to_json()["cells"]:
        if c["value"] is not None and c["metric"] not in without and c["counts"]["patients"] > 1:
            assert c["low"] < c["high"], c


def test_floors_stand_beside_every_figure_of_recognition() -> None:
    rows = make_rows()
    summary = run({("m", "d"): rows})
    for finding in ("Mass", "Nodule"):
        y = rows.filter((pl.col("finding") == finding) & pl.col("label").is_not_null())["label"].to_numpy()
        share = y.mean()
        floors = {
            "auc": 0.5,
            "average_precision": share,
            "f1@0.5": f1_score(y, np.ones(len(y))),
            "f1@best": f1_score(y, np.ones(len(y))),
            "accuracy@0.5": 1 - share,
            "brier": share * (1 - share),
        }
        for metric, floor in floors.items():
            assert cell(summary, scope="class", group=finding, metric=metric)["floor"] == pytest.approx(floor)
    for metric, floor in {"pointing": "pointing_prior", "dice@best": "dice_floor", "iou@0.5": "iou_floor"}.items():
        beside = cell(summary, scope="macro", metric=floor)["value"]
        assert cell(summary, scope="macro", metric=metric)["floor"] == beside
    known = rows.filter(pl.col("label").is_not_null())["label"]
    assert cell(summary, scope="macro", metric="hamming@0.5")["floor"] == pytest.approx(1 - known.mean())


def test_a_gain_has_the_interval_of_a_paired_difference() -> None:
    rows = make_rows()
    summary = run({("m", "d"): rows})
    pairs = Pairs.of(rows, PROTOCOL)
    found = compare_means(pairs.at_searched("dice"), pairs.floor[0], pairs.by)
    got = cell(summary, scope="pairs", metric="dice_gain")
    assert (got["value"], got["low"], got["high"]) == pytest.approx((found.value, found.low, found.high))


def test_a_searched_threshold_never_loses_against_a_fixed_one_and_has_a_fair_one_beside_it() -> None:
    for averaging in ("macro", "pairs"):
        protocol = resolve_protocol({"base": "xbench", "grid": [16, 16], "averaging": averaging, "name": averaging})
        summary = summarise({("m", "d"): make_rows()}, {}, {"d": FINDINGS}, SummaryOptions(protocol))
        assert cell(summary, scope=averaging, metric="dice_gap")["value"] >= 0
        best, fair = (cell(summary, scope=averaging, metric=f"dice@{k}")["value"] for k in ("best", "crossfit"))
        assert fair <= best
    searched = {spec.name: spec.partner for spec in summary.metrics if spec.searched and spec.partner}
    assert searched == {"dice@best": "dice@crossfit", "iou@best": "iou@crossfit", "f1@best": "f1@crossfit"}


def test_a_ranking_needs_no_probability() -> None:
    rows = make_rows().with_columns(probability=pl.lit(None, dtype=pl.Float64))
    summary = run({("m", "d"): rows})
    assert cell(summary, scope="class", group="Mass", metric="auc")["n"] == 40
    brier = cell(summary, scope="class", group="Mass", metric="brier")
    assert (brier["value"], brier["undefined"]) == (None, 40)


def test_a_value_that_rests_on_other_items_than_its_row_says_so() -> None:
    rows = make_rows().with_columns(
        probability=pl.when(pl.col("case_id") == "c00").then(None).otherwise(pl.col("probability"))
    )
    table = run({("m", "d"): rows}).tables["recognition_by_class"].filter(pl.col("group") == "Mass")
    assert table["n"].to_list() == [40]
    assert table["Brier"][0].endswith("(n 39)")
    assert "(n " not in table["AUC"][0]


def test_models_are_ranked_on_the_regions_that_all_have() -> None:
    rows = {(f"m{i}", "d"): make_rows(i) for i in range(3)}
    summary = run(rows, replicates=100)
    ranks = [r for r in summary.data["ranks"] if r["metric"] == "pointing"]
    values = {m: cell(summary, model=m, scope="macro", metric="pointing")["value"] for m in ("m0", "m1", "m2")}
    assert sorted(values, key=lambda m: -values[m]) == [r["model"] for r in sorted(ranks, key=lambda r: r["rank"])]
    assert all(r["low"] <= r["rank"] <= r["high"] for r in ranks)
    assert sum(r["first"] for r in ranks) == pytest.approx(1)
    assert not run(rows, replicates=0).data["ranks"]


def test_an_optimistic_threshold_is_called_so_and_a_cross_fitted_one_is_not() -> None:
    rows = make_rows()
    test = summarise({("m", "d"): rows}, {}, {"d": FINDINGS}, SummaryOptions(PROTOCOL, 0, 0))
    assert "Dice at searched threshold (optimistic)" in test.tables["grounding"].columns
    fitted = resolve_protocol({"base": "xbench", "grid": [16, 16], "split": "crossfit", "name": "fair"})
    cross = summarise({("m", "d"): rows}, {}, {"d": FINDINGS}, SummaryOptions(fitted, 0, 0))
    assert "Dice at searched threshold" in cross.tables["grounding"].columns
    assert len(cross.data["thresholds"]) <= 2
    best = cell(test, scope="pairs", metric="dice@best")["value"]
    assert cell(cross, scope="pairs", metric="dice@best")["value"] <= best + 1e-12


def test_the_curves_are_means_of_the_pairs() -> None:
    rows = make_rows()
    summary = run({("m", "d"): rows})
    pairs = Pairs.of(rows, PROTOCOL)
    curves = {c["finding"]: c for c in summary.data["curves"]}
    for finding in ("Mass", "Nodule"):
        np.testing.assert_allclose(curves[finding]["dice"], pairs.curves["dice"][pairs.finding == finding].mean(axis=0))
    assert set(curves["Never"]["dice"]) == {None}
    np.testing.assert_allclose(curves[""]["iou"], np.mean([curves["Mass"]["iou"], curves["Nodule"]["iou"]], axis=0))


def test_auc_against_pointing_leaves_baselines_out_and_stands_on_shared_support() -> None:
    rows = {(f"m{i}", "d"): make_rows(i) for i in range(4)}
    # A second dataset on which one model has no score: its regions are on nobody's axis.
    rows |= {(f"m{i}", "e"): make_rows(10 + i) for i in range(4)}
    rows["m1", "e"] = rows["m1", "e"].with_columns(score=pl.lit(None, pl.Float64))
    kinds = ["zero-shot", "zero-shot", "zero-shot", "baseline"]
    cards = {f"m{i}": ModelInfo(f"m{i}", kind=kind) for i, kind in enumerate(kinds)}  # type: ignore[arg-type]  # literals
    summary = summarise(rows, cards, {"d": FINDINGS, "e": FINDINGS}, SummaryOptions(PROTOCOL, 0, 0))
    line = summary.data["correlation"]
    assert line["models"] == ["m0", "m1", "m2"]
    assert line["support"] == [["d", "Mass"], ["d", "Nodule"]]
    auc, pointing = (
        [
            np.mean([cell(summary, model=m, dataset="d", scope="class", group=f, metric=metric)["value"]
                     for f in ("Mass", "Nodule")])
            for m in line["models"]
        ]
        for metric in ("auc", "pointing")
    )  # fmt: skip
    assert line["auc"] == pytest.approx(auc)
    assert line["r2"] == pytest.approx(np.corrcoef(auc, pointing)[0, 1] ** 2)
    by_class = summary.data["correlation_by_class"]
    assert [entry["model"] for entry in by_class] == ["m0", "m1", "m2", ""]
    assert by_class[0]["r2"] is None  # two findings always lie on a line
    assert by_class[-1]["n"] == 6
    assert len(by_class[-1]["residuals"]) == 6


def test_every_named_protocol_can_summarise_rows_of_its_own() -> None:
    for protocol in PROTOCOLS.values():
        small = resolve_protocol(protocol.model_dump() | {"name": "x", "grid": (16, 16)})
        rows = rows_from_maps(make_cases(6), FINDINGS, lambda *_: ScoredMap(np.eye(4)), small)
        summary = summarise({("m", "d"): rows}, {}, {"d": FINDINGS}, SummaryOptions(small, 0, 0))
        assert f"dice@{small.fixed[0]:g}" in {c["metric"] for c in summary.to_json()["cells"]}


def test_a_class_of_one_patient_has_no_interval_but_stays_in_the_macro_mean_and_in_its_interval() -> None:
    rows = make_rows()
    patient = rows.filter((pl.col("finding") == "Nodule") & pl.col("localised"))["patient_id"][0]
    rows = rows.filter((pl.col("finding") != "Nodule") | (pl.col("patient_id") == patient))
    summary = run({("m", "d"): rows}, replicates=200)
    alone = cell(summary, scope="class", group="Nodule", metric="dice_floor")
    assert alone["value"] is not None
    assert alone["low"] is None
    macro = cell(summary, scope="macro", metric="dice_floor")
    assert macro["n"] == 2
    assert macro["low"] <= macro["value"] <= macro["high"]
