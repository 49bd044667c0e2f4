"""One test a property, over every statistic that gets an interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.metrics import inference
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.comparison import clopper_pearson
from medground.metrics.inference import Estimate
from medground.metrics.influence import Influence, of_auc, of_average_precision, of_f1, of_mean, of_ratio

KINDS = {
    "mean": (lambda y, s, by: of_mean(s, by), inference.SHARE),
    "rate": (lambda y, s, by: of_mean(np.where(np.isnan(s), np.nan, (s > 0.5).astype(float)), by), inference.SHARE),
    "ratio": (lambda y, s, by: of_ratio(np.where(y == 1, (np.nan_to_num(s) > 0.5), 0), y == 1, by), inference.SHARE),
    "f1": (lambda y, s, by: of_f1(y, s > 0.5, by), inference.SHARE),
    "auc": (of_auc, inference.AUC),
    "average precision": (of_average_precision, inference.SHARE),
}
RANKS = ("auc", "average precision")
WORLDS = st.integers(0, 10_000)
every = pytest.mark.parametrize("kind", list(KINDS))


def world(seed: int, n: int = 18) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels, scores with ties, and patients of one to four items."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, n))
    labels, scores = rng.integers(0, 2, n).astype(float), rng.integers(0, 6, n) / 5
    return labels, scores, [f"p{k}" for k in rng.integers(0, max(1, n // 2 + 1), n)]


def part(kind: str, y: np.ndarray, s: np.ndarray, patients: list[str]) -> Influence:
    return KINDS[kind][0](y, s, clusters(patients))


def measured(kind: str, y: np.ndarray, s: np.ndarray, patients: list[str]) -> Estimate:
    return inference.estimate(part(kind, y, s, patients), KINDS[kind][1])


def same(one: Estimate, other: Estimate) -> None:
    for name in ("value", "low", "high", "inner_low", "inner_high"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        assert a is None or a == pytest.approx(b, abs=1e-9), name
    assert (one.evidence, one.reason) == (other.evidence, other.reason)


@every
@given(WORLDS)
def test_influences_add_to_nothing_and_weights_to_one(kind, seed):
    found = part(kind, *world(seed))
    if found.value is not None:
        assert abs(found.influence.sum()) < 1e-9
        assert found.weight.sum() == pytest.approx(1)
        assert found.contribution.sum() == pytest.approx(found.value)


@every
@given(WORLDS)
def test_the_order_of_items_and_the_names_of_patients_do_not_matter(kind, seed):
    y, s, patients = world(seed)
    order = np.random.default_rng(seed).permutation(y.size)
    renamed = [f"another {patients[i][::-1]}" for i in order]
    same(measured(kind, y, s, patients), measured(kind, y[order], s[order], renamed))


@every
@given(WORLDS)
def test_what_is_not_annotated_changes_nothing(kind, seed):
    y, s, patients = world(seed)
    more = np.append(y, np.nan), np.append(s, np.nan), [*patients, "somebody else"]
    same(measured(kind, y, s, patients), measured(kind, *more))


@every
@given(WORLDS)
def test_an_interval_holds_its_value_and_never_collapses(kind, seed):
    found = measured(kind, *world(seed))
    if found.value is None:
        assert found.reason
        assert found.low is found.high is None
    elif found.evidence[0] < 2:
        assert found.low is None
        assert found.reason
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.high > found.low
        assert found.low <= found.inner_low <= found.inner_high <= found.high


@every
@given(WORLDS)
def test_a_second_copy_of_every_patient_makes_intervals_narrower(kind, seed):
    y, s, patients = world(seed)
    one = measured(kind, y, s, patients)
    two = measured(kind, np.tile(y, 2), np.tile(s, 2), patients + [f"copy of {p}" for p in patients])
    if one.low is not None:
        assert two.value == pytest.approx(one.value)
        assert two.high - two.low < one.high - one.low + 1e-12


@every
@given(WORLDS)
def test_a_second_item_alike_within_every_patient_adds_no_evidence(kind, seed):
    y, s, patients = world(seed)
    same(measured(kind, y, s, patients), measured(kind, np.tile(y, 2), np.tile(s, 2), patients * 2))


@pytest.mark.parametrize("kind", RANKS)
@given(WORLDS)
def test_a_ranking_knows_no_scale(kind, seed):
    y, s, patients = world(seed)
    same(measured(kind, y, s, patients), measured(kind, y, np.exp(3 * s) - 7, patients))


@given(WORLDS)
def test_an_auc_turns_over_with_its_scores(seed):
    y, s, patients = world(seed)
    one, other = measured("auc", y, s, patients), measured("auc", y, -s, patients)
    if one.low is not None:
        assert (other.value, other.low, other.high) == pytest.approx((1 - one.value, 1 - one.high, 1 - one.low))


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_one_item_a_patient_gives_the_exact_interval(counts):
    k, n = counts
    found = inference.estimate_mean([1.0] * k + [0.0] * (n - k), Clusters(np.arange(n), n))
    assert (found.low, found.high) == pytest.approx(clopper_pearson(k, n), abs=1e-9)


@every
@given(WORLDS)
def test_a_macro_mean_of_one_class_has_the_value_of_the_class(kind, seed):
    found = part(kind, *world(seed))
    macro = inference.estimate_macro([found])
    assert macro.value == pytest.approx(found.value) if found.value is not None else macro.value is None


@every
@given(WORLDS)
def test_an_undefined_class_is_counted_and_left_out_of_a_macro_mean(kind, seed):
    y, s, patients = world(seed)
    found, nothing = part(kind, y, s, patients), part(kind, np.full(y.size, np.nan), np.full(y.size, np.nan), patients)
    if found.value is None:
        return
    alone, both = inference.estimate_macro([found]), inference.estimate_macro([found, nothing])
    assert (both.n, both.n_undefined) == (1, 1)
    same(alone, both)
