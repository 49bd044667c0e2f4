"""Paired tests and intervals of a share against scipy, plain loops and golden values."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from medground.errors import MetricError
from medground.metrics.bootstrap import bootstrap_ranking, clusters, macro_replicates, percentile_interval
from medground.metrics.classification import auc, macro, per_class
from medground.metrics.comparison import (
    bootstrap_p,
    clopper_pearson,
    discordant,
    holm,
    mcnemar,
    paired_aucs,
    paired_difference,
    paired_means,
    wilson,
)
from medground.metrics.values import Value

B = 60
ITEMS = st.lists(
    st.tuples(st.sampled_from("abcd"), *[st.one_of(st.just(np.nan), st.sampled_from([0.0, 0.3, 1.0]))] * 2),
    min_size=1,
    max_size=15,
)


def test_golden_mcnemar(golden):
    expected = json.loads((golden / "metrics/calibration/expected.json").read_text())["mcnemar"]["tables"]
    for table in expected:
        found = mcnemar(table["b"], table["c"])
        for name in {"exact_p", "mid_p", "chi2", "chi2_p", "chi2_continuity", "chi2_continuity_p"} & set(table):
            assert getattr(found, name) == pytest.approx(table[name], abs=1e-9), name


def test_golden_intervals(golden):
    expected = json.loads((golden / "metrics/calibration/expected.json").read_text())["intervals"]
    for case in expected:
        for name, interval in (("wilson_95", wilson), ("clopper_pearson_95", clopper_pearson)):
            found = interval(case["k"], case["n"])
            if case["n"]:
                assert found == pytest.approx(tuple(case[name]), abs=1e-9)
            else:
                assert found is None


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_equals_scipy(b, c):
    found = mcnemar(b, c)
    assert found == mcnemar(c, b)
    if b + c:
        assert found.exact_p == pytest.approx(stats.binomtest(b, b + c).pvalue)
        half = stats.binom.cdf(min(b, c), b + c, 0.5) - stats.binom.pmf(b, b + c, 0.5) / 2
        assert found.mid_p == pytest.approx(2 * half)
        assert found.chi2_p == pytest.approx(stats.chi2.sf((b - c) ** 2 / (b + c), 1))
        assert found.mid_p <= found.exact_p
        assert found.chi2_p <= found.chi2_continuity_p


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_intervals_of_a_share_equal_scipy(share, level):
    k, n = share
    for found, method in ((wilson(k, n, level), "wilson"), (clopper_pearson(k, n, level), "exact")):
        expected = stats.binomtest(k, n).proportion_ci(level, method)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert found[0] <= k / n <= found[1]


@pytest.mark.parametrize("share", [(-1, 5, 0.95), (6, 5, 0.95), (1, 5, 1.0)])
@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_what_is_not_a_share_is_refused(interval, share):
    with pytest.raises(MetricError, match="share"):
        interval(*share)


def test_a_negative_count_is_refused():
    with pytest.raises(MetricError, match="negative"):
        mcnemar(-1, 2)


@given(ITEMS)
def test_discordant_pairs_equal_a_plain_loop(items):
    first, second = (
        [float(v >= 0.3) if v == v else None for v in column] for column in list(zip(*items, strict=True))[1:]
    )
    pairs = [p for p in zip(first, second, strict=True) if None not in p]
    assert discordant(first, second) == (pairs.count((1.0, 0.0)), pairs.count((0.0, 1.0)))


@pytest.mark.parametrize(("first", "second"), [([1, 0], [1]), ([0.5], [1])])
def test_discordant_needs_right_or_wrong(first, second):
    with pytest.raises(MetricError, match="right or wrong"):
        discordant(first, second)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_equals_its_definition(p_values):
    tests = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted = holm(p_values)
    for rank, (_, i) in enumerate(tests):
        steps = [min(1.0, p * (len(tests) - j)) for j, (p, _) in enumerate(tests[: rank + 1])]
        assert adjusted[i] == max(steps)
    assert [a is None for a in adjusted] == [p is None for p in p_values]


def test_holm_of_a_known_family():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
def test_holm_refuses_what_is_no_p_value(p):
    with pytest.raises(MetricError, match="p value"):
        holm([0.5, p])


@given(ITEMS)
def test_paired_means_use_the_items_that_both_have(items):
    patients, first, second = zip(*items, strict=True)
    both = [(a, b) for a, b in zip(first, second, strict=True) if a == a and b == b]
    found = paired_means(first, second, clusters(patients), B)
    assert (found.n, found.n_undefined) == (len(both), len(items) - len(both))
    if not both:
        assert found.reason == "no item where both models have a value"
        return
    assert found.value == pytest.approx(sum(a - b for a, b in both) / len(both), abs=1e-12)
    mirrored = paired_means(second, first, clusters(patients), B)
    assert mirrored.value == pytest.approx(-found.value, abs=1e-12)
    assert mirrored.p == found.p
    if found.low is not None:
        assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


def test_pairing_removes_what_the_items_share():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=100)
    found = paired_means(difficulty + 0.1, difficulty, clusters(list(range(100))), 200)
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1)
    assert found.p == pytest.approx(2 / 201)


def test_equal_models_do_not_differ():
    values = np.random.default_rng(1).random(30)
    found = paired_means(values, values, clusters(list(range(30))), B)
    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


@given(st.lists(st.one_of(st.just(np.nan), st.sampled_from([-0.2, 0.0, 0.1, 0.3])), max_size=40))
def test_p_counts_replicates_beyond_zero(differences):
    defined = [d for d in differences if d == d]
    found = bootstrap_p(differences)
    if not defined:
        assert found is None
        return
    tails = [sum(d <= 0 for d in defined), sum(d >= 0 for d in defined)]
    assert found == pytest.approx(min(1.0, 2 * (min(tails) + 1) / (len(defined) + 1)))


def test_p_agrees_with_the_interval():
    rng = np.random.default_rng(2)
    for shift in np.linspace(-0.4, 0.4, 30):
        drawn = rng.normal(shift, 0.1, 999)
        interval = percentile_interval(drawn)
        outside = interval.low > 0 or interval.high < 0
        p = bootstrap_p(drawn)
        assert abs(p - 0.05) < 0.005 or outside == (p < 0.05)


def test_paired_aucs_and_their_macro():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, (80, 3)).astype(float)
    labels[:, 2] = 0
    strong, weak = labels + rng.normal(0, 0.5, (80, 3)), labels + rng.normal(0, 2.0, (80, 3))
    by = clusters([f"p{i // 2}" for i in range(80)])
    found = paired_aucs(labels, strong, weak, by, B)
    for k in range(2):
        expected = auc(labels[:, k], strong[:, k]).value - auc(labels[:, k], weak[:, k]).value
        assert found[k].value == pytest.approx(expected)
        assert found[k].low < expected < found[k].high
        assert found[k].p < 0.1
        assert found[k].n == 80
    assert (found[2].value, found[2].reason, found[2].p) == (None, "no positives", None)
    drawn = [macro_replicates(bootstrap_ranking(labels, s, by, B).auc) for s in (strong, weak)]
    observed = [macro(per_class(auc, labels, s)) for s in (strong, weak)]
    overall = paired_difference(*observed, *drawn)
    assert overall.value == pytest.approx((found[0].value + found[1].value) / 2)
    assert overall.low <= overall.value <= overall.high


def test_a_difference_to_an_undefined_value_is_undefined():
    found = paired_difference(Value(0.5, n=3), Value(None, "no positives", n=3), [0.5], [np.nan])
    assert (found.value, found.reason, found.n) == (None, "no positives", 3)


def test_models_need_the_same_items():
    with pytest.raises(MetricError, match="same items"):
        paired_means([0.1, 0.2], [0.1], clusters(["a", "b"]))
