"""Which tables of xbench the report shows, in the paper's form: models down, measures or findings across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from medground.benchmarks.printing import heading
from medground.benchmarks.xbench.specs import fixed, recognition_specs
from medground.reporting.tables import Table
from medground.reporting.xbench.model_table import Column, Counts, model_table
from medground.reporting.xbench.pool import Pooled
from medground.reporting.xbench.published import PublishedRow

RECOGNITION = tuple(spec.name for spec in recognition_specs())
BY_CLASS = ("pointing", "dice@best", "iou@best", "auc", "f1@0.5")
_BY = {"class": "finding", "view": "view", "size": "size of the region"}


def tables_of(pool: Pooled, dataset: str, printed: Sequence[PublishedRow]) -> Iterator[Table]:
    """Yield the tables of a dataset; those of one family take turns on the page."""
    yield from _overall(pool, dataset, printed)
    for metric in BY_CLASS:
        if metric in pool.metrics(dataset):
            yield _by_group(pool, dataset, metric, "class", printed)
    for scope in ("view", "size"):
        for metric in ("pointing", "dice@best"):
            yield _by_group(pool, dataset, metric, scope, ())


def _overall(pool: Pooled, dataset: str, printed: Sequence[PublishedRow]) -> Iterator[Table]:
    """Yield the means over classes."""
    have = pool.metrics(dataset)
    wholes = {
        "Pointing and Dice": ("main", ["pointing", "pointing_prior", *_overlaps(pool, "dice")]),
        "IoU": ("main", _overlaps(pool, "iou")),
        "Recognition": ("main", RECOGNITION),
    }
    if pool.has_shared(dataset):
        wholes["Cases that no model has seen"] = ("shared", ["pointing", "dice@best", "iou@best", "auc"])
    for name, (subset, metrics) in wholes.items():
        columns = [Column(heading(pool.spec(m)), m, pool.whole(m), subset=subset) for m in metrics if m in have]
        if not columns:
            continue
        counts: Counts = "none" if name == "Recognition" else "column"
        means = "regions" if columns[0].scope == "pairs" else "classes"
        beside = printed if subset == "main" else ()
        table = model_table(pool, dataset, f"{name}, mean over {means}", columns, beside, counts=counts)
        yield replace(table, family="Overall", choice=name)


def _overlaps(pool: Pooled, what: str) -> list[str]:
    unsearched = [fixed(what, tau) for tau in pool.facts["protocol"]["fixed"]]
    return [*unsearched, *(f"{what}{part}" for part in ("@best", "_gap", "_floor", "_gain"))]


def _by_group(pool: Pooled, dataset: str, metric: str, scope: str, printed: Sequence[PublishedRow]) -> Table:
    name = heading(pool.spec(metric))
    groups = pool.findings(dataset) if scope == "class" else pool.groups(dataset, scope)
    columns = [Column(group, metric, scope, group) for group in groups]
    whole = pool.whole(metric) if scope == "class" else "pairs"
    name_of_whole = "All regions" if whole == "pairs" else "Mean over classes"
    columns.append(Column(name_of_whole, metric, whole, kind="mean"))
    table = model_table(pool, dataset, f"{name} by {_BY[scope]}", columns, printed, counts="row").readable(_BY[scope])
    return replace(table, family=f"By {_BY[scope]}", choice=name)
