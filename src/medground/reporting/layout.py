"""Which tables of xbench the report shows, in the paper's form: models down, measures or findings across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from medground.benchmarks.xbench.tables import heading
from medground.reporting.model_table import Column, Counts, model_table
from medground.reporting.pool import Pool
from medground.reporting.published import PublishedRow
from medground.reporting.tables import Table

RECOGNITION = (
    *("auc", "auprc", "average_precision", "f1@0.5", "f1@best", "accuracy@0.5", "hamming@0.5"),
    *("brier", "log_loss", "ece"),
)
BY_CLASS = ("pointing", "dice@best", "iou@best", "auc", "f1@0.5")
_BY = {"class": "finding", "view": "view", "size": "size of the region"}


def tables_of(pool: Pool, dataset: str, printed: Sequence[PublishedRow]) -> Iterator[Table]:
    """Yield the tables of a dataset; those of one family take turns on the page."""
    yield from _overall(pool, dataset, printed)
    for metric in BY_CLASS:
        if metric in pool.metrics(dataset):
            yield _by_group(pool, dataset, metric, "class", printed)
    for scope in ("view", "size"):
        for metric in ("pointing", "dice@best"):
            yield _by_group(pool, dataset, metric, scope, ())


def _overall(pool: Pool, dataset: str, printed: Sequence[PublishedRow]) -> Iterator[Table]:
    """Yield the means over classes."""
    have, optimistic = pool.metrics(dataset), pool.facts["optimistic"]
    wholes = {
        "Pointing and Dice": ("main", ["pointing", "pointing_prior", *_overlaps(pool, "dice")]),
        "IoU": ("main", _overlaps(pool, "iou")),
        "Recognition": ("main", RECOGNITION),
    }
    if pool.has_shared(dataset):
        wholes["Cases that no model has seen"] = ("shared", ["pointing", "dice@best", "iou@best", "auc"])
    for name, (subset, metrics) in wholes.items():
        columns = [Column(heading(m, optimistic), m, pool.whole(m), subset=subset) for m in metrics if m in have]
        if not columns:
            continue
        counts: Counts = "none" if name == "Recognition" else "column"
        means = "regions" if columns[0].scope == "pairs" else "classes"
        beside = printed if subset == "main" else ()
        table = model_table(pool, dataset, f"{name}, mean over {means}", columns, beside, counts=counts)
        yield replace(table, family="Overall", choice=name)


def _overlaps(pool: Pool, what: str) -> list[str]:
    fixed = [f"{what}@{tau:g}" for tau in pool.facts["protocol"]["fixed"]]
    return [*fixed, *(f"{what}{part}" for part in ("@best", "_gap", "_floor", "_gain"))]


def _by_group(pool: Pool, dataset: str, metric: str, scope: str, printed: Sequence[PublishedRow]) -> Table:
    name = heading(metric, pool.facts["optimistic"])
    groups = pool.findings(dataset) if scope == "class" else pool.groups(dataset, scope)
    columns = [Column(group, metric, scope, group) for group in groups]
    whole = pool.whole(metric) if scope == "class" else "pairs"
    name_of_whole = "All regions" if whole == "pairs" else "Mean over classes"
    columns.append(Column(name_of_whole, metric, whole, kind="mean"))
    table = model_table(pool, dataset, f"{name} by {_BY[scope]}", columns, printed, counts="row").readable(_BY[scope])
    return replace(table, family=f"By {_BY[scope]}", choice=name)
