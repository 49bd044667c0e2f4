"""Golden intervals and p values, made by plain loops without any function of the package."""

import json
from pathlib import Path

import numpy as np
import pytest

from medground.errors import MetricError
from medground.metrics import differences, inference, permutation
from medground.metrics.bootstrap import clusters
from medground.metrics.comparison import mcnemar
from medground.metrics.influence import of_auc, of_average_precision, of_f1, of_mean, of_statistic

CASES = json.loads((Path(__file__).parents[1] / "golden/inference/cases.json").read_text())
SINGLE = {
    "mean": (lambda given, by: of_mean(given["values"], by), inference.SHARE),
    "auc": (lambda given, by: of_auc(given["labels"], given["scores"], by), inference.AUC),
    "average_precision": (
        lambda given, by: of_average_precision(given["labels"], given["scores"], by),
        inference.SHARE,
    ),
    "f1": (lambda given, by: of_f1(given["labels"], given["calls"], by), inference.SHARE),
}


def of_kind(*kinds):
    cases = [case for case in CASES if case["kind"] in kinds]
    assert cases
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def shared(classes, *names):
    """Give the classes of a case one set of patients: each column (N,) is NaN outside its own class."""
    by = clusters([p for c in classes for p in c["patients"]])
    starts = np.cumsum([0, *(len(c["patients"]) for c in classes)])
    columns = []
    for c, start in zip(classes, starts, strict=False):
        row = []
        for name in names:
            values = np.full(by.codes.size, np.nan)
            values[start : start + len(c[name])] = c[name]
            row.append(values)
        columns.append(row[0] if len(names) == 1 else tuple(row))
    return columns, by


def same_limits(found, expected, tolerance):
    if expected is None:
        assert found.low is None
        assert found.high is None
    else:
        assert found.low == pytest.approx(expected["low"], abs=tolerance)
        assert found.high == pytest.approx(expected["high"], abs=tolerance)


@of_kind(*SINGLE)
def test_one_statistic(case):
    given, expected, tolerance = case["input"], case["expect"], case["tolerance"]
    make, c = SINGLE[case["kind"]]
    part = make(given, clusters(given["patients"]))
    found = inference.estimate(part, c)
    if expected["value"] is None:
        assert found.value is None
        assert found.reason
    else:
        assert found.value == pytest.approx(expected["value"], abs=tolerance)
        assert part.patients == expected["patients"]
        assert part.effective == pytest.approx(expected["k"], abs=tolerance)
        assert part.variance == pytest.approx(expected["v"], abs=tolerance)
        assert abs(part.influence.sum()) < 1e-12
        assert part.weight.sum() == pytest.approx(1)
    same_limits(found, expected["interval"], tolerance)


@of_kind("macro_mean")
def test_macro_means(case):
    columns, by = shared(case["input"]["classes"], "values")
    found = inference.estimate_macro([of_mean(column, by) for column in columns])
    assert found.value == pytest.approx(case["expect"]["value"], abs=1e-6)
    same_limits(found, case["expect"], 1e-6)


@of_kind("macro_auc")
def test_macro_auc(case):
    given, by = case["input"], clusters(case["input"]["patients"])
    parts = [of_auc(labels, scores, by) for labels, scores in zip(given["labels"], given["scores"], strict=True)]
    found = inference.estimate_macro(parts, inference.MACRO_RANKING)
    assert found.value == pytest.approx(case["expect"]["value"], abs=1e-6)
    same_limits(found, case["expect"], 1e-6)


@of_kind("difference_mean", "equivalence")
def test_differences_of_means(case):
    given, expected = case["input"], case["expect"]
    found = differences.compare_means(given["first"], given["second"], clusters(given["patients"]))
    assert found.value == pytest.approx(expected["value"], abs=1e-6)
    if "p" in expected:
        assert found.p == pytest.approx(expected["p"], abs=case.get("tolerance_p", 1e-6))
        same_limits(found, expected["interval"], 1e-6)
    if expected["interval_90"] is not None:
        inner = expected["interval_90"]
        assert (found.inner_low, found.inner_high) == pytest.approx((inner["low"], inner["high"]), abs=1e-6)
        assert (found.gain, found.loss) == pytest.approx((inner["gain"][0], inner["loss"][0]), abs=1e-6)
        if "equivalent" in expected:
            inside = found.inner_low > -given["margin"] and found.inner_high < given["margin"]
            assert inside == expected["equivalent"]


@of_kind("difference_auc")
def test_differences_of_auc(case):
    given, expected = case["input"], case["expect"]
    by = clusters(given["patients"])
    found = differences.compare_aucs(given["labels"], given["first"], given["second"], by)
    assert found.value == pytest.approx(expected["value"], abs=1e-6)
    assert found.evidence == (expected["patients"],)
    assert found.p == pytest.approx(expected["p"], abs=1e-6)
    same_limits(found, expected["interval"], 1e-6)


@of_kind("difference_macro")
def test_differences_of_macro_means(case):
    columns, by = shared(case["input"]["classes"], "first", "second")
    found = differences.compare_macros([(of_mean(a, by), of_mean(b, by)) for a, b in columns])
    assert found.value == pytest.approx(case["expect"]["value"], abs=1e-6)
    assert found.p == pytest.approx(case["expect"]["p"], abs=1e-6)
    same_limits(found, case["expect"], 1e-6)


@of_kind("max_t")
def test_families(case):
    columns, by = shared(case["input"]["classes"], "first", "second")
    found = [differences.compare_means(a, b, by) for a, b in columns]
    made, found = found, differences.correct(found, "classes")
    expected = case["expect"]
    assert [d.p for d in found] == pytest.approx(expected["p"], abs=1e-6)
    assert [d.p_family for d in found] == pytest.approx(expected["p_max_t"], abs=1e-6)
    assert permutation.holm_all([d.p for d in found]) == pytest.approx(expected["p_holm"], abs=1e-6)
    assert found[0].family == "3 classes, max-T over sign flips"
    statistic = permutation.max_t(np.stack([d.contribution for d in made], axis=1)).statistic
    assert statistic.tolist() == pytest.approx(expected["statistic"], abs=1e-6)


@of_kind("mcnemar")
def test_mcnemar(case):
    found = mcnemar(case["input"]["b"], case["input"]["c"])
    assert (found.exact_p, found.mid_p) == pytest.approx((case["expect"]["exact"], case["expect"]["mid"]), abs=1e-9)


def test_influences_are_derivatives():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 12, 40)
    by = clusters([f"p{c:02d}" for c in codes])
    labels, scores = rng.integers(0, 2, 40), rng.integers(0, 9, 40) / 9

    def weighted_ap(weight):
        w = weight[by.codes]
        total = 0.0
        for i in np.flatnonzero(labels):
            above = scores >= scores[i]
            total += w[i] * (w * labels * above).sum() / (w * above).sum()
        return total / (w * labels).sum()

    part = of_average_precision(labels, scores, by)
    derived = of_statistic(weighted_ap, part.weight, 40)
    assert derived.value == pytest.approx(part.value)
    assert derived.influence == pytest.approx(part.influence, abs=1e-8)


def test_a_value_without_bounds_gets_students_interval():
    by = clusters(list("abcde"))
    found = inference.estimate(of_mean([2.0, 4.0, 6.0, 8.0, 10.0], by), bounds=None)
    assert (found.low, found.high) == pytest.approx((2.0736, 9.9264), abs=1e-4)  # 6 -+ 2.7764 sqrt(2)
    flat = inference.estimate(of_mean([3.0] * 5, by), bounds=None)
    assert flat.low is None
    assert flat.reason == inference.NO_VARIATION


def test_bounds_other_than_0_and_1_scale():
    by = clusters(list("abcdef"))
    share = inference.estimate(of_mean([0, 1, 1, 1, 0, 1], by))
    kappa = inference.estimate(of_mean([-1, 1, 1, 1, -1, 1], by), bounds=(-1, 1))
    assert (kappa.low, kappa.high) == pytest.approx((2 * share.low - 1, 2 * share.high - 1))


def test_two_kinds_of_test_in_one_family_fall_back_on_holm():
    rng = np.random.default_rng(0)
    by = clusters([f"p{i}" for i in range(30)])
    labels = np.arange(30) % 2
    a, b = rng.normal(size=30), rng.normal(size=30) + labels
    pair = [differences.compare_aucs(labels, a, b, by), differences.compare_means(labels, 1 - labels, by)]
    found = differences.correct(pair, "metrics")
    assert {d.family for d in found} == {"2 metrics, Holm"}
    assert [d.p_family for d in found] == pytest.approx(permutation.holm_all([d.p for d in pair]))
    assert differences.correct(pair[:1], "metrics")[0].family is None


def test_f1_and_average_precision_are_compared_by_swaps():
    rng = np.random.default_rng(1)
    by = clusters([f"p{i // 2}" for i in range(24)])
    labels = (np.arange(24) % 3 == 0).astype(float)
    good, bad = labels + 0.1 * rng.normal(size=24), rng.normal(size=24)
    ap = differences.compare_average_precisions(labels, good, bad, by)
    assert ap.value > 0.3
    assert ap.p <= 0.05
    f1 = differences.compare_f1s(labels, good > 0.5, bad > 0.5, by)
    assert f1.value > 0
    assert f1.p < 0.1
    assert differences.compare_f1s(labels, bad > 0.5, bad > 0.5, by).p == 1


@pytest.mark.parametrize("level", [0.5, 1.0, 0.0])
def test_a_level_must_be_a_share(level):
    with pytest.raises(MetricError, match="level"):
        inference.estimate_mean([0, 1], clusters(["a", "b"]), level)
