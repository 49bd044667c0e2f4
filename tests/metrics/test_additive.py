"""The additive fallacy check: three questions, each with an answer that its evidence bears."""

import numpy as np
import pytest

from medground.metrics.additive import LEAST, decide_additive


def scores(means, n=100, sd=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return [m + sd * rng.standard_normal(n) for m in means]


RISING, FLAT = (10.0, 12.0, 14.0), (5.0, 5.0, 5.0)


def test_a_score_that_rises_for_one_and_is_flat_and_low_for_the_other_passes():
    found = decide_additive(scores(RISING), scores(FLAT, seed=1))
    assert (found.rises, found.flat, found.low, found.answer) == ("yes", "yes", "yes", "yes")


@pytest.mark.parametrize(
    ("pure", "spurious", "name"),
    [
        ((10.0, 12.0, 11.0), FLAT, "rises"),
        ((14.0, 12.0, 10.0), FLAT, "rises"),
        (RISING, (5.0, 7.0, 9.0), "flat"),
        (RISING, (11.0, 11.0, 11.0), "low"),
    ],
)
def test_what_is_shown_not_to_hold_fails_and_is_named(pure, spurious, name):
    found = decide_additive(scores(pure), scores(spurious, seed=1))
    assert getattr(found, name) == "no"
    assert found.answer == "no"
    assert {"rises": "rises", "flat": "flat", "low": "low"}[name] in found.because


def test_few_or_noisy_scenes_cannot_tell():
    few = decide_additive(scores(RISING, n=LEAST - 1), scores(FLAT, n=LEAST - 1, seed=1))
    assert few.answer == few.flat == "cannot be told"
    assert f"{LEAST - 1} scenes" in few.because
    noisy = decide_additive(scores(RISING, sd=40.0), scores(FLAT, sd=40.0, seed=1))
    assert noisy.answer == "cannot be told"
    assert "cannot be told whether" in noisy.because


def test_a_slope_that_is_not_shown_to_be_none_is_not_flat():
    # Its interval covers 0, and by the old rule it was flat; it also covers the whole slope of the other model.
    rising, wide = scores(RISING), scores(FLAT, sd=10.0, n=40, seed=1)
    assert decide_additive(rising, wide).flat == "cannot be told"


def test_ten_scenes_a_bucket_never_pass_by_chance():
    # Two buckets of ten at every depth, no difference between depths: means rise strictly in one seed of six.
    passed = [
        decide_additive(scores((8.0, 8.0, 8.0), n=20, seed=s), scores(FLAT, n=20, seed=99 + s)).answer
        for s in range(24)
    ]
    assert set(passed) == {"cannot be told"}


def test_the_check_holds_its_level_where_a_step_is_missing():
    # Depth 2 and 3 alike: the check must not pass in more than 5 % of worlds.
    passed = [
        decide_additive(scores((8.0, 12.0, 12.0), n=40, seed=s), scores(FLAT, n=40, seed=999 + s)).answer == "yes"
        for s in range(300)
    ]
    assert np.mean(passed) <= 0.05


def test_scale_and_order_of_scenes_change_nothing():
    pure, spurious = scores(RISING, sd=6.0, n=40), scores(FLAT, sd=6.0, n=40, seed=1)
    first = decide_additive(pure, spurious)
    scaled = decide_additive([1e3 * x for x in pure], [1e3 * x for x in spurious])
    turned = decide_additive([x[::-1] for x in pure], [x[::-1] for x in spurious])
    assert first == scaled == turned


def test_undefined_scores_are_left_out_and_other_depths_refused():
    holes = [np.append(x, np.nan) for x in scores(RISING)]
    assert decide_additive(holes, scores(FLAT, seed=1)).answer == "yes"
    assert "fewer than two depths" in decide_additive(scores(RISING), scores(FLAT[:2])).because


def test_scores_without_variation_claim_nothing():
    constant = [np.full(50, m) for m in RISING]
    assert decide_additive(constant, [np.full(50, 5.0)] * 3).answer == "cannot be told"


def test_low_needs_every_depth_and_flat_both_sides():
    one_high = decide_additive(scores(RISING), scores((5.0, 5.0, 10.0), seed=1))
    assert one_high.low == "cannot be told"
    # The other slope lies at the bound itself, a quarter of 2.
    at_bound = decide_additive(scores(RISING), scores((5.0, 5.5, 6.0), seed=1))
    assert at_bound.flat == "cannot be told"


def test_flat_cannot_be_told_where_the_bound_is_unknown():
    found = decide_additive(scores((10.0, 10.0, 10.0)), scores((5.0, 7.0, 9.0), seed=1))
    assert found.flat == "cannot be told"
