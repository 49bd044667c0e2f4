"""Calibration against plain loops, scikit-learn and golden values."""

import json
import math

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, strategies as st

from medground.errors import MetricError
from medground.metrics.calibration import brier, brier_parts, ece, log_loss, mce, reliability

BINNINGS = ("right_closed", "left_closed", "equal_mass")
PROBABILITIES = st.one_of(st.integers(0, 20).map(lambda k: k / 20), st.floats(0, 1))
PAIRS = st.lists(st.tuples(st.booleans(), PROBABILITIES), min_size=1, max_size=40)


@pytest.fixture(scope="module")
def cases(golden):
    folder = golden / "metrics/calibration"
    arrays = np.load(folder / "inputs.npz")
    return arrays["y"], arrays["p"], json.loads((folder / "expected.json").read_text())


def columns(pairs):
    return np.array(pairs, float).T


def test_golden_scores(cases):
    labels, p, expected = cases
    assert brier(labels, p).value == pytest.approx(expected["brier"], abs=1e-9)
    assert log_loss(labels, p).value == pytest.approx(expected["log_loss"], abs=1e-9)
    parts = brier_parts(labels, p)
    for name, wanted in expected["brier_parts"].items():
        assert getattr(parts, name) == pytest.approx(wanted, abs=1e-9)
    sure = expected["log_loss_with_0_and_1"]
    assert log_loss(sure["y"], sure["p"]).value == pytest.approx(sure["clip_1e-15"], abs=1e-9)
    wrong = sure["confident_and_wrong"]
    assert log_loss(wrong["y"], wrong["p"]).value == pytest.approx(wrong["clip_1e-15"], abs=1e-9)


@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize("binning", ["right_closed", "left_closed"])
def test_golden_bins(cases, binning, bins):
    labels, p, expected = cases
    wanted = expected["ece"][f"{binning}_{bins}_bins"]
    assert reliability(labels, p, bins, binning).count.tolist() == wanted["bin_counts"]
    assert ece(labels, p, bins, binning).value == pytest.approx(wanted["ece"], abs=1e-9)
    assert mce(labels, p, bins, binning).value == pytest.approx(wanted["mce"], abs=1e-9)


def test_golden_equal_mass(cases):
    labels, p, expected = cases
    assert ece(labels, p, 10, "equal_mass").value == pytest.approx(expected["ece_equal_mass_10"]["ece"], abs=1e-9)


def loop(labels, p, bins, binning):
    """Bins one by one."""
    if binning == "equal_mass":
        order = np.argsort(p, kind="stable")
        return [(labels[part], p[part]) for part in np.array_split(order, bins)]
    members = []
    for k in range(bins):
        low, high = k / bins, (k + 1) / bins
        if binning == "right_closed":
            inside = (p > low) & (p <= high) | (p == 0) & (k == 0)
        else:
            inside = (p >= low) & (p < high) | (p == 1) & (k == bins - 1)
        members.append((labels[inside], p[inside]))
    return members


@given(PAIRS, st.integers(1, 12), st.sampled_from(BINNINGS))
def test_bins_equal_a_plain_loop(pairs, bins, binning):
    labels, p = columns(pairs)
    members = loop(labels, p, bins, binning)
    found = reliability(labels, p, bins, binning)
    assert found.count.tolist() == [len(q) for _, q in members]
    gaps = [(len(q), abs(q.mean() - y.mean())) for y, q in members if len(q)]
    assert found.ece.value == pytest.approx(sum(n * gap for n, gap in gaps) / len(pairs))
    assert found.mce.value == pytest.approx(max(gap for _, gap in gaps))
    assert np.isnan(found.probability[found.count == 0]).all()
    assert (found.edges is None) == (binning == "equal_mass")


@given(PAIRS)
def test_brier_parts_add_up_and_equal_scikit_learn(pairs):
    labels, p = columns(pairs)
    parts = brier_parts(labels, p)
    value = brier(labels, p).value
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(value, abs=1e-12)
    assert value == pytest.approx(sk.brier_score_loss(labels, p, labels=[0, 1]), abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.floats(1e-6, 1 - 1e-6)), min_size=1, max_size=30))
def test_log_loss_equals_scikit_learn(pairs):
    labels, p = columns(pairs)
    assert log_loss(labels, p).value == pytest.approx(sk.log_loss(labels, p, labels=[0, 1]))


def test_perfect_and_uninformed_probabilities():
    assert brier([0, 1], [0.0, 1.0]).value == 0.0
    assert ece([0, 1], [0.0, 1.0]).value == 0.0
    assert log_loss([0, 1], [0.5, 0.5]).value == pytest.approx(math.log(2))


@given(PAIRS)
def test_cases_without_annotation_are_left_out(pairs):
    labels, p = columns(pairs)
    more, more_p = np.append(labels, np.nan), np.append(p, 0.9)
    for metric in (brier, log_loss, ece, mce, brier_parts):
        assert metric(more, more_p) == metric(labels, p)


def test_nothing_annotated_is_undefined():
    for metric in (brier, log_loss, ece, mce):
        assert metric([None], [0.5]).reason == "no annotated case"
    assert brier_parts([None], [0.5]) is None
    assert ece([], [], 10, "equal_mass").value is None


@pytest.mark.parametrize("p", [1.5, -0.1, np.inf])
@pytest.mark.parametrize("metric", [brier, log_loss, ece, brier_parts])
def test_scores_are_not_probabilities(metric, p):
    with pytest.raises(MetricError, match="outside"):
        metric([1], [p])


@pytest.mark.parametrize("how", [(0, "right_closed"), (10, "middle")])
def test_impossible_bins_are_refused(how):
    with pytest.raises(MetricError, match="bin"):
        reliability([1], [0.5], *how)
