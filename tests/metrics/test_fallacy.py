import json

import numpy as np
import pytest

from medground.errors import MetricError
from medground.metrics.fallacy import additive_fallacy, series


@pytest.fixture(scope="module")
def cases(golden):
    folder = golden / "gridvqa_x" / "additive_fallacy"
    expected = json.loads((folder / "expected.json").read_text())
    with np.load(folder / "series.npz") as held:
        arrays = {name: held[name] for name in held.files}
    return expected, arrays


def test_golden_verdicts(cases):
    expected, arrays = cases
    recipe = expected["bootstrap"]
    for case in expected["cases"]:
        depths = {
            regime: [arrays[f"{case['name']}_{regime}_depth{d}"] for d in (1, 2, 3)] for regime in ("pure", "spur")
        }
        found = additive_fallacy(depths["pure"], depths["spur"], resamples=recipe["resamples"], seed=recipe["seed"])
        for regime, got in (("pure", found.pure), ("spur", found.spurious)):
            want = case[regime]
            assert list(got.n) == want["n"]
            assert got.mean == pytest.approx(want["mean"], abs=1e-9)
            assert got.sd == pytest.approx(want["sd_population"], abs=1e-9)
            assert got.slope == pytest.approx(want["slope"], abs=1e-9)
            assert got.slope_interval == pytest.approx(want["slope_ci"], abs=1e-9)
            assert got.step_intervals[0] == pytest.approx(want["step12_ci"], abs=1e-9)
            assert got.step_intervals[1] == pytest.approx(want["step23_ci"], abs=1e-9)
        verdict = case["verdict"]
        assert found.pure.increasing == verdict["pure_strictly_increasing"]
        assert found.flat == verdict["spur_slope_ci_covers_zero"]
        assert found.low == verdict["spur_below_pure_depth1"]
        assert found.passes_mean_rule == verdict["passes_mean_rule"], case["name"]
        assert found.passes_confident_rule == verdict["passes_confident_rule"], case["name"]


def test_the_published_means_do_not_pass(cases):
    (means,) = cases[0]["means_only"]
    found = additive_fallacy([[m, m] for m in means["pure"]], [[m, m] for m in means["spur"]], resamples=20, seed=0)
    assert not found.pure.increasing
    assert found.low
    assert not found.passes_mean_rule


def test_concordance_counts_pairs():
    rng = np.random.default_rng(3)
    depths = [rng.integers(0, 5, n).astype(float) for n in (6, 8, 5)]
    good = pairs = 0.0
    for i in range(3):
        for j in range(i + 1, 3):
            for a in depths[i]:
                for b in depths[j]:
                    good += 1.0 if b > a else 0.5 if b == a else 0.0
                    pairs += 1
    assert series(depths, resamples=50).concordance == pytest.approx(good / pairs)


def test_a_trend_is_told_from_noise():
    rng = np.random.default_rng(0)
    rising = series([rng.normal(m, 1, 40) for m in (0, 1, 2)], resamples=500)
    flat = series([rng.normal(0, 1, 40) for _ in range(3)], resamples=500)
    assert rising.p_rising < 0.01
    assert rising.concordance > 0.8
    assert flat.p_rising > 0.05


def test_undefined_scores_are_left_out_and_counted():
    found = series([[1.0, np.nan], [2.0], [3.0]], resamples=10)
    assert found.n == (1, 1, 1)
    assert found.n_undefined == (1, 0, 0)
    assert found.mean == (1.0, 2.0, 3.0)
    with pytest.raises(MetricError, match="two depths"):
        series([[np.nan], [1.0]])
    with pytest.raises(MetricError, match="two depths"):
        series([[1.0]])
