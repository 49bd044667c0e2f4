"""Recognition against scikit-learn, pair counting, and golden values."""

import json
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import assume, given, strategies as st

from medground.errors import MetricError
from medground.metrics.classification import (
    Confusion,
    accuracy,
    annotated,
    auc,
    auprc_trapezoid,
    average_precision,
    best_f1,
    best_mcc,
    confusion,
    f1,
    hamming_accuracy,
    macro,
    macro_f1,
    micro_f1,
    operating_points,
    per_class,
    subset_accuracy,
)
from medground.metrics.values import Value

SCORES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
PAIRS = st.lists(st.tuples(st.booleans(), SCORES), min_size=1, max_size=25)
MISSING = st.lists(st.tuples(st.sampled_from([0.0, 1.0, np.nan]), SCORES), max_size=25)
TABLES = st.lists(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, np.nan]), SCORES), min_size=3, max_size=3), min_size=1, max_size=9
)


def columns(pairs):
    labels, scores = np.array(pairs, float).reshape(-1, 2).T
    return labels, scores


@pytest.fixture(scope="module")
def cases(golden):
    folder = golden / "metrics/classification"
    arrays = np.load(folder / "inputs.npz")
    return arrays["y"], arrays["p"], json.loads((folder / "expected.json").read_text())


def test_golden_classes(cases):
    labels, scores, expected = cases
    for c, wanted in enumerate(expected["per_class"].values()):
        y, p = labels[:, c], scores[:, c]
        counts = confusion(y, p)
        assert {k: getattr(counts, k) for k in ("tp", "fp", "fn", "tn")}.items() <= wanted["at_0.5"].items()
        assert accuracy(y, p).value == wanted["at_0.5"]["accuracy"]
        found = {
            "auc": auc(y, p),
            "average_precision": average_precision(y, p),
            "auprc_trapezoid": auprc_trapezoid(y, p),
            "f1_at_0_5": f1(y, p),
            "best_f1": best_f1(y, p).value,
        }
        for name, value in found.items():
            assert value.value == pytest.approx(wanted[name], abs=1e-9), name
            assert value.reason == wanted.get("undefined_because")
        if wanted["positives"]:
            assert list(best_f1(y, p).thresholds) == wanted["best_f1_thresholds"]
            assert list(best_mcc(y, p).thresholds) == wanted["best_mcc_thresholds"]
            assert best_mcc(y, p).value.value == pytest.approx(wanted["best_mcc"], abs=1e-9)
        points = operating_points(y, p)
        assert (points.positives, points.thresholds.size) == (wanted["positives"], wanted["distinct_scores"])


def test_golden_averages(cases):
    labels, scores, expected = cases
    wanted = expected["macro"]
    found = {
        "auc": macro(per_class(auc, labels, scores)),
        "average_precision": macro(per_class(average_precision, labels, scores)),
        "auprc_trapezoid": macro(per_class(auprc_trapezoid, labels, scores)),
        "f1_at_0_5": macro_f1(labels, scores),
        "best_f1": macro(per_class(lambda y, p: best_f1(y, p).value, labels, scores)),
    }
    for name, value in found.items():
        assert value.value == pytest.approx(wanted[name], abs=1e-9), name
        assert f"{value.n} of {value.n + value.n_undefined}" == wanted["classes_defined"]
    assert hamming_accuracy(labels, scores).value == pytest.approx(wanted["hamming_accuracy"], abs=1e-9)
    assert subset_accuracy(labels, scores).value == pytest.approx(wanted["subset_accuracy"], abs=1e-9)
    assert micro_f1(labels, scores).value == pytest.approx(wanted["micro_f1_at_0_5"], abs=1e-9)


def test_a_class_without_positives_leaves_the_mean(golden):
    folder = golden / "metrics/starred/T06_one_class_auc"
    arrays = np.load(folder / "input.npz")
    wanted = json.loads((folder / "expected.json").read_text())["expected"]
    for name, metric in (("auc", auc), ("average_precision", average_precision)):
        values = per_class(metric, arrays["y"], arrays["score"])
        assert [v.value for v in values] == pytest.approx(wanted[name])
        mean = macro(values)
        assert mean.value == pytest.approx(wanted[f"macro_{name}"])
        assert f"{mean.n} of {len(values)}" == wanted["defined"]


@given(PAIRS)
def test_auc_counts_pairs(pairs):
    labels, scores = columns(pairs)
    positive, negative = scores[labels == 1], scores[labels == 0]
    value = auc(labels, scores)
    if positive.size and negative.size:
        right = sum((p > q) + (p == q) / 2 for p in positive for q in negative)
        assert value.value == right / (positive.size * negative.size)
        assert auc(1 - labels, scores).value == pytest.approx(1 - value.value)
        assert auc(labels, np.exp(scores)) == value
    else:
        assert value.reason == ("no negatives" if positive.size else "no positives")


@given(PAIRS)
def test_equals_scikit_learn(pairs):
    labels, scores = columns(pairs)
    assume(labels.any())
    for threshold in (0.25, 0.5, 0.6):
        called = scores >= threshold
        assert f1(labels, scores, threshold).value == pytest.approx(sk.f1_score(labels, called, zero_division=0))
        assert accuracy(labels, scores, threshold).value == pytest.approx(sk.accuracy_score(labels, called))
        found = confusion(labels, scores, threshold)
        table = sk.confusion_matrix(labels, called, labels=[0, 1]).ravel()
        assert [found.tn, found.fp, found.fn, found.tp] == table.tolist()
        if found.mcc.value is not None:
            assert found.mcc.value == pytest.approx(sk.matthews_corrcoef(labels, called))
    if not labels.all():
        assert auc(labels, scores).value == pytest.approx(sk.roc_auc_score(labels, scores))
        assert average_precision(labels, scores).value == pytest.approx(sk.average_precision_score(labels, scores))
        precision, recall, _ = sk.precision_recall_curve(labels, scores)
        assert auprc_trapezoid(labels, scores).value == pytest.approx(sk.auc(recall, precision))


@given(PAIRS)
def test_best_thresholds_are_all_that_reach_the_best(pairs):
    labels, scores = columns(pairs)
    for search, measure in ((best_f1, lambda c: c.f1), (best_mcc, lambda c: c.mcc)):
        tried = {t: measure(confusion(labels, scores, t)).value for t in sorted(set(scores))}
        defined = {t: v for t, v in tried.items() if v is not None}
        found = search(labels, scores)
        if defined:
            top = max(defined.values())
            assert found.value.value == pytest.approx(top)
            assert list(found.thresholds) == [t for t, v in defined.items() if v >= top - 1e-12]
            assert found.threshold == found.thresholds[0]
        else:
            assert found.value.reason
            assert found.threshold is None


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    for metric in (auc, average_precision, auprc_trapezoid, f1, best_f1, best_mcc):
        assert metric(*columns(shuffled)) == metric(*columns(pairs))


@given(MISSING)
def test_cases_without_annotation_are_left_out(pairs):
    labels, scores = columns(pairs)
    known = ~np.isnan(labels)
    hidden = np.where(known, scores, np.nan)  # a missing label needs no score
    for metric in (auc, average_precision, auprc_trapezoid, f1, accuracy, best_f1, best_mcc):
        assert metric(labels, hidden) == metric(labels[known], scores[known])
    if not known.any():
        for metric in (auc, average_precision, auprc_trapezoid, f1, accuracy):
            assert metric(labels, hidden).reason == "no annotated case"
        assert best_f1(labels, hidden).value.reason == best_mcc(labels, hidden).value.reason == "no annotated case"


@given(TABLES)
def test_averages_over_tables_equal_plain_loops(rows):
    labels, scores = np.moveaxis(np.array(rows), -1, 0)
    called = scores >= 0.5
    right = [bool(c) == bool(y) for c, y in zip(called.ravel(), labels.ravel(), strict=True) if not np.isnan(y)]
    hamming = hamming_accuracy(labels, scores)
    assert hamming.n == len(right)
    assert hamming.number == pytest.approx(np.mean(right) if right else np.nan, nan_ok=True)
    whole = [
        all(bool(c) == bool(y) for c, y in zip(case, truth, strict=True) if not np.isnan(y))
        for case, truth in zip(called, labels, strict=True)
        if not np.isnan(truth).all()
    ]
    subset = subset_accuracy(labels, scores)
    assert (subset.n, subset.n_undefined) == (len(whole), len(rows) - len(whole))
    assert subset.number == pytest.approx(np.mean(whole) if whole else np.nan, nan_ok=True)
    assert micro_f1(labels, scores) == f1(labels.ravel(), scores.ravel())
    per = [f1(labels[:, c], scores[:, c]).value for c in range(3)]
    defined = [v for v in per if v is not None]
    assert macro_f1(labels, scores).number == pytest.approx(np.mean(defined) if defined else np.nan, nan_ok=True)


@given(st.lists(st.lists(st.tuples(st.booleans(), SCORES), min_size=4, max_size=4), min_size=2, max_size=9))
def test_hamming_and_subset_accuracy_equal_scikit_learn(rows):
    labels, scores = np.moveaxis(np.array(rows, float), -1, 0)
    called = scores >= 0.5
    assert hamming_accuracy(labels, scores).value == pytest.approx(1 - sk.hamming_loss(labels, called))
    assert subset_accuracy(labels, scores).value == pytest.approx(sk.accuracy_score(labels, called))
    if labels.any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = sk.f1_score(labels, called, average="micro", zero_division=0)
        assert micro_f1(labels, scores).value == pytest.approx(expected)


def test_infinite_scores_rank():
    assert auc([0, 1], [-np.inf, np.inf]).value == 1.0
    assert auc([0, 1], [-np.inf, -np.inf]).value == 0.5


def test_undefined_correlations_say_why():
    assert Confusion(1, 1, 0, 0).mcc.reason == "every case is called alike"
    assert Confusion(0, 0, 1, 0).mcc.reason == "no negatives"
    assert Confusion(0, 0, 0, 0).mcc.reason == "no annotated case"
    assert Confusion(0, 1, 0, 1).f1.reason == "no positives"
    assert best_mcc([0, 1], [0.5, 0.5]).value.reason == "every case is called alike"


def test_counts_beyond_32_bits_do_not_overflow():
    million = 10**6
    assert Confusion(million, million, million, million).mcc.value == 0.0
    assert Confusion(million, 0, 0, million).mcc.value == 1.0


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([0, 1], [0.5], "fit together"),
        ([0, 2], [0.5, 0.5], "neither 0 nor 1"),
        ([0, -1], [0.5, 0.5], "neither 0 nor 1"),
        ([0, 1], [0.5, np.nan], "no score"),
        ([0, 1], [None, 0.2], "no score"),
    ],
)
def test_bad_input_is_refused(labels, scores, message):
    with pytest.raises(MetricError, match=message):
        auc(labels, scores)


def test_a_bad_entry_is_named():
    with pytest.raises(MetricError) as caught:
        hamming_accuracy([[0, 1], [1, 3]], [[0.1, 0.2], [0.3, 0.4]])
    assert "[1, 1]" in str(caught.value)


def test_tables_need_two_axes():
    with pytest.raises(MetricError, match="two axes"):
        per_class(auc, [0, 1], [0.1, 0.2])


def test_annotated_flattens():
    truth, score = annotated([[1, None], [0, 1]], [[0.1, None], [0.3, 0.4]])
    assert truth.tolist() == [True, False, True]
    assert score.tolist() == [0.1, 0.3, 0.4]


def test_macro_of_nothing_is_undefined():
    assert macro([Value(None, "no positives")]).reason == "no class is defined"
