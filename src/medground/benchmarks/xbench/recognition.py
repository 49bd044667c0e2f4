"""Cells of recognition: AUC, average precision, F1, Hamming accuracy and calibration, each beside its floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.grounding import How
from medground.benchmarks.xbench.pairs import cluster_ids
from medground.benchmarks.xbench.specs import CUT
from medground.metrics import calibration, classification as c, floors
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.folds import patient_folds
from medground.metrics.inference import AUC, MACRO, MACRO_RANKING, SHARE, Estimate, estimate, estimate_macro
from medground.metrics.influence import Influence, of_auc, of_average_precision, of_f1, of_mean, of_ratio
from medground.metrics.values import Value, mean_defined

Floats = NDArray[np.float64]
Labels = tuple[Floats, Floats]
"""Truth and what was answered, each ``(N,)``."""


@dataclass(frozen=True)
class LabelAnswers:
    """What was said about N cases and C findings.

    Attributes:
        findings: the classes, in order.
        labels: ``(N, C)``: 1, 0, or NaN where not annotated, failed or without a score.
        scores: ``(N, C)``.
        called: ``(N, C)``: the truth again, NaN where not annotated, failed or without a probability. What ranks
            needs no probability, and what calls needs no score.
        probabilities: ``(N, C)``, after the protocol's link.
        failed: ``(C,)`` annotated pairs whose case could not be read.
        silent: ``(C,)`` annotated pairs to which the model gave no score.
        unlikely: ``(C,)`` annotated pairs to which the model gave no probability.
        by: the patients.
        patients: ``(N,)`` their ids, or the case where none is known.
    """

    findings: Sequence[str]
    labels: Floats
    scores: Floats
    called: Floats
    probabilities: Floats
    failed: NDArray[np.int64]
    silent: NDArray[np.int64]
    unlikely: NDArray[np.int64]
    by: Clusters
    patients: Sequence[str]


@dataclass(frozen=True)
class Measure:
    """One metric of every class.

    Attributes:
        name: of the metric.
        one: what it is of one class, from truth and answers.
        likely: whether it needs probabilities rather than scores.
        c: pseudo-patients of its interval; None: it has none.
        macro: the same of a mean over classes.
        bounds: smallest and largest value; None: unbounded.
        floor: what can be had without looking, from the truth.
    """

    name: str
    one: Callable[[Labels, Clusters, Sequence[str], int], Influence | Value]
    likely: bool
    c: float | None = SHARE
    macro: float | None = MACRO
    bounds: tuple[float, float] | None = (0.0, 1.0)
    floor: Callable[[Floats], Value] | None = None


def answers(rows: pl.DataFrame, findings: Sequence[str], link: str) -> LabelAnswers:
    """Arrange rows as arrays; a pair without a score or a probability is left out of what needs it, and counted."""
    cases = rows.select("case_id", "patient_id").unique("case_id", keep="first", maintain_order=True)
    place = {case: i for i, case in enumerate(cases["case_id"])}
    of = {finding: j for j, finding in enumerate(findings)}
    i = np.array([place[case] for case in rows["case_id"]], dtype=np.intp)
    j = np.array([of[f] for f in rows["finding"]], dtype=np.intp)
    shape = (len(cases), len(findings))

    def matrix(column: str) -> Floats:
        out = np.full(shape, np.nan)
        out[i, j] = rows[column].cast(pl.Float64).to_numpy()
        return out

    truth, scores, probabilities = matrix("label"), matrix("score"), matrix("probability")
    if link == "sigmoid":
        probabilities = 1 / (1 + np.exp(-scores))
    failed = np.zeros(shape, dtype=bool)
    failed[i, j] = (rows["state"] == "failed").to_numpy()
    known = ~np.isnan(truth)
    silent, unlikely = (known & ~failed & np.isnan(x) for x in (scores, probabilities))
    labels, called = (np.where(failed | missing, np.nan, truth) for missing in (silent, unlikely))
    lost, unscored, uncalled = ((known & x).sum(axis=0) for x in (failed, silent, unlikely))
    by = clusters(cases["patient_id"].to_list(), cases["case_id"].to_list())
    ids = cluster_ids(cases)
    return LabelAnswers(tuple(findings), labels, scores, called, probabilities, lost, unscored, uncalled, by, ids)


def recognition_cells(given: LabelAnswers, how: How, further: Sequence[Measure] = (), **who: str) -> Iterator[Cell]:
    """Yield the cells of one model on one dataset.

    Args:
        given: what was said.
        how: the intervals.
        further: measures beside the usual ones.
        who: benchmark, reading, model, dataset and subset of the cells.
    """
    for measure in (*MEASURES, *further):
        parts = by_class(given, measure, how.seed)
        truth = given.called if measure.likely else given.labels
        missing = given.unlikely if measure.likely else given.silent
        blind = [measure.floor(truth[:, k]) if measure.floor else None for k in range(len(given.findings))]
        for k, (finding, part) in enumerate(zip(given.findings, parts, strict=True)):
            estimated = _of_one(part, measure, how)
            counts = int(given.failed[k]), int(missing[k])
            yield _cell(estimated, counts, blind[k], "class", finding, measure.name, who)
        defined = [floor for floor, part in zip(blind, parts, strict=True) if part.value is not None and floor]
        macro_floor = mean_defined([f.value for f in defined]) if defined else None
        estimated = _over_classes(parts, measure, how)
        yield _cell(
            estimated, (int(given.failed.sum()), estimated.n_undefined), macro_floor, "macro", "", measure.name, who
        )
    yield _hamming(given, how, who)


def by_class(given: LabelAnswers, measure: Measure, seed: int) -> list[Influence | Value]:
    """Return a metric of every class."""
    truth, answer = (given.called, given.probabilities) if measure.likely else (given.labels, given.scores)
    return [
        measure.one((truth[:, k], answer[:, k]), given.by, given.patients, seed) for k in range(len(given.findings))
    ]


def _f1_at(labels: Labels, by: Clusters, threshold: float | None) -> Influence:
    truth, answer = labels
    return of_f1(truth, answer >= (np.inf if threshold is None else threshold), by)


def _f1_crossfit(labels: Labels, by: Clusters, patients: Sequence[str], seed: int) -> Influence:
    """F1 with each half of the patients called at the best threshold of the other."""
    truth, answer = labels
    fold = patient_folds(patients, 2, seed)
    calls = np.zeros(truth.size)
    for half in (0, 1):
        other = c.best_f1(truth[fold != half], answer[fold != half]).threshold
        here = fold == half
        if other is None:
            truth = np.where(here, np.nan, truth)
        else:
            calls[here] = answer[here] >= other
    return of_f1(truth, calls, by)


def _log_losses(labels: Labels) -> Floats:
    y, p = labels
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    return -np.where(y == 1, np.log(clipped), np.log(1 - clipped))


def _of_known(values: Callable[[Labels], Floats]) -> Callable[[Labels, Clusters, Sequence[str], int], Influence]:
    def one(labels: Labels, by: Clusters, _: Sequence[str], __: int) -> Influence:
        return of_mean(np.where(np.isnan(labels[0]), np.nan, values(labels)), by)

    return one


def _unspread(metric: Callable[..., Value]) -> Callable[[Labels, Clusters, Sequence[str], int], Value]:
    return lambda labels, *_: metric(*labels)


def _chance(_: Floats) -> Value:
    return Value(floors.CHANCE_AUC)


MEASURES: tuple[Measure, ...] = (
    Measure("auc", lambda y, by, *_: of_auc(y[0], y[1], by), False, AUC, MACRO_RANKING, floor=_chance),
    Measure(
        "average_precision",
        lambda y, by, *_: of_average_precision(y[0], y[1], by),
        False,
        SHARE,
        MACRO_RANKING,
        floor=floors.prevalence,
    ),
    Measure("auprc_trapezoid", _unspread(c.auprc_trapezoid), False, None, None),
    Measure(f"f1@{CUT}", lambda y, by, *_: _f1_at(y, by, CUT), True, floor=floors.f1_all_positive),
    Measure("f1@best", lambda y, by, *_: _f1_at(y, by, c.best_f1(*y).threshold), False, floor=floors.f1_all_positive),
    Measure("f1@crossfit", _f1_crossfit, False, floor=floors.f1_all_positive),
    Measure(
        f"accuracy@{CUT}",
        _of_known(lambda y: ((y[1] >= CUT) == (y[0] == 1)).astype(np.float64)),
        True,
        floor=floors.accuracy_all_negative,
    ),
    Measure("brier", _of_known(lambda y: (y[1] - y[0]) ** 2), True, floor=floors.brier_base_rate),
    Measure("log_loss", _of_known(_log_losses), True, SHARE, None, None, floor=floors.log_loss_base_rate),
    Measure("ece", _unspread(calibration.ece), True, None, None),
)


def _of_one(part: Influence | Value, measure: Measure, how: How) -> Estimate:
    if isinstance(part, Value) or measure.c is None:
        reason = part.reason
        return Estimate(part.value, n=part.n, n_undefined=part.n_undefined, reason=reason, level=how.level)
    return estimate(part, measure.c, how.level, measure.bounds)


def _over_classes(parts: Sequence[Influence | Value], measure: Measure, how: How) -> Estimate:
    known = [part for part in parts if isinstance(part, Influence)]
    if measure.macro is not None and len(known) == len(parts):
        return estimate_macro(known, measure.macro, how.level)
    mean = mean_defined([part.value for part in parts], reason="no class is defined")
    return Estimate(mean.value, n=mean.n, n_undefined=mean.n_undefined, reason=mean.reason, level=how.level)


def _hamming(given: LabelAnswers, how: How, who: Mapping[str, Any]) -> Cell:
    """Share of all annotated (case, finding) pairs that are called rightly."""
    known = ~np.isnan(given.called)
    right = known & ((given.probabilities >= CUT) == (given.called == 1))
    part = of_ratio(right.sum(axis=1), known.sum(axis=1), given.by, reason="no annotated case")
    estimated = estimate(part, SHARE, how.level)
    pairs = Estimate(
        estimated.value,
        estimated.low,
        estimated.high,
        n=int(known.sum()),
        evidence=estimated.evidence,
        reason=estimated.reason,
    )
    counts = int(given.failed.sum()), int(given.unlikely.sum())
    blind = floors.accuracy_all_negative(given.called)
    return _cell(pairs, counts, blind, "macro", "", f"hamming@{CUT}", who)


def _cell(
    estimated: Estimate,
    counts: tuple[int, int],
    floor: Value | None,
    scope: str,
    group: str,
    metric: str,
    who: Mapping[str, Any],
) -> Cell:
    failed, undefined = counts
    return Cell(
        **who,
        scope=scope,
        group=group,
        metric=metric,
        value=estimated.value,
        low=estimated.low,
        high=estimated.high,
        n=estimated.n,
        undefined=undefined,
        failed=failed,
        floor=floor.value if floor and estimated.value is not None else None,
        reason=estimated.reason if estimated.value is None else None,
        counts={"patients": min(estimated.evidence, default=0)},
    )
