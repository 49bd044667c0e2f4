"""The published interval against a loop that draws rows as the publication describes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.errors import MetricError
from medground.metrics.image_bootstrap import ImageInterval, image_bootstrap

VALUES = st.lists(
    st.lists(st.one_of(st.just(np.nan), st.floats(0, 1)), min_size=2, max_size=2), min_size=1, max_size=12
)


@given(VALUES, st.sampled_from([1, 39, 40, 80, 200]))
def test_equals_drawing_images_one_replicate_after_another(values, replicates):
    table = np.array(values)
    np_random = np.random.RandomState(0)
    means = [[], []]
    for _ in range(replicates):
        drawn = table[np_random.choice(len(table), size=len(table), replace=True)]
        for k in range(2):
            defined = [v for v in drawn[:, k] if not np.isnan(v)]
            if defined:
                means[k].append(sum(defined) / len(defined))
    for found, expected in zip(image_bootstrap(values, replicates), means, strict=True):
        assert found.skipped == replicates - len(expected)
        if not expected:
            assert found == ImageInterval(None, None, None, replicates)
            continue
        ordered, n = sorted(expected), len(expected)
        assert found.centre == pytest.approx(sum(expected) / n)
        assert found.low == pytest.approx(ordered[max(int(0.025 * n) - 1, 0)])
        assert found.high == pytest.approx(ordered[max(int(0.975 * n) - 1, 0)])


def test_a_thousand_replicates_take_the_24th_and_the_974th():
    values = np.linspace(0, 1, 30)[:, None]
    [found] = image_bootstrap(values)
    generator = np.random.RandomState(0)
    means = sorted(values[generator.randint(0, 30, 30)].mean() for _ in range(1000))
    assert (found.low, found.high) == pytest.approx((means[24], means[974]))


@pytest.mark.parametrize("values", [[0.1, 0.2], np.empty((0, 3))])
def test_a_table_of_images_is_needed(values):
    with pytest.raises(MetricError, match="Images"):
        image_bootstrap(values)
