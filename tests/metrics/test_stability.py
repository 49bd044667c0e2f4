import numpy as np
import pytest

from medground.errors import MetricError
from medground.metrics.bootstrap import clusters
from medground.metrics.stability import rank_means


def world(gap, patients=60, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.random(patients)
    return np.stack([base + gap, base, base + rng.normal(0, 0.3, patients)], axis=1), clusters(
        [f"p{i}" for i in range(patients)]
    )


def test_a_model_that_always_leads_is_always_first():
    values, by = world(0.5)
    found = rank_means(values, by, replicates=200)
    assert found.rank[0] == 1
    assert found.first[0] == 1.0
    assert (found.low[0], found.high[0]) == (1, 1)
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    np.testing.assert_allclose(found.share.sum(axis=0), 1)


def test_models_alike_share_their_rank():
    values, by = world(0.0)
    found = rank_means(values[:, :2], by, replicates=50)
    assert found.rank.tolist() == [1.5, 1.5]
    np.testing.assert_allclose(found.share, 0.5)


def test_lower_may_be_better_and_classes_count_alike():
    values, by = world(0.5)
    worst = rank_means(values, by, higher_is_better=False, replicates=50)
    assert worst.rank[0] == 3
    # A second class with one item each, in which the first model loses by a lot, weighs as much as the first class.
    both = np.vstack([values, values[:1] - [[5.0, 0.0, 0.0]]])
    twice = clusters([*[f"p{i}" for i in range(60)], "p0"])
    masks = [np.arange(61) < 60, np.arange(61) == 60]
    assert rank_means(both, twice, masks, replicates=0).rank[0] == 3
    assert rank_means(both, twice, replicates=0).rank[0] == 1


def test_every_model_needs_every_item():
    with pytest.raises(MetricError, match="every item"):
        rank_means([[0.1, np.nan]], clusters(["a"]))
