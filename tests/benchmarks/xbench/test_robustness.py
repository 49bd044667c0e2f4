"""What a change of the pictures does to a model's figures, against plain pairing by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from medground.benchmarks.xbench.robustness import shared_pairs
from medground.datasets.augmented import Augmented
from medground.errors import RunError
from medground.metrics.bootstrap import clusters
from medground.metrics.differences import compare_means
from medground.reporting.runs import read_run
from medground.running.reading import read_rows
from medground.session import run_file

PHANTOM = {"name": "phantom", "cases": 16, "size": 64, "seed": 5}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robust")
    changed = [{"name": "augmented", "label": c, "of": PHANTOM, "change": c} for c in ("brightness", "flip")]
    data = {
        "name": "robust",
        "benchmark": {"name": "xbench", "replicates": 0, "datasets": [{**PHANTOM, "label": "plain"}, *changed]},
        "models": [{"name": "baseline_centre"}, {"name": "reference"}],
        "engine": {"torch_threads": 1},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(data))
    run_file(folder / "run.yaml", out=folder / "runs")
    return folder / "runs" / "robust"


def table_of(run: Path) -> pl.DataFrame:
    """The table as it is stored, figures as numbers."""
    numbers = ["difference", "low", "high", "p", "n"]
    return read_run(run).tables["robustness"].with_columns(pl.col(numbers).cast(pl.Float64))


def test_differences_are_those_of_the_same_pairs(finished: Path) -> None:
    table = table_of(finished)
    assert set(zip(table["model"], table["change"], strict=True)) == {
        (model, change) for model in ("baseline_centre", "reference") for change in ("brightness", "flip")
    }
    assert set(table["dataset"]) == {"plain"}
    plain, flipped = (
        read_rows(finished, ("reference", name)).with_columns(pl.col("case_id").str.replace("@flip", "", literal=True))
        for name in ("plain", "flip")
    )
    both = plain.join(flipped, on=["case_id", "finding"], suffix="_changed").filter(pl.col("finding") == "Mass")
    both = both.filter(pl.col("localised")).sort("case_id")
    by = clusters(both["patient_id"].to_list(), both["case_id"].to_list())
    expected = compare_means(both["first_inside_changed"].cast(float), both["first_inside"].cast(float), by)
    where = {"model": "reference", "change": "flip", "metric": "pointing", "group": "Mass"}
    (line,) = table.filter(*[pl.col(k) == v for k, v in where.items()]).to_dicts()
    assert line["n"] == len(both) > 0
    assert (line["difference"], line["low"], line["high"], line["p"]) == pytest.approx(
        (expected.value, expected.low, expected.high, expected.p)
    )


def test_a_model_that_does_not_look_does_not_change(finished: Path) -> None:
    table = table_of(finished)
    still = table.filter(pl.col("model") == "baseline_centre", pl.col("change") == "brightness")
    assert set(still["difference"].drop_nulls()) == {0.0}
    assert table.filter(pl.col("model") == "reference")["difference"].abs().max() > 0


def test_the_run_says_it_in_words_and_warns_of_no_shared_pictures(finished: Path) -> None:
    notes = read_run(finished).summary.notes
    assert sum(" left and right exchanged: " in note for note in notes) == 4  # pointing and AUC of two models
    assert not any("take their pictures from" in note for note in notes)


def rows(ids: list[str], findings: list[str], labels: list[bool]) -> pl.DataFrame:
    columns: dict[str, Any] = {"case_id": ids, "finding": findings, "label": labels, "seen": [False] * len(ids)}
    return pl.DataFrame(columns).with_columns(value=np.arange(len(ids)))


class Nothing:
    name = "nothing"
    findings = ("Left mass", "Right mass")


def test_a_flipped_finding_is_held_against_that_of_the_other_side() -> None:
    flip = Augmented(of=Nothing(), change="flip")
    plain = rows(["a", "a"], ["Left mass", "Right mass"], [True, False])
    changed = rows(["a@flip", "a@flip"], ["Left mass", "Right mass"], [False, True])
    one, two = shared_pairs(changed, plain, flip)
    assert one["finding"].to_list() == two["finding"].to_list() == ["Left mass", "Right mass"]
    assert one["value"].to_list() == [1, 0]
    with pytest.raises(RunError, match="another truth"):
        shared_pairs(changed.with_columns(label=~pl.col("label")), plain, flip)
