import numpy as np
import pytest

from medground.explainers.dime import Dime, _patterns_of_words


def test_an_additive_model_has_no_multimodal_part(make_pool):
    pool = make_pool(lambda image, text: [image @ [1, 2, 3, 4], text @ [4, 3, 2, 1], image[0] + text[0]])
    found = Dime().explain(pool, 0)
    assert found.image == pytest.approx(np.zeros((2, 2)), abs=1e-9)
    assert found.text == pytest.approx(np.zeros(4), abs=1e-9)


def test_the_unimodal_part_of_an_additive_model_is_all_of_it(make_pool):
    pool = make_pool(lambda image, text: [10 + 5 * image[1] + text @ [3, 0, 0, 1], 0, 0])
    found = Dime(perturbations=300, fill="black").explain(pool, 0)
    unimodal = found.extras["unimodal_image"].ravel()
    assert np.abs(unimodal).argmax() == 1
    words = pool.examples[0].words
    weights = dict(zip(words, found.extras["unimodal_text"], strict=True))
    assert weights["alpha"] > 2 * weights["delta"] > 10 * abs(weights["beta"])


def test_a_product_is_found_where_it_lies(make_pool):
    pool = make_pool(lambda image, text: [20 + 9 * image[2] * text[1], 0, 0])
    found = Dime(perturbations=200).explain(pool, 0)
    assert np.abs(found.image).ravel().argmax() == 2
    assert pool.examples[0].words[int(np.abs(found.text).argmax())] == "beta"


def test_the_published_variant_explains_the_whole_output(make_pool):
    def model(image, text):
        return [20 + 3 * image[0] + 3 * image[3] + text[0], 0, 0]

    published = Dime(multi="full", perturbations=200).explain(make_pool(model), 0)
    assert (np.abs(published.image).ravel()[[0, 3]] > 0.3).all()
    paper = Dime(perturbations=200).explain(make_pool(model), 0)
    assert paper.image == pytest.approx(np.zeros((2, 2)), abs=1e-9)


def test_calls_stay_within_the_promise_and_explanations_repeat(make_pool):
    pool = make_pool(lambda image, text: [image @ text, 0, 0], n=12)
    method = Dime(background=5, perturbations=20)
    _ = pool.logits
    first = method.explain(pool, 3)
    assert 0 < first.calls <= method.calls(len(pool.examples[3].words), 4, 12)
    again = method.explain(pool, 3)
    assert np.array_equal(first.image, again.image)
    assert not np.array_equal(first.image, Dime(background=5, perturbations=20, seed=1).explain(pool, 3).image)


def test_equal_words_stand_or_fall_together_when_merged():
    words = ["red", "circle", "red", "square"]
    rng = np.random.default_rng(0)
    merged = _patterns_of_words(40, words, rng, merged=True)
    assert np.array_equal(merged[:, 0], merged[:, 2])
    apart = _patterns_of_words(40, words, rng, merged=False)
    assert not np.array_equal(apart[:, 0], apart[:, 2])
    assert merged[0].all()
    assert not apart[1:].all(1).any()
