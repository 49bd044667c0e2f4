import numpy as np
import pytest
from sklearn.linear_model import Ridge

from medground.explainers._surrogate import distances, fit, kernel


@pytest.mark.parametrize("modality", ["image", "text"])
@pytest.mark.parametrize("part", ["unimodal", "multimodal"])
def test_golden_surrogates(explainer_golden, modality, part):
    expected, arrays = explainer_golden("split_and_surrogate")
    truth, on = expected[modality], arrays[f"{modality}_onoff"].astype(bool)
    outputs = np.array(truth[part])[:, expected["target_class"]]
    wanted = truth[f"surrogate_{part}"]
    apart = distances(on, truth["distance_scale"])
    weights = kernel(apart, truth["kernel_width"])
    assert apart == pytest.approx(wanted["distances"], abs=1e-8)
    assert weights == pytest.approx(wanted["kernel_weights"], abs=1e-8)
    found = fit(on, outputs, weights)
    assert found.weights == pytest.approx(wanted["weights"], abs=1e-8)
    assert found.intercept == pytest.approx(wanted["intercept"], abs=1e-8)
    assert found.score == pytest.approx(wanted["score"], abs=1e-8)


@pytest.mark.parametrize(("name", "features"), [("all_features", None), ("three_largest", 3), ("three_forward", 3)])
def test_golden_selection_of_features(explainer_golden, name, features):
    expected, arrays = explainer_golden("split_and_surrogate")
    on, wanted = arrays["plain_onoff"].astype(bool), expected["plain"][name]
    found = fit(on, arrays["plain_response"], np.array(wanted["kernel_weights"]), features=features)
    assert found.weights == pytest.approx(wanted["weights"], abs=1e-8)
    assert found.score == pytest.approx(wanted["score"], abs=1e-8)


@pytest.mark.parametrize("features", [None, 2, 7])
def test_ridge_equals_scikit_learn(features):
    rng = np.random.default_rng(2)
    on = rng.random((60, 9)) < 0.6
    outputs, weights = rng.normal(size=60) + 3 * on[:, 4], rng.random(60)
    found = fit(on, outputs, weights, features=features)
    chosen = np.flatnonzero(found.weights)
    assert len(chosen) == (features or 9)
    oracle = Ridge(alpha=1.0).fit(on[:, chosen], outputs, sample_weight=weights)
    assert found.weights[chosen] == pytest.approx(oracle.coef_, abs=1e-9)
    assert found.intercept == pytest.approx(oracle.intercept_, abs=1e-9)
    assert found.score == pytest.approx(oracle.score(on[:, chosen], outputs, sample_weight=weights), abs=1e-9)


def test_an_empty_pattern_is_as_far_as_can_be_and_a_constant_explains_nothing():
    on = np.array([[True, True], [False, False]])
    assert distances(on) == pytest.approx([0, 1])
    found = fit(on, np.ones(2), np.ones(2))
    assert found.weights == pytest.approx([0, 0])
    assert found.score == 0.0
