"""Medical-Checklist compared: the same items, clusters turned as wholes, on items by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.comparable import Pair
from medground.benchmarks.comparing import compare_pairs
from medground.benchmarks.medical_checklist import MedicalChecklist
from medground.benchmarks.medical_checklist.compare import compare, samples_of
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.summarise import Scored
from medground.errors import RunError

FIRST = [0.9, 0.8, 0.7, 0.6, 0.9, 0.9, 0.2, 0.8, 0.9, 0.6, 0.7, 0.9]
SECOND = [0.1, 0.4, 0.8, 0.3, 0.6, 0.2, 0.4, 0.1, 0.9, 0.2, 0.4, 0.3]
KINDS = sorted(TYPES)[:2]


def items(count: int = len(FIRST)) -> list[ChecklistItem]:
    return [
        ChecklistItem(
            f"i{k}", f"c{k}", "x.png", "s", "", f"paper{k // 2}", "", KINDS[k % 2], f"a {k}", f"b {k}", 0, 1, "a", "b",
            ("a",), ("b",), "a", "b", 1.0, 3, 0.5, "x", "A", pair=f"pair{k // 2}",
        )
        for k in range(count)
    ]  # fmt: skip


def scored(model: str, p: list[float], held: list[ChecklistItem] | None = None, failed: int = 0) -> Scored:
    n = len(p)
    outcome = ["timeout"] * failed + ["ok"] * (n - failed)
    frame = pl.DataFrame(
        {
            "p": p, "credit": [float(v > 0.5) for v in p], "parsed": [1] * n, "answers": [1] * n, "outcome": outcome,
            "identical": [False] * n, "beyond_limit": [False] * n, "p_first": p, "p_second": [1 - v for v in p],
            "choice_first": [None] * n, "choice_second": [None] * n,
        },
        schema_overrides={"choice_first": pl.String, "choice_second": pl.String},
    )  # fmt: skip
    return Scored(model, "d", "r", held or items(), frame, {}, None)


def records(one: Scored, two: Scored) -> dict[tuple[str, str, str], dict[str, Any]]:
    pair = Pair("one", "two", "d", list(zip(samples_of(one), samples_of(two), strict=True)))
    return {(r["metric"], r["scope"], r["group"]): r for r in compare_pairs([pair])}


def test_accuracy_is_compared_over_all_and_by_type_with_papers_as_clusters(exact: Any) -> None:
    got = records(scored("one", FIRST), scored("two", SECOND))
    a, b = ([float(v > 0.5) for v in p] for p in (FIRST, SECOND))
    value, p = exact(a, b, [f"paper{k // 2}" for k in range(len(FIRST))])
    whole = got["accuracy", "all", ""]
    assert (whole["difference"], whole["p"]) == pytest.approx((value, p))
    assert whole["patients"] == 6
    by_type = [got["accuracy", "type", TYPES[kind].label] for kind in KINDS]
    for side, record in enumerate(by_type):
        assert record["difference"] == pytest.approx(np.mean(a[side::2]) - np.mean(b[side::2]))
    assert got["accuracy", "macro", ""]["difference"] == pytest.approx(np.mean([r["difference"] for r in by_type]))
    pairs = [[float(min(v[2 * k : 2 * k + 2])) for k in range(6)] for v in (a, b)]
    expected = exact(*pairs, [f"pair{k}" for k in range(6)])
    record = got["pair_accuracy", "all", ""]
    assert (record["difference"], record["p"]) == pytest.approx(expected)
    losses = [np.mean([(1 - v) ** 2 for v in p]) for p in (FIRST, SECOND)]
    assert got["brier", "all", ""]["difference"] == pytest.approx(losses[0] - losses[1])
    assert got["brier", "all", ""]["direction"] >= 0  # a smaller loss is better


def test_an_item_that_failed_is_left_out_and_counted() -> None:
    got = records(scored("one", FIRST, failed=2), scored("two", SECOND))["accuracy", "all", ""]
    assert (got["n"], got["n_undefined"]) == (len(FIRST) - 2, 2)
    assert got["difference"] == pytest.approx(
        np.mean([float(v > 0.5) for v in FIRST[2:]]) - np.mean([float(v > 0.5) for v in SECOND[2:]])
    )


def test_captions_that_share_only_their_ids_are_refused() -> None:
    other = [replace(item, negative="c") for item in items()]
    with pytest.raises(RunError, match="another one in the two"):
        records(scored("one", FIRST), scored("two", SECOND, other))


def test_readers_policies_and_orders_are_settings() -> None:
    base = compare(MedicalChecklist()).settings
    for change in ({"reader": "strict"}, {"policy": "wrong"}, {"order": "single"}):
        name = next(iter(change))
        assert {k for k, v in compare(MedicalChecklist(**change)).settings.items() if base[k] != v} == {name}
