from __future__ import annotations

from typing import Any

from medground.benchmarks.results import Cell, frame
from medground.benchmarks.xbench.glance import glance, legend

WHO: dict[str, Any] = {"benchmark": "xbench", "model": "m", "dataset": "d", "subset": "main"}


def data(**changes: Any) -> dict[str, Any]:
    task = {"model": "m", "dataset": "d", "seen": None, "cases_seen": 0}
    return {"optimistic": True, "tasks": [task | changes]}


CELLS = frame(
    [
        Cell(**WHO, scope="macro", group="", metric="pointing", value=0.329, low=0.31, high=0.354, n=8),
        Cell(**WHO, scope="macro", group="", metric="dice@best", value=None, reason="no localised case"),
        Cell(**WHO, scope="pairs", group="", metric="pointing", value=0.4, n=7, undefined=1, flat=2, failed=3),
        Cell(**WHO, scope="macro", group="", metric="auc", value=0.7, n=8),
        Cell(**WHO, scope="class", group="Mass", metric="pointing", value=0.5, n=4, undefined=1, flat=2, failed=3),
        Cell(**WHO, scope="class", group="Mass", metric="auc", value=0.6, n=9),
    ]
)


def test_a_row_a_model_with_the_pairs_it_rests_on() -> None:
    (row,) = glance(CELLS, data(), "macro").to_dicts()
    assert row == {
        "dataset": "d", "model": "m", "pointing": "32.9 (31-35)", "prior": "", "Dice best*": "undefined",
        "floor": "", "gap*": "", "AUC": "70.0", "n/undef/flat/failed": "7/1/2/3",
    }  # fmt: skip


def test_pair_means_keep_the_macro_auc() -> None:
    (row,) = glance(CELLS, data(), "pairs").to_dicts()
    assert (row["pointing"], row["AUC"]) == ("40.0", "70.0")


def test_a_row_a_finding_with_its_own_counts() -> None:
    (row,) = glance(CELLS, data(), "class").to_dicts()
    assert (row["finding"], row["pointing"], row["AUC"], row["n/undef/flat/failed"]) == (
        "Mass", "50.0", "60.0", "4/1/2/3",
    )  # fmt: skip


def test_marks_are_explained() -> None:
    assert "optimistic" in legend(data())
    assert "†" not in legend(data())
    seen = data(seen="boxes")
    assert glance(CELLS, seen, "macro")["model"].to_list() == ["m†"]
    assert "† has seen" in legend(seen)
