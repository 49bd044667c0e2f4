"""Any metric of any benchmark: items are matched, groups and means compared, families corrected."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.comparable import Pair, Sample
from medground.benchmarks.comparing import compare_pairs
from medground.errors import RunError
from medground.metrics.bootstrap import clusters
from medground.metrics.differences import compare_means
from medground.metrics.permutation import AVERAGE_PRECISION
from medground.metrics.spec import MetricSpec

HITS = MetricSpec("hits", "Hits")
AUC = MetricSpec("auc", "AUC", statistic="ranking")
AP = MetricSpec("ap", "AP", statistic="ranking")
F1 = MetricSpec("f1", "F1", statistic="f1")


def sample(
    spec: MetricSpec, n: int = 40, groups: int = 2, skill: float = 0.5, seed: int = 0, **kinds: object
) -> Sample:
    world, own = np.random.default_rng(5), np.random.default_rng(seed)
    truth = world.integers(0, 2, n)
    table = pl.DataFrame(
        {
            "item": [f"i{i}" for i in range(n)],
            "patient": [f"p{i // 2}" for i in range(n)],
            "group": [f"g{i % groups}" if groups > 1 else "" for i in range(n)],
        }
    )
    if spec.statistic == "mean":
        table = table.with_columns(value=pl.Series((own.random(n) < skill).astype(float)))
    else:
        answer = own.normal(size=n) + 3 * skill * truth
        table = table.with_columns(truth=pl.Series(truth.astype(float)), answer=pl.Series(answer))
        if spec.statistic == "f1":
            table = table.with_columns(answer=(pl.col("answer") > 1).cast(pl.Float64))
    return Sample(spec, table, **kinds)  # type: ignore[arg-type]  # the ranking


def of(records: list, metric: str, group: str, first: str = "a") -> dict:
    (found,) = [r for r in records if (r["metric"], r["group"], r["first"]) == (metric, group, first)]
    return found


def test_differences_are_those_of_the_layer_below() -> None:
    one, two = sample(HITS, skill=0.9, seed=1), sample(HITS, skill=0.3, seed=2)
    records = compare_pairs([Pair("a", "b", "d", [(one, two)])])
    assert [r["group"] for r in records] == ["g0", "g1", ""]
    own = one.table["group"] == "g0"
    x, y = (s.table.filter(own)["value"].to_numpy() for s in (one, two))
    expected = compare_means(x, y, clusters(one.table.filter(own)["patient"].to_list()))
    got = of(records, "hits", "g0")
    assert (got["difference"], got["low"], got["high"], got["p"]) == pytest.approx(
        (expected.value, expected.low, expected.high, expected.p)
    )
    assert got["p_family"] >= got["p"]
    assert "max-T" in got["family"]
    assert of(records, "hits", "")["difference"] == pytest.approx(
        np.mean([of(records, "hits", g)["difference"] for g in ("g0", "g1")])
    )
    assert of(records, "hits", "")["decision"] == "better"


@pytest.mark.parametrize("spec", [HITS, AUC, AP, F1], ids=lambda s: s.name)
def test_exchanging_the_models_mirrors_everything(spec: MetricSpec) -> None:
    more = {"ranking": AVERAGE_PRECISION} if spec is AP else {}
    one, two = sample(spec, skill=0.8, seed=1, **more), sample(spec, skill=0.2, seed=2, **more)
    there = compare_pairs([Pair("a", "b", "d", [(one, two)])])
    back = compare_pairs([Pair("b", "a", "d", [(two, one)])])
    for x, y in zip(there, back, strict=True):
        assert x["difference"] == pytest.approx(-y["difference"])
        assert (x["low"], x["high"]) == pytest.approx((-y["high"], -y["low"]))
        assert x["p"] == pytest.approx(y["p"])
        assert x["direction"] == -y["direction"]


def test_only_items_that_both_have_are_used_and_the_order_does_not_matter() -> None:
    one, two = sample(HITS, skill=0.9, seed=1), sample(HITS, skill=0.3, seed=2)
    fewer = Sample(HITS, two.table.head(30).sample(fraction=1, shuffle=True, seed=3))
    records = compare_pairs([Pair("a", "b", "d", [(one, fewer)])])
    same = compare_pairs([Pair("a", "b", "d", [(Sample(HITS, one.table.head(30)), Sample(HITS, two.table.head(30)))])])
    assert sum(r["n"] for r in records if r["group"]) == 30
    assert [r["difference"] for r in records] == pytest.approx([r["difference"] for r in same])
    assert [r["p"] for r in records] == [r["p"] for r in same]


def test_all_pairs_of_models_and_datasets_are_one_family() -> None:
    models = {name: sample(HITS, skill=s, seed=i) for i, (name, s) in enumerate({"a": 0.9, "b": 0.5, "c": 0.2}.items())}
    pairs = [
        Pair(x, y, d, [(models[x], models[y])]) for d in ("d", "e") for x, y in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    records = compare_pairs(pairs)
    assert {r["family"].split()[0] for r in records if r["group"]} == {"12"}
    assert {r["family"].split()[0] for r in records if not r["group"]} == {"6"}
    assert all(r["p_family"] >= r["p"] for r in records)


def test_undefined_and_unmatched_items_are_left_out() -> None:
    one, two = sample(HITS, groups=1, skill=0.9, seed=1), sample(HITS, groups=1, skill=0.3, seed=2)
    holes = one.table.with_columns(value=pl.when(pl.col("item") == "i0").then(None).otherwise(pl.col("value")))
    (record,) = compare_pairs([Pair("a", "b", "d", [(Sample(HITS, holes), two)])])
    assert record["n"] == 39
    (nothing,) = compare_pairs([Pair("a", "b", "d", [(Sample(HITS, holes.head(0)), two)])])
    assert nothing["difference"] is None
    assert nothing["decision"] == "cannot be told"


def test_mcnemar_is_given_where_every_patient_has_one_item() -> None:
    one, two = sample(HITS, groups=1, skill=0.9, seed=1), sample(HITS, groups=1, skill=0.3, seed=2)
    (clustered,) = compare_pairs([Pair("a", "b", "d", [(one, two)])])
    assert clustered["mcnemar_p"] is None
    alone = [Sample(HITS, s.table.with_columns(patient=pl.lit(None, pl.String))) for s in (one, two)]
    (single,) = compare_pairs([Pair("a", "b", "d", [(alone[0], alone[1])])])
    assert single["mcnemar_p"] is not None


def test_another_truth_and_items_that_stand_twice_are_refused() -> None:
    one = sample(AUC)
    other = Sample(AUC, one.table.with_columns(truth=1 - pl.col("truth")))
    with pytest.raises(RunError, match="another truth"):
        compare_pairs([Pair("a", "b", "d", [(one, other)])])
    with pytest.raises(RunError, match="stands twice"):
        compare_pairs([Pair("a", "b", "d", [(Sample(AUC, pl.concat([one.table, one.table])), one)])])
