"""Operating points against counting by hand: the threshold, the calls, the rates, the curve."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.metrics.bootstrap import clusters
from medground.metrics.classification import auc
from medground.metrics.folds import patient_folds
from medground.metrics.operating import calls_at, crossfit_calls, rates, roc_points, youden_threshold

CASES = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, float("nan")]), st.sampled_from([0.1, 0.3, 0.5, 0.7])), min_size=4, max_size=30
)


def by_hand(labels, scores):
    """Every distinct score as a threshold; of the best the highest."""
    best = None
    for cut in sorted({s for y, s in zip(labels, scores, strict=True) if y in (0, 1)}, reverse=True):
        positives = [s >= cut for y, s in zip(labels, scores, strict=True) if y == 1]
        negatives = [s < cut for y, s in zip(labels, scores, strict=True) if y == 0]
        if not positives or not negatives:
            return None
        value = sum(positives) * len(negatives) + sum(negatives) * len(positives)
        if best is None or value > best[0]:
            best = (value, cut)
    return None if best is None else best[1]


@given(CASES)
def test_the_threshold_is_the_one_of_counting(cases):
    labels, scores = zip(*cases, strict=True)
    assert youden_threshold(labels, scores) == by_hand(labels, scores)


@given(CASES)
def test_rates_are_what_counting_gives(cases):
    labels, scores = zip(*cases, strict=True)
    calls = calls_at(labels, scores, 0.5)
    n = calls.counts
    assert sum(n.values()) == sum(y in (0, 1) for y in labels)
    told = rates(calls, clusters(list(range(len(labels)))))
    for name, part, whole in (
        ("sensitivity", n["tp"], n["tp"] + n["fn"]),
        ("specificity", n["tn"], n["tn"] + n["fp"]),
        ("ppv", n["tp"], n["tp"] + n["fp"]),
        ("npv", n["tn"], n["tn"] + n["fn"]),
    ):
        assert told[name].value == (pytest.approx(part / whole) if whole else None)


def test_a_half_is_called_at_the_threshold_of_the_other_and_a_patient_stands_in_one():
    rng = np.random.default_rng(3)
    patients = [f"p{i // 2}" for i in range(60)]
    labels = (rng.random(60) < 0.5).astype(float)
    scores = labels + rng.normal(0, 1, 60)
    calls = crossfit_calls(labels, scores, patients, seed=5)
    fold = patient_folds(patients, 2, 5)
    assert len(calls.thresholds) == 2
    for half in (0, 1):
        cut = by_hand(labels[fold != half], scores[fold != half])
        assert calls.thresholds[half] == cut
        assert calls.called[fold == half].tolist() == (scores[fold == half] >= cut).astype(float).tolist()


def test_a_half_without_the_finding_gives_no_threshold_and_leaves_the_other_undefined():
    patients = ["a", "b", "c", "d"]
    fold = patient_folds(patients, 2, 0)
    labels = np.where(fold == 0, [1.0, 0.0, 1.0, 0.0], 0.0)
    if len(set(labels[fold == 0])) < 2:
        labels[np.flatnonzero(fold == 0)] = [1.0, 0.0]
    calls = crossfit_calls(labels, [0.9, 0.1, 0.8, 0.2], patients)
    assert np.isnan(calls.truth[fold == 0]).all()
    assert not np.isnan(calls.truth[fold == 1]).any()
    assert len(calls.thresholds) == 1


@given(CASES)
def test_the_area_below_the_curve_is_the_auc(cases):
    labels, scores = zip(*cases, strict=True)
    points = roc_points(labels, scores)
    area = auc(labels, scores).value
    if area is None:
        assert points == []
        return
    x, y = np.array(points).T
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (1.0, 1.0)
    assert np.trapezoid(y, x) == pytest.approx(area, abs=1e-3)


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    rng = np.random.default_rng(0)
    labels = (rng.random(5000) < 0.3).astype(float)
    points = roc_points(labels, labels + rng.normal(0, 1, 5000))
    assert len(points) <= 60
    assert (points[0], points[-1]) == ((0.0, 0.0), (1.0, 1.0))
    x, y = np.array(points).T
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
