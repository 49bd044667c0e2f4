"""Cells of recognition: AUC, AUPRC, F1, Hamming accuracy and calibration, by class and over classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.grounding import Resampling
from medground.benchmarks.xbench.specs import CUT
from medground.metrics import calibration, classification as c
from medground.metrics.bootstrap import (
    Clusters,
    bootstrap_f1,
    bootstrap_mean,
    bootstrap_ranking,
    bootstrap_ratio,
    clusters,
    macro_replicates,
    percentile_interval,
)
from medground.metrics.values import Value, mean_defined

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """What was said about N cases and C findings.

    Attributes:
        findings: the classes, in order.
        labels: ``(N, C)``: 1, 0, or NaN where not annotated, failed or without a score.
        scores: ``(N, C)``.
        probabilities: ``(N, C)``, after the protocol's link.
        failed: ``(C,)`` annotated pairs whose case could not be read.
        silent: ``(C,)`` annotated pairs to which the model gave no score.
        by: the patients.
    """

    findings: Sequence[str]
    labels: Floats
    scores: Floats
    probabilities: Floats
    failed: NDArray[np.int64]
    silent: NDArray[np.int64]
    by: Clusters


def answers(rows: pl.DataFrame, findings: Sequence[str], link: str) -> Answers:
    """Arrange rows as arrays; a pair without a score is left out, and counted."""
    cases = rows.select("case_id", "patient_id").unique("case_id", keep="first", maintain_order=True)
    place = {case: i for i, case in enumerate(cases["case_id"])}
    i = np.array([place[case] for case in rows["case_id"]], dtype=np.intp)
    j = np.array([list(findings).index(f) for f in rows["finding"]], dtype=np.intp)
    shape = (len(cases), len(findings))

    def matrix(column: str) -> Floats:
        out = np.full(shape, np.nan)
        out[i, j] = rows[column].cast(pl.Float64).to_numpy()
        return out

    labels, scores = matrix("label"), matrix("score")
    probabilities = matrix("probability")
    if link == "sigmoid":
        probabilities = 1 / (1 + np.exp(-scores))
    failed = np.zeros(shape, dtype=bool)
    failed[i, j] = (rows["state"] == "failed").to_numpy()
    known = ~np.isnan(labels)
    silent = known & ~failed & (np.isnan(scores) | np.isnan(probabilities))
    labels[failed | silent] = np.nan
    by = clusters(cases["patient_id"].to_list(), cases["case_id"].to_list())
    lost, unscored = ((known & x).sum(axis=0) for x in (failed, silent))
    return Answers(tuple(findings), labels, scores, probabilities, lost, unscored, by)


def recognition_cells(said: Answers, how: Resampling, **who: str) -> Iterator[Cell]:
    """Yield the cells of one model on one dataset; ``who`` says whose they are, as in grounding."""
    for metric, values, replicates in _measures(said, how):
        for k, (finding, value) in enumerate(zip(said.findings, values, strict=True)):
            spread = None if replicates is None else replicates[:, k]
            yield _cell(value, spread, how, int(said.failed[k]), int(said.silent[k]), "class", finding, metric, who)
        macro = mean_defined([v.value for v in values], reason="no class is defined")
        spread = None if replicates is None else macro_replicates(replicates)
        lost = int(said.failed.sum())
        yield _cell(macro, spread, how, lost, macro.n_undefined, "macro", "", metric, who)
    yield _hamming(said, how, who)


def _measures(said: Answers, how: Resampling) -> Iterator[tuple[str, list[Value], Floats | None]]:
    """Yield (metric, value a class, replicates (B, C) or None where no interval is given)."""
    y, s, p, by = said.labels, said.scores, said.probabilities, said.by
    draws, seed = how.replicates, how.seed
    ranking = bootstrap_ranking(y, s, by, draws, seed)
    known = ~np.isnan(y)

    def mean(values: Floats) -> Floats:
        return bootstrap_mean(np.where(known, values, np.nan), by, draws, seed)

    yield "auc", c.per_class(c.auc, y, s), ranking.auc
    yield "auprc", c.per_class(c.auprc_trapezoid, y, s), ranking.auprc_trapezoid
    yield "average_precision", c.per_class(c.average_precision, y, s), ranking.average_precision
    yield f"f1@{CUT}", c.per_class(c.f1, y, p), bootstrap_f1(y, p, by, CUT, draws, seed)
    yield "f1@best", c.per_class(lambda a, x: c.best_f1(a, x).value, y, s), None
    yield f"accuracy@{CUT}", c.per_class(c.accuracy, y, p), mean(((p >= CUT) == (y == 1)).astype(float))
    yield "brier", c.per_class(calibration.brier, y, p), mean((p - y) ** 2)
    yield "log_loss", c.per_class(calibration.log_loss, y, p), mean(_log_losses(y, p))
    yield "ece", c.per_class(calibration.ece, y, p), None


def _log_losses(y: Floats, p: Floats) -> Floats:
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    return -np.where(y == 1, np.log(clipped), np.log(1 - clipped))


def _hamming(said: Answers, how: Resampling, who: dict[str, str]) -> Cell:
    """Share of all annotated (case, finding) pairs that are called rightly."""
    value = c.hamming_accuracy(said.labels, said.probabilities, CUT)
    known = ~np.isnan(said.labels)
    right = known & ((said.probabilities >= CUT) == (said.labels == 1))
    spread = bootstrap_ratio(right.sum(axis=1), known.sum(axis=1), said.by, how.replicates, how.seed)
    lost, silent = int(said.failed.sum()), int(said.silent.sum())
    return _cell(value, spread, how, lost, silent, "macro", "", f"hamming@{CUT}", who)


def _cell(
    value: Value,
    replicates: Floats | None,
    how: Resampling,
    failed: int,
    undefined: int,
    scope: str,
    group: str,
    metric: str,
    who: Mapping[str, Any],
) -> Cell:
    interval = None
    if value.value is not None and replicates is not None and how.replicates:
        interval = percentile_interval(replicates, how.level)
    return Cell(
        **who,
        scope=scope,
        group=group,
        metric=metric,
        value=value.value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=value.n,
        undefined=undefined,
        failed=failed,
        counts={"skipped": interval.skipped} if interval and interval.skipped else {},
        reason=value.reason,
    )
