import numpy as np
import pytest

from medground.errors import ConfigError, ModelError
from medground.explainers.base import Asker, Example, Pool, gradients, hide_cells, hide_words


def test_the_matrix_is_asked_once_and_holds_every_pair(make_pool):
    pool = make_pool(lambda image, text: [image @ text, image.sum(), text.sum()])
    matrix = pool.logits
    spent = pool.asker.calls
    assert spent == len(pool) * len(set(pool.questions))
    for i in range(len(pool)):
        for j in range(len(pool)):
            alone = pool.asker.model.logits(pool.images[i : i + 1], [pool.questions[j]])[0]
            assert matrix[i, j] == pytest.approx(alone)
    assert pool.own == pytest.approx(matrix[np.arange(len(pool)), np.arange(len(pool))])
    assert pool.logits is matrix
    assert pool.asker.calls == spent


def test_batches_change_nothing_and_are_told(make_pool):
    told = []
    small = make_pool(lambda image, text: [image @ text, 0, 1], batch=4, told=told.append)
    large = make_pool(lambda image, text: [image @ text, 0, 1])
    assert small.logits == pytest.approx(large.logits)
    assert max(small.asker.model.asked) == 4
    assert sum(told) == small.asker.calls


def test_a_model_that_takes_pairs_is_asked_in_one_go(make_pool):
    pool = make_pool(lambda image, text: [image @ text, 0, 1])
    expected, model = pool.logits, pool.asker.model

    class Pairwise:
        name, answers, logits = "pairwise", model.answers, model.logits

        def pair_logits(self, images, questions, pairs):
            return model.logits(images[pairs[:, 0]], [questions[j] for j in pairs[:, 1]])

    assert Pool(pool.examples, Asker(Pairwise()), 2).logits == pytest.approx(expected)


def test_hidden_cells_are_filled_and_others_stay():
    rng = np.random.default_rng(0)
    image = rng.random((6, 6, 3)).astype(np.float32)
    keep = np.array([[True] * 9, [False] + [True] * 8, [True] * 5 + [False] + [True] * 3])
    for fill, value in (("grey", 0.5), ("black", 0.0), ("white", 1.0)):
        whole, corner, middle = hide_cells(image, keep, fill)
        assert np.array_equal(whole, image)
        assert (corner[:2, :2] == value).all()
        assert np.array_equal(corner[2:], image[2:])
        assert (middle[2:4, 4:] == value).all()
        assert np.array_equal(middle[:, :4], image[:, :4])
    with pytest.raises(ConfigError, match="unknown fill"):
        hide_cells(image, keep, "pink")


def test_hidden_words_are_deleted():
    keep = np.array([[True, True, True], [False, True, False], [False, False, False]])
    assert hide_words("How many circles?", keep) == ["How many circles?", "many", ""]


def test_pools_refuse_what_does_not_fit(make_pool):
    pool = make_pool(lambda image, text: [0, 0, 0])
    with pytest.raises(ConfigError, match="one size"):
        Pool(pool.examples, pool.asker, 3)
    other = Example("x", np.zeros((4, 4, 3), np.float32), "alpha")
    with pytest.raises(ConfigError, match="one size"):
        Pool([*pool.examples, other], pool.asker, 2)
    with pytest.raises(ModelError, match="no gradients"):
        gradients(pool.asker.model)


def test_chance_depends_on_example_method_and_seed_only(make_pool):
    pool, longer = make_pool(lambda i, t: [0, 0, 0]), make_pool(lambda i, t: [0, 0, 0], n=9)
    draw = pool.rng(2, 0, "dime").random()
    assert longer.rng(2, 0, "dime").random() == draw
    assert (
        len({draw, pool.rng(3, 0, "dime").random(), pool.rng(2, 1, "dime").random(), pool.rng(2, 0, "x").random()}) == 4
    )


def test_a_batch_size_reaches_a_model_that_takes_pairs():
    from medground.models.answerers.gridvqa_pure import PureNet

    rng, model, sizes = np.random.default_rng(0), PureNet(), []
    net = model._parts.net
    run = net.forward
    net.forward = lambda cells, *rest: sizes.append(len(cells)) or run(cells, *rest)
    images = rng.random((3, 80, 80, 3)).astype(np.float32)
    texts = ["How many red circles are there ?", "Is there a blue square ?"]
    small, large = (Asker(model, batch).all_pairs(images, texts) for batch in (2, 5))
    assert sizes == [2, 2, 2, 5, 1]
    assert small == pytest.approx(large, abs=1e-5)
