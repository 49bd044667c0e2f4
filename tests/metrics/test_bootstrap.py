"""The bootstrap against copying rows, golden intervals, and what must not change it."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import MetricError
from medground.metrics import classification as c
from medground.metrics.bootstrap import (
    Clusters,
    bootstrap_f1,
    bootstrap_mean,
    bootstrap_ranking,
    bootstrap_ratio,
    bootstrap_sums,
    cluster_weights,
    clusters,
    macro_replicates,
    percentile_interval,
    with_interval,
)
from medground.metrics.values import Value, mean_defined

B = 7
SCORES = st.sampled_from([0.0, 0.2, 0.5, 0.5000001, 0.9])
LABELS = st.sampled_from([0.0, 1.0, np.nan])
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "e"]), LABELS, SCORES, LABELS, SCORES), min_size=2, max_size=20
)


def split(rows):
    patients = [row[0] for row in rows]
    numbers = np.array([row[1:] for row in rows], float)
    return patients, numbers[:, 0::2], numbers[:, 1::2]


def copies(by, replicates=B, seed=0):
    """Rows of every replicate, each as often as its patient was drawn."""
    weights = np.concatenate(list(cluster_weights(by.count, replicates, seed)), axis=1)
    return [np.repeat(np.arange(by.codes.size), column[by.codes]) for column in weights.T]


@given(ROWS)
def test_ranking_equals_copied_rows(rows):
    patients, labels, scores = split(rows)
    by = clusters(patients)
    found = bootstrap_ranking(labels, scores, by, B)
    for r, copied in enumerate(copies(by)):
        for k in range(2):
            y, s = labels[copied, k], scores[copied, k]
            for name in ("auc", "average_precision", "auprc_trapezoid"):
                expected = getattr(c, name)(y, s).number if by.count > 1 else np.nan
                assert getattr(found, name)[r, k] == pytest.approx(expected, nan_ok=True), name


@given(ROWS)
def test_f1_equals_copied_rows(rows):
    patients, labels, p = split(rows)
    by = clusters(patients)
    found = bootstrap_f1(labels, p, by, 0.5, B)
    for r, copied in enumerate(copies(by)):
        expected = [x.number for x in c.per_class(c.f1, labels[copied], p[copied])]
        np.testing.assert_allclose(found[r], expected if by.count > 1 else [np.nan] * 2)


@given(ROWS)
def test_means_equal_copied_rows(rows):
    patients, values, _ = split(rows)
    by = clusters(patients)
    found = bootstrap_mean(values, by, B)
    for k in range(2):
        defined_patients = {p for p, v in zip(patients, values[:, k], strict=True) if not math.isnan(v)}
        for r, copied in enumerate(copies(by)):
            expected = mean_defined(values[copied, k]).number if len(defined_patients) > 1 else np.nan
            assert found[r, k] == pytest.approx(expected, nan_ok=True)
    np.testing.assert_array_equal(bootstrap_mean(values[:, 0], by, B), found[:, 0])


@given(ROWS)
def test_ratios_equal_copied_rows(rows):
    patients, labels, p = split(rows)
    by = clusters(patients)
    known = ~np.isnan(labels)
    right = known & ((p >= 0.5) == (labels == 1))
    found = bootstrap_ratio(right.sum(axis=1), known.sum(axis=1), by, B)
    annotated = {patient for patient, any_known in zip(patients, known.any(axis=1), strict=True) if any_known}
    for r, copied in enumerate(copies(by)):
        expected = c.hamming_accuracy(labels[copied], p[copied]).number if len(annotated) > 1 else np.nan
        assert found[r] == pytest.approx(expected, nan_ok=True)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing_to_the_last_bit(rows, random):
    first, second = rows, random.sample(rows, len(rows))
    results = []
    for given_rows in (first, second):
        patients, labels, scores = split(given_rows)
        by = clusters(patients)
        ranking = bootstrap_ranking(labels, scores, by, B)
        means = bootstrap_mean(np.where(np.isnan(labels), np.nan, labels / 3 + scores), by, B)
        results.append((ranking.auc, ranking.average_precision, ranking.auprc_trapezoid, means))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_items_of_unknown_patients_are_known_by_their_own_id():
    patients, items = ["p", None, None, "q"], ["1", "2", "3", "4"]
    values = np.array([0.1, 0.2, 0.4, 0.8])
    order = [2, 3, 0, 1]
    straight = bootstrap_mean(values, clusters(patients, items), B)
    mixed = bootstrap_mean(values[order], clusters([patients[i] for i in order], [items[i] for i in order]), B)
    np.testing.assert_array_equal(straight, mixed)


def test_clusters_are_numbered_by_id_and_strangers_stand_alone():
    found = clusters(["p2", None, "p1", math.nan, "p2"], ["i", "z", "j", "y", "k"])
    assert found.codes.tolist() == [1, 3, 0, 2, 1]
    assert found.count == 4
    assert clusters([2, 10, 2]).codes.tolist() == [1, 0, 1]  # as text
    assert clusters([None] * 12).codes.tolist() == list(range(12))
    assert clusters([]).count == 0


def test_a_patient_is_needed_for_every_item():
    with pytest.raises(MetricError, match="patient"):
        clusters(["a"], ["1", "2"])


@given(st.integers(1, 30), st.integers(1, 9), st.integers(0, 3))
def test_weights_do_not_depend_on_blocks(count, block, seed):
    whole = next(cluster_weights(count, 10, seed, block=10))
    parts = np.concatenate(list(cluster_weights(count, 10, seed, block=block)), axis=1)
    np.testing.assert_array_equal(parts, whole)
    assert (whole.sum(axis=0) == count).all()


def test_more_replicates_begin_like_fewer():
    few = np.concatenate(list(cluster_weights(9, 70, 3)), axis=1)
    many = np.concatenate(list(cluster_weights(9, 200, 3)), axis=1)
    np.testing.assert_array_equal(many[:, :70], few)
    assert not np.array_equal(few, np.concatenate(list(cluster_weights(9, 70, 4)), axis=1))


def test_neighbouring_seeds_share_no_replicate():
    drawn = [np.concatenate(list(cluster_weights(40, 30, seed)), axis=1).T.tolist() for seed in (0, 1)]
    assert not [replicate for replicate in drawn[0] if replicate in drawn[1]]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, (60, 2)), rng.random((60, 2))
    by = clusters([f"p{i % 17}" for i in range(60)])
    alone = bootstrap_ranking(labels, scores, by, 70, 1).auc
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: bootstrap_ranking(labels, scores, by, 70, 1).auc, range(4)):
            np.testing.assert_array_equal(found, alone)


def test_one_patient_says_nothing_about_the_next():
    by = clusters(["a", "a"])
    assert np.isnan(bootstrap_ranking([[0], [1]], [[0.1], [0.2]], by, B).auc).all()
    assert np.isnan(bootstrap_mean([0.1, 0.2], by, B)).all()
    value = with_interval(Value(0.15, n=2), bootstrap_mean([0.1, 0.2], by, B))
    assert (value.low, value.high, value.skipped) == (None, None, B)
    two = clusters(["a", "b"])
    assert np.isnan(bootstrap_mean([0.1, np.nan], two, B)).all()


def test_all_items_of_a_patient_move_together():
    values = np.array([0.0, 0.0, 1.0, 1.0])
    found = bootstrap_mean(values, clusters(["a", "a", "b", "b"]), 200)
    assert set(found) == {0.0, 0.5, 1.0}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("seed", [0, 1])
def test_golden_intervals(golden, seed):
    folder = golden / "metrics/classification"
    arrays = np.load(folder / "inputs.npz")
    expected = json.loads((folder / "expected.json").read_text())["bootstrap_auc_95"]
    by = clusters(arrays["patient"].tolist())
    assert by.count == expected["patients"]
    drawn = bootstrap_ranking(arrays["y"], arrays["p"], by, 2000, seed).auc
    columns = {f"class_{k}": drawn[:, k] for k in range(5)} | {"macro": macro_replicates(drawn)}
    for name, replicates in columns.items():
        interval = percentile_interval(replicates)
        for limit, tolerance in zip(("low", "high"), expected[name]["tolerance_for_2000_replicates"], strict=True):
            assert abs(getattr(interval, limit) - expected[name][limit]) <= tolerance, name
    share = percentile_interval(drawn[:, 4]).skipped / 2000
    assert share == pytest.approx(expected["class_4"]["share_of_replicates_undefined"], abs=0.002)
    assert percentile_interval(drawn[:, 5]).used == 0


@pytest.mark.usefixtures("compiled")
@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_intervals_cover_as_often_as_they_say(seed):
    rng = np.random.default_rng(seed)
    covered = 0
    for trial in range(60):
        patient = rng.normal(size=40)
        values = (patient[:, None] + rng.normal(size=(40, 3))).ravel()
        drawn = bootstrap_mean(values, clusters(np.repeat(np.arange(40), 3).tolist()), 200, trial)
        interval = percentile_interval(drawn)
        covered += interval.low <= 0 <= interval.high
    assert covered >= 48  # of 60; drawing single values would cover about 45, and here 0.95 * 60 = 57


@given(st.lists(st.one_of(st.just(np.nan), st.floats(-1, 1)), max_size=30), st.floats(0.05, 0.99))
def test_percentiles_equal_numpy(replicates, level):
    found = percentile_interval(replicates, level)
    defined = [x for x in replicates if not math.isnan(x)]
    assert (found.used, found.skipped) == (len(defined), len(replicates) - len(defined))
    if defined:
        assert found.low == pytest.approx(np.percentile(defined, 50 * (1 - level)))
        assert found.high == pytest.approx(np.percentile(defined, 50 * (1 + level)))
    else:
        assert found.low is found.high is None


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(MetricError, match="level"):
        percentile_interval([0.1], level)


def test_with_interval_keeps_the_value_and_counts_what_it_skipped():
    value = with_interval(Value(0.5, n=3), [0.4, np.nan, 0.6], level=0.5)
    assert (value.value, value.low, value.high, value.n, value.skipped) == (0.5, 0.45, 0.55, 3, 1)
    undefined = Value(None, "no positives")
    assert with_interval(undefined, [0.1]) is undefined


def test_macro_is_over_the_classes_of_each_replicate():
    found = macro_replicates(np.array([[0.2, 0.4], [0.2, np.nan], [np.nan, np.nan]]))
    assert found[:2] == pytest.approx([0.3, 0.2])
    assert np.isnan(found[2])


def test_clusters_of_other_items_are_refused():
    with pytest.raises(MetricError, match="Clusters"):
        bootstrap_mean([0.1, 0.2], clusters(["a"]), B)
    with pytest.raises(MetricError, match="Clusters"):
        bootstrap_ranking([[0], [1]], [[0.1], [0.2]], clusters(["a"]), B)


def test_no_items_have_no_interval():
    nobody = clusters([])
    assert np.isnan(bootstrap_mean(np.empty((0, 3)), nobody, B)).all()
    assert np.isnan(bootstrap_mean([], nobody, B)).shape == (B,)
    assert np.isnan(bootstrap_ranking(np.empty((0, 2)), np.empty((0, 2)), nobody, B).auc).all()


def test_clusters_without_items_are_allowed():
    by = Clusters(np.array([0, 2]), 3)
    assert bootstrap_sums(np.ones((2, 1)), by, 50).max() <= 3


@pytest.mark.parametrize("values", [[1.0, 2.0], [[np.nan], [1.0]]])
def test_sums_need_finite_numbers_in_columns(values):
    with pytest.raises(MetricError, match="finite"):
        bootstrap_sums(values, clusters(["a", "b"]), B)


def test_a_ratio_needs_two_arrays_of_one_shape():
    with pytest.raises(MetricError, match="denominators"):
        bootstrap_ratio([1.0], [1.0, 2.0], clusters(["a"]), B)
