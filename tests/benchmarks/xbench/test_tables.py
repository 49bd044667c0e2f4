from __future__ import annotations

import pytest

from medground.benchmarks.xbench.cells import Cell, frame
from medground.benchmarks.xbench.tables import heading, seen_text, wide, written

DATASET = {"model": "m", "dataset": "d", "subset": "main"}


def test_a_number_is_written_in_percent_with_its_interval() -> None:
    assert written({"metric": "auc", "value": 0.61618, "low": 0.5809, "high": 0.65}) == "61.62 [58.09, 65.00]"
    assert written({"metric": "brier", "value": 0.25, "low": None, "high": None}) == "0.2500"
    assert written({"metric": "auc", "value": None, "low": None, "high": None, "reason": "no positives"}) == (
        "undefined: no positives"
    )


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("dice@0.5", "Dice at 0.5"),
        ("iou@0.008", "IoU at 0.008"),
        ("dice@best", "Dice at searched threshold (optimistic)"),
        ("dice_gain", "Dice gain over floor (optimistic)"),
        ("dice_floor", "Dice of all foreground"),
        ("hamming@0.5", "Hamming at 0.5"),
    ],
)
def test_only_searched_numbers_are_called_optimistic(metric: str, name: str) -> None:
    assert heading(metric, optimistic=True) == name
    assert heading(metric, optimistic=False) == name.removesuffix(" (optimistic)")


def test_a_best_f1_is_always_found_on_the_test_set() -> None:
    for optimistic in (True, False):
        assert heading("f1@best", optimistic=optimistic) == "F1 at best (optimistic)"


def test_a_row_a_model_and_group_with_its_counts() -> None:
    cells = frame(
        [
            Cell(**DATASET, scope="class", group=g, metric=m, value=v, n=4, undefined=1, flat=2, failed=3)
            for g in ("Mass", "Nodule")
            for m, v in (("pointing", 0.5), ("iou@best", 0.25))
        ]
    )
    table = wide(cells, "class", ["pointing", "iou@best"], {("m", "d"): "boxes; scored on all"}, optimistic=True)
    assert table.to_dicts()[1] == {
        "dataset": "d",
        "model": "m",
        "group": "Nodule",
        "seen in training": "boxes; scored on all",
        "Pointing": "50.00",
        "IoU at searched threshold (optimistic)": "25.00",
        "n": 4,
        "undefined": 1,
        "flat": 2,
        "failed": 3,
    }


def test_pair_means_stand_beside_macro_recognition() -> None:
    cells = frame(
        [
            Cell(**DATASET, scope="pairs", group="", metric="pointing", value=0.5),
            Cell(**DATASET, scope="macro", group="", metric="pointing", value=0.1),
            Cell(**DATASET, scope="macro", group="", metric="auc", value=0.7),
        ]
    )
    (row,) = wide(cells, "pairs", ["pointing", "auc"], {("m", "d"): ""}, optimistic=False).to_dicts()
    assert (row["Pointing"], row["AUC"]) == ("50.00", "70.00")


def test_what_was_seen_is_said() -> None:
    assert seen_text({"seen": None, "cases_seen": 0}) == ""
    assert seen_text({"seen": "images", "cases_seen": 0}) == "images; scored on all"
    assert seen_text({"seen": "boxes", "cases_seen": 3}) == "boxes; scored on the rest"
    assert seen_text({"seen": None, "cases_seen": 3}) == "patients; scored on the rest"
