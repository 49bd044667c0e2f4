"""What an auditor asks of recognition: rates at one operating point, where its threshold is from, the curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from medground.benchmarks.xbench.recognition import Floats, LabelAnswers, Labels, Measure
from medground.metrics.bootstrap import Clusters
from medground.metrics.influence import Influence
from medground.metrics.operating import Calls, calls_at, crossfit_calls, rates, roc_points

RATES = ("sensitivity", "specificity", "ppv", "npv")


def operating_measures(stated: float | None) -> tuple[Measure, ...]:
    """Return the four rates as measures of recognition.

    Args:
        stated: probability from which a finding counts as called, as the maker states it; None: each half of the
            patients is called at the threshold by Youden's rule of the other half.
    """

    def measure(name: str) -> Callable[[Labels, Clusters, Any, int], Influence]:
        return lambda labels, by, patients, seed: rates(_calls(*labels, patients, seed, stated), by)[name]

    return tuple(Measure(name, measure(name), likely=stated is not None) for name in RATES)


def _calls(truth: Floats, answer: Floats, patients: Any, seed: int, stated: float | None) -> Calls:
    if stated is not None:
        return calls_at(truth, np.where(np.isnan(truth), 0.0, answer), stated)
    return crossfit_calls(truth, answer, patients, seed)


def operating_records(given: LabelAnswers, stated: float | None, seed: int, who: Mapping[str, str]) -> Iterator[Any]:
    """Yield one record a finding: thresholds and their source, counts, the ROC curve; findings of one kind have none.

    Args:
        given: of one model on one dataset.
        stated: as in :func:`operating_measures`.
        seed: of the halves.
        who: ``model``, ``dataset``.
    """
    truth, answer = (given.called, given.probabilities) if stated is not None else (given.labels, given.scores)
    for k, finding in enumerate(given.findings):
        curve = roc_points(given.labels[:, k], given.scores[:, k])
        if not curve:
            continue
        calls = _calls(truth[:, k], answer[:, k], given.patients, seed, stated)
        yield {
            **who,
            "finding": finding,
            "thresholds": list(calls.thresholds),
            "source": in_words(stated),
            "counts": calls.counts,
            "roc": [list(point) for point in curve],
        }


def in_words(stated: float | None) -> str:
    """Say where the threshold is from."""
    if stated is not None:
        return f"a probability of {stated:g}, as the run file states it"
    return (
        "cross-fitted: each half of the patients is called at the score where sensitivity and specificity together are "
        "largest in the other half (Youden)"
    )
