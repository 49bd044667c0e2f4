"""Swap interaction against a slow count, and against models that are known to reason or to count words."""

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.explainers._words import phrases, replaced
from medground.explainers.base import Asker, Example, Pool
from medground.explainers.swap_interaction import SwapInteraction, interacting
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.generate import scenes
from medground.worlds.gridvqa.world import Bucket


def pool_of(model, variant: str, depth: int, n: int) -> Pool:
    made = scenes(variant, [Bucket(depth, "M", "count", 0.7)], n, seed=5)
    pictures = [(picture_of(s, 16) / np.float32(255)).astype(np.float32) for s in made]
    return Pool([Example(s.scene_id, p, s.question.text) for s, p in zip(made, pictures, strict=True)], Asker(model), 5)


def slowly(pool: Pool, index: int) -> float:
    """Every swap and every other picture, one question at a time."""
    example, total = pool.examples[index], 0.0

    def answer(image, text) -> int:
        return int(pool.asker.model.logits(image[None], [text])[0].argmax())

    for phrase in phrases(example.words):
        hits = []
        for other in phrase.others:
            text = replaced(example.words, phrase, other)
            steps = [answer(e.image, text) - answer(e.image, example.question) for e in pool.examples]
            hits += [steps[index] != step for j, step in enumerate(steps) if j != index]
        total += np.mean(hits)
    return total


@pytest.mark.parametrize("model", [RuleExecutor, WordCounter])
def test_it_is_the_slow_count_where_all_other_pictures_are_taken(model):
    pool = pool_of(model(), "pure", 2, 4)
    np.testing.assert_allclose(SwapInteraction(others=3).score(pool).each, [slowly(pool, i) for i in range(4)])


def test_it_rises_with_depth_for_the_executor_and_stays_at_the_target_for_the_counter():
    rule, count = (
        [SwapInteraction().score(pool_of(m(), v, depth, 8)).overall for depth in (1, 2, 3)]
        for m, v in ((RuleExecutor, "pure"), (WordCounter, "spurious"))
    )
    assert rule[0] + 0.5 < rule[1] < rule[2] - 0.5
    # Colour and shape of the target are all that it reads.
    assert max(count) <= 2


def test_a_change_that_is_the_same_for_every_picture_is_none():
    before = np.array([4, 4, 1])
    assert interacting(before, before[:, None] + [[1, -1, 0]], [0, 0, 1]).tolist() == [0, 0]


def test_the_calls_are_within_those_planned():
    pool = pool_of(RuleExecutor(), "pure", 3, 6)
    _ = pool.logits
    before, explainer = pool.asker.calls, SwapInteraction()
    explainer.score(pool)
    planned = sum(explainer.calls(len(e.words), 25, 6) for e in pool.examples)
    assert 0 < pool.asker.calls - before <= planned


def test_a_pool_of_one_has_no_other_picture():
    assert np.isnan(SwapInteraction().score(pool_of(WordCounter(), "pure", 1, 1)).each).all()


def test_no_other_picture_is_refused():
    with pytest.raises(ConfigError):
        SwapInteraction(others=0)
