import numpy as np
import pytest

from medground.explainers.emap import Emap
from medground.explainers.intershap import InterShap
from medground.explainers.pid import Pid, cluster


def test_emap_gives_an_additive_model_nothing_and_a_product_something(make_pool):
    additive = make_pool(lambda image, text: [image @ [1, 2, 3, 4], text @ [4, 3, 2, 1], image[0] + text[0]])
    product = make_pool(lambda image, text: [image[0] * text[0], image[1] * text[1], 0], n=10)
    assert Emap().score(additive).each == pytest.approx(np.zeros(6), abs=1e-9)
    found = Emap().score(product)
    assert found.overall > 10
    assert found.overall == pytest.approx(found.each.mean())
    assert ((found.each >= 0) & (found.each <= 100)).all()


def test_intershap_is_zero_on_its_own_scale_and_not_on_that_of_logits(make_pool):
    def mixed_probabilities(image, text):
        first = np.exp([image[0], image[1], 0]) / np.exp([image[0], image[1], 0]).sum()
        second = np.exp([text[0], 0, text[1]]) / np.exp([text[0], 0, text[1]]).sum()
        return np.log((first + second) / 2)

    additive = make_pool(mixed_probabilities)
    assert InterShap().score(additive).overall == pytest.approx(0, abs=1e-9)
    assert InterShap().score(additive).each == pytest.approx(np.zeros(6), abs=1e-6)
    logits = make_pool(lambda image, text: [5 * image[0], 5 * text[0], 4 * image[1] + 3 * text[1]])
    assert InterShap().score(logits).overall > 0.02


def test_global_methods_share_one_matrix(make_pool):
    pool = make_pool(lambda image, text: [image @ text, image[0], text[0]])
    for method in (Emap(), InterShap(), Pid(clusters=2)):
        method.score(pool)
        assert method.calls(4, 4, len(pool)) == 0
    assert pool.asker.calls == len(pool) * len(set(pool.questions))


def test_golden_matrix_through_the_pool(explainer_golden, make_pool):
    expected, arrays = explainer_golden("matrix")
    pool = make_pool(lambda image, text: [0, 0, 0], n=12)
    pool.__dict__["logits"] = arrays["L_generic"]
    truth = expected["expected"]["generic"]
    assert Emap().score(pool).overall == pytest.approx(truth["emap"]["class_centred"]["l1"]["percent_mean"])
    plain = Emap(centred=False, norm=2).score(pool)
    assert plain.overall == pytest.approx(truth["emap"]["plain"]["l2"]["percent_mean"])
    agree = (plain.extras["projected_answer"] == arrays["labels"]).mean()
    assert agree == pytest.approx(truth["emap"]["accuracy_of_projection"])
    share = InterShap().score(pool)
    assert share.overall == pytest.approx(truth["interaction_of_modalities_diagonal"]["global_"], abs=1e-6)
    wide = InterShap(all_pairs=True).score(pool)
    assert wide.each == pytest.approx(truth["interaction_of_modalities_all_pairs"]["local"], abs=1e-6)


def boolean_pool(make_pool, rule, n=16):
    """A pool whose images are dark or bright and whose texts are one word or another: two symbols each."""
    pool = make_pool(lambda image, text: [rule(image.mean() > 0.5, text[0] > 0), 0.5, -9], n=n)
    for i, example in enumerate(pool.examples):
        shade = np.zeros((8, 8, 3), np.float32)
        shade[: 4 if i % 2 else 8] = 1.0
        object.__setattr__(example, "image", shade if i % 2 == 0 else shade * 0.4)
        object.__setattr__(example, "question", "alpha" if (i // 2) % 2 else "beta")
    return pool


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        (lambda i, t: i ^ t, {"synergy": np.log(2), "unique_image": 0, "unique_text": 0}),
        (lambda i, t: i, {"synergy": 0, "unique_image": np.log(2), "unique_text": 0}),
        (lambda i, t: i and t, {"synergy": 0.34657, "redundancy": 0.21576}),
    ],
)
def test_pid_tells_gates_apart(make_pool, rule, parts):
    found = Pid(clusters=2).score(boolean_pool(make_pool, rule))
    for name, value in parts.items():
        assert found.extras[name] == pytest.approx(value, abs=1e-4), name
    assert found.overall == found.extras["synergy"]
    assert found.each.mean() == pytest.approx(found.overall, abs=1e-9)


def test_pid_of_matched_pairs_overfits_and_rounds_as_published(make_pool):
    pool = boolean_pool(make_pool, lambda i, t: i ^ t)
    matched = Pid(clusters=2, pairs="matched", rounded=True).score(pool)
    assert matched.overall == round(matched.overall, 2)


def test_clusters_are_found_and_repeat():
    rng = np.random.default_rng(0)
    angles = np.repeat([0.0, 2.0, 4.0], 20) + rng.normal(0, 0.05, 60)
    features = np.stack([np.cos(angles), np.sin(angles), np.zeros(60)], 1)
    labels = cluster(features, 3, seed=0)
    assert all(len(set(labels[k : k + 20])) == 1 for k in (0, 20, 40))
    assert len(set(labels)) == 3
    assert np.array_equal(labels, cluster(features, 3, seed=0))
    assert len(set(cluster(features[:2], 5, seed=0))) == 2
    assert set(cluster(features, 1, seed=0)) == {0}
