"""Rows of two kept runs give the figures that they gave when they were kept, to nine digits.

``golden/summaries`` holds, for each benchmark, the rows of a small run, every cell of its summary, and its table for a
terminal. Where a rule changes on purpose, the cells are written anew; nothing else may move them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.gridvqa_x.summarise import IntervalOptions as GridOptions, summarise as summarise_grid
from medground.benchmarks.results import Summary, frame
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.models.base import ModelInfo
from medground.models.radiology.reference import Reference

KEPT = resolve_protocol({"base": "xbench", "search_mean": "pairs"})
"""The protocol that the run was kept under: its search maximised the mean over pairs."""

KINDS = {"baseline_all_foreground": "baseline", "baseline_centre": "baseline", "baseline_class_prior": "baseline"}


def kept_rows(golden: Path, name: str) -> dict[tuple[str, ...], pl.DataFrame]:
    rows = pl.read_parquet(golden / "summaries" / f"{name}.parquet")
    parted = rows.partition_by("path", maintain_order=True, include_key=True)
    return {tuple(part["path"][0].split("/")): part.drop("path") for part in parted}


@pytest.fixture(scope="module")
def xbench(golden: Path) -> Summary:
    rows = kept_rows(golden, "xbench")
    cards = {model: ModelInfo(model, kind="baseline") for model in KINDS} | {"reference": Reference.info}
    findings = {"phantom": tuple(next(iter(rows.values()))["finding"].unique(maintain_order=True))}
    return summarise(rows, cards, findings, SummaryOptions(KEPT, seed=0, replicates=200))


@pytest.fixture(scope="module")
def gridvqa_x(golden: Path) -> Summary:
    regimes = {
        ("gridvqa_rule", "pure"): "pure",
        ("gridvqa_counter", "spurious"): "spurious",
        ("gridvqa_counter", "pure"): "cross",
    }
    return summarise_grid(kept_rows(golden, "gridvqa_x"), regimes, GridOptions(replicates=50, seed=1))


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x"])
def test_every_cell_is_what_it_was(golden: Path, name: str, request: pytest.FixtureRequest) -> None:
    expected = pl.read_parquet(golden / "summaries" / f"{name}_cells.parquet")
    cells = frame(request.getfixturevalue(name).cells)
    got = cells.select(expected.columns)
    assert len(got) == len(expected)
    for column in got.columns:
        kept = expected[column].cast(got[column].dtype)
        assert (got[column].is_null() == kept.is_null()).all(), column
        if got[column].dtype.is_float():  # processors differ in the last digits of a sum
            np.testing.assert_allclose(got[column].to_numpy(), kept.to_numpy(), rtol=1e-9, atol=1e-12, err_msg=column)
        else:
            assert got[column].equals(kept, null_equal=True), column


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x"])
def test_the_table_for_a_terminal_is_what_it_was(golden: Path, name: str, request: pytest.FixtureRequest) -> None:
    expected = pl.read_csv(golden / "summaries" / f"{name}_glance.csv", infer_schema=False).fill_null("")
    got = request.getfixturevalue(name).tables["glance"].fill_null("")
    assert got.to_dicts() == expected.to_dicts()


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x"])
def test_a_summary_survives_its_file(name: str, request: pytest.FixtureRequest) -> None:
    summary: Summary = request.getfixturevalue(name)
    read = Summary.from_json(summary.to_json())
    assert list(read.cells) == list(summary.cells)
    assert list(read.verdicts) == list(summary.verdicts)
    assert len({cell.key for cell in summary.cells}) == len(summary.cells)


@pytest.mark.parametrize("name", ["xbench", "gridvqa_x"])
def test_every_metric_of_a_cell_is_specified(name: str, request: pytest.FixtureRequest) -> None:
    summary: Summary = request.getfixturevalue(name)
    played = {cell.metric for verdict in summary.verdicts for cell in verdict.roles.values()}
    assert {cell.metric for cell in summary.cells} | played == {spec.name for spec in summary.metrics}
