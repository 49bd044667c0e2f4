"""Occlusion against models whose answer is a known sum of cells and words."""

import numpy as np
import pytest

from medground.explainers.occlusion import Occlusion, watched


def test_a_unit_is_worth_what_the_answer_loses_without_it(make_pool):
    weights = np.array([3.0, -1.0, 0.5, 0.0])

    def answer(cells, words):
        return [0.0, float(weights @ (1 - cells)) + 2 * words[1] - words[2], -9.0]

    pool = make_pool(answer)
    image = pool.examples[0].image
    found = Occlusion().explain(pool, 0)
    cells = image.reshape(2, 4, 2, 4, 3).mean((1, 3, 4)).ravel()
    # White is a brightness of 1, at which a cell adds nothing; what speaks against the answer counts as nothing.
    assert found.target == int(np.argmax(answer(cells, np.ones(4))))
    sign = 1.0 if found.target == 1 else 0.0
    np.testing.assert_allclose(found.image.ravel(), sign * np.maximum(weights * (1 - cells), 0), atol=1e-6)
    words = np.array([{"beta": 2.0}.get(word, 0.0) for word in pool.examples[0].words])
    np.testing.assert_allclose(found.text, sign * words, atol=1e-9)
    assert sign == 1.0


def test_the_calls_are_those_announced(make_pool):
    pool = make_pool(lambda cells, words: [cells.sum(), words.sum(), 0])
    _ = pool.own
    before = pool.asker.calls
    found = Occlusion().explain(pool, 0)
    assert pool.asker.calls - before == found.calls == Occlusion().calls(4, 4, len(pool)) == 8


@pytest.mark.parametrize("output", ["logit", "log_probability", "probability"])
def test_figures_of_an_answer(output):
    logits = np.random.default_rng(0).normal(size=(5, 4)) * 50
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    expected = {"logit": logits, "probability": shares, "log_probability": np.log(shares)}[output][:, 2]
    np.testing.assert_allclose(watched(logits, 2, output), expected, atol=1e-9)


def test_a_model_that_looks_at_nothing_gives_flat_maps(make_pool):
    found = Occlusion().explain(make_pool(lambda cells, words: [1.0, 0.0, 0.0]), 0)
    assert not found.image.any()
    assert not found.text.any()
