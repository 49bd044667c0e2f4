"""A metric over kept counts is one file: it is measured, averaged, tabled and compared like those that ship."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from tests.benchmarks.xbench.test_recomputed import SMALL, answers, drawn

from medground import registry
from medground.benchmarks.base import Entry
from medground.benchmarks.xbench.compare import samples
from medground.benchmarks.xbench.further import further_metrics
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.rescore import rows_from_maps
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.errors import ConfigError, MetricError, RegistryError
from medground.imaging.geometry import upsample
from medground.metrics.counted import Counts
from medground.metrics.counted.precision import Precision
from medground.metrics.counted.recall import Recall
from medground.metrics.saliency import minmax
from medground.metrics.spec import MetricSpec
from medground.models.base import ModelInfo


class Odd:
    name: ClassVar[str] = "odd"
    spec: ClassVar[MetricSpec] = MetricSpec("odd", "Odd")

    def values(self, counts: Counts) -> Any:
        return np.full(counts.area.shape, 1.5)


class Short(Odd):
    def values(self, counts: Counts) -> Any:
        return np.zeros(3)


class Taken(Odd):
    spec: ClassVar[MetricSpec] = MetricSpec("pointing", "Mine")


def entries(*classes: type[Any]) -> list[Entry]:
    return [Entry(cls.__name__, cls.__name__, cls) for cls in classes]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    cases, findings = drawn()
    failed, said = answers(cases, findings, 0)
    return rows_from_maps(cases, findings, lambda c, f: said[c, f], SMALL, failed=failed)


def test_precision_and_recall_are_those_of_the_maps(rows: pl.DataFrame) -> None:
    cases, findings = drawn()
    _, said = answers(cases, findings, 0)
    regions = {case.case_id: case.regions for case in cases}
    pairs = Pairs.of(rows, SMALL, 0, further_metrics(entries(Precision, Recall), SMALL))
    values = pairs.further()
    for i, row in enumerate(pairs.frame.iter_rows(named=True)):
        if row["state"] not in {"ok", "flat"}:
            assert np.isnan([values["precision"][i], values["recall"][i]]).all()
            continue
        saliency = said[row["case_id"], row["finding"]].map
        assert saliency is not None
        chosen = minmax(upsample(saliency, (40, 40), "bilinear")) >= SMALL.thresholds[pairs.searched[i]]
        truth = regions[row["case_id"]][row["finding"]].mask_at((40, 40))
        assert values["recall"][i] == (chosen & truth).sum() / truth.sum()
        assert values["precision"][i] == (chosen & truth).sum() / chosen.sum()


def test_it_stands_beside_the_others_everywhere(rows: pl.DataFrame) -> None:
    metrics = further_metrics(entries(Recall), SMALL)
    made = [
        summarise({("m", "d"): rows}, {"m": ModelInfo("m")}, {"d": drawn()[1]}, SummaryOptions(SMALL, metrics=given))
        for given in ((), metrics)
    ]
    plain, more = ({cell.key: cell for cell in summary.cells} for summary in made)
    added = [cell for key, cell in more.items() if key not in plain]
    assert {cell.metric for cell in added} == {"recall"}
    assert {cell.scope for cell in added} == {"class", "pairs", "view", "size", "macro"}
    assert {key: more[key] for key in plain} == plain
    whole = next(cell for cell in added if cell.scope == "pairs")
    assert whole.low is not None, "it has an interval"
    assert made[1].spec("recall").title == "Recall at searched threshold"
    assert any("Recall" in column for column in made[1].tables["grounding"].columns)
    assert "recall" in [sample.spec.name for sample in samples(rows, drawn()[1], SMALL, 0, metrics)]


@pytest.mark.parametrize(("cls", "problem"), [(Odd, "outside the bounds"), (Short, "one value a pair")])
def test_what_a_metric_says_is_checked(cls: type[Any], problem: str, rows: pl.DataFrame) -> None:
    metrics = further_metrics(entries(cls), SMALL)
    with pytest.raises(MetricError, match=problem):
        Pairs.of(rows, SMALL, 0, metrics).further()


@pytest.mark.parametrize(
    ("classes", "problem"),
    [((Taken,), "one name"), ((Recall, Recall), "one name"), ((dict,), "no metric over counts")],
    ids=["of the protocol", "twice", "no metric"],
)
def test_what_is_no_such_metric_is_refused(classes: tuple[type[Any], ...], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        further_metrics(entries(*classes), SMALL)


def test_those_that_ship_are_listed() -> None:
    assert set(registry.names("metric")) >= {"precision", "recall"}
    with pytest.raises(RegistryError, match="no metric named 'recal'"):
        registry.load("metric", "recal")
