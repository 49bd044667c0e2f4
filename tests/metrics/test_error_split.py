import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.errors import MetricError
from medground.metrics.error_split import error_split


def slow(maps, exact, truth):
    """Entry by entry, by the words of the definition."""
    n = len(maps)
    total = noise = off = method = 0.0
    for k in range(len(truth)):
        column, ideal = [m[k] for m in maps], [e[k] for e in exact]
        mean, middle = sum(column) / n, sum(ideal) / n
        total += sum((x - truth[k]) ** 2 for x in column) / n
        noise += sum((x - mean) ** 2 for x in column) / n
        off += (mean - truth[k]) * (mean - middle)
        method += (mean - truth[k]) * (middle - truth[k])
    return total, noise, off, method


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 10**6))
def test_the_parts_follow_their_definition_and_add_up(repeats, entries, seed):
    rng = np.random.default_rng(seed)
    maps, exact, truth = (
        rng.normal(size=(repeats, entries)),
        rng.normal(size=(repeats, entries)),
        rng.normal(size=entries),
    )
    split = error_split(maps, exact, truth)
    assert tuple(split) == pytest.approx(slow(maps.tolist(), exact.tolist(), truth.tolist()))
    assert split.noise + split.off_manifold + split.method == pytest.approx(split.total)
    assert split.noise >= 0


def test_each_part_is_seen_alone():
    truth = np.array([1.0, 0.0])
    still = np.tile(truth, (4, 1))
    shaken = still + np.array([[0.1, -0.1], [-0.1, 0.1], [0.2, -0.2], [-0.2, 0.2]])
    moved = still + 0.3
    assert error_split(still, still, truth) == (0, 0, 0, 0)
    noisy = error_split(shaken, still, truth)
    assert noisy.noise == pytest.approx(noisy.total) == pytest.approx(0.05)
    off = error_split(moved, still, truth)
    assert off.off_manifold == pytest.approx(off.total) == pytest.approx(0.18)
    biased = error_split(moved, moved, truth)
    assert biased.method == pytest.approx(biased.total) == pytest.approx(0.18)


def test_maps_that_do_not_belong_together_are_refused():
    with pytest.raises(MetricError, match="belong together"):
        error_split([[1.0]], [[1.0], [2.0]], [1.0])
    with pytest.raises(MetricError, match="belong together"):
        error_split(np.zeros((0, 2)), np.zeros((0, 2)), [0.0, 0.0])
    with pytest.raises(MetricError, match="finite"):
        error_split([[np.nan]], [[1.0]], [1.0])
