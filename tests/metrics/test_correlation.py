"""The line over models against scipy; and what the published tables give."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from medground.errors import MetricError
from medground.metrics.correlation import fit_line, rank_correlation

POINTS = st.lists(
    st.tuples(*[st.one_of(st.just(np.nan), st.integers(-50, 50).map(lambda k: k / 10))] * 2), min_size=1, max_size=12
)


@given(POINTS)
def test_equals_scipy(points):
    x, y = np.array(points).T
    used = ~np.isnan(x + y)
    found = fit_line(x, y)
    assert (found.n, found.n_undefined) == (used.sum(), (~used).sum())
    if used.sum() < 3:
        assert found.reason == "fewer than 3 points"
        assert found.r2 is found.slope is found.intercept is None
        return
    if len(set(x[used])) == 1 or len(set(y[used])) == 1:
        assert found.reason == "no variance"
        assert np.isnan(found.residuals).all()
        return
    expected = stats.linregress(x[used], y[used])
    assert found.r2 == pytest.approx(expected.rvalue**2, abs=1e-9)
    assert found.slope == pytest.approx(expected.slope, abs=1e-9)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-9)
    line = expected.intercept + expected.slope * x
    np.testing.assert_allclose(found.residuals, np.where(used, y - line, np.nan), atol=1e-9)
    explained = 1 - np.nansum(found.residuals**2) / ((y[used] - y[used].mean()) ** 2).sum()
    assert found.r2 == pytest.approx(explained, abs=1e-9)


@given(POINTS, st.randoms(use_true_random=False))
def test_the_order_of_models_changes_nothing(points, random):
    shuffled = random.sample(points, len(points))
    one, other = fit_line(*np.array(points).T), fit_line(*np.array(shuffled).T)
    assert (one.n, one.reason) == (other.n, other.reason)
    assert (one.r2 or 0) == pytest.approx(other.r2 or 0, abs=1e-12)


def test_a_straight_line_explains_all():
    found = fit_line([0.5, 0.6, 0.7, None], [0.1, 0.2, 0.3, 0.4])
    assert found.r2 == pytest.approx(1.0)
    assert (found.slope, found.intercept) == pytest.approx((1.0, -0.4))
    assert np.isnan(found.residuals[3])


def test_pairs_are_needed():
    with pytest.raises(MetricError, match="pairs"):
        fit_line([1.0, 2.0], [1.0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=12))
def test_rank_correlation_equals_scipy(pairs):
    from scipy.stats import spearmanr

    x, y = (np.array(column, float) for column in zip(*pairs, strict=True))
    found = rank_correlation(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(x, y).statistic)


def test_rank_correlation_needs_three_points():
    assert rank_correlation([1, 2, None], [1, 2, 3]) is None
