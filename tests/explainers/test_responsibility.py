"""Responsibility against games whose smallest causes are counted out, and against the executor as the model."""

from itertools import combinations

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.explainers._causes import SpentError, responsibilities, smallest
from medground.explainers._words import phrases, replaced
from medground.explainers.base import Asker, Example, Pool
from medground.explainers.responsibility import Responsibility, margins_of, picture_of, tiles_of
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.worlds.gridvqa.build import picture_of as drawn
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.generate import fillable, scenes
from medground.worlds.gridvqa.masks import shortcut_text_mask, text_mask, vision_mask
from medground.worlds.gridvqa.world import buckets

BUCKETS = fillable([b for b in buckets((0.3, 0.7)) if b.type in ("A", "M", "SO", "CMP")], 5)[0]


def game(needed):
    """Margins of an answer that holds while fewer than all things of some group are gone."""

    def margins(removed):
        gone = np.array([[removed[k, list(group)].mean() for group in needed] for k in range(len(removed))])
        return 0.5 - np.where((gone == 1).any(1), 1.0, 0.4 * gone.max(1))

    return margins


def counted_out(margins, n: int) -> np.ndarray:
    """Oracle: 1 / the size of the smallest minimal set that holds a thing, over all sets."""
    sets = [np.isin(np.arange(n), chosen) for m in range(1, n + 1) for chosen in combinations(range(n), m)]
    changes = {tuple(s) for s in sets if margins(s[None])[0] < 0}
    shares = np.zeros(n)
    for s in map(np.array, changes):
        without = [s & (np.arange(n) != i) for i in np.flatnonzero(s)]
        if not any(tuple(w) in changes for w in without):
            shares[s] = np.maximum(shares[s], 1 / s.sum())
    return shares


@pytest.mark.parametrize("needed", [[(0,)], [(0, 1)], [(2,), (0, 4)], [(0, 1, 2), (3, 4)], [(0,), (1,), (2, 3, 4)]])
def test_disjoint_causes_get_the_shares_of_the_oracle(needed):
    np.testing.assert_allclose(responsibilities(game(needed), 6)[0], counted_out(game(needed), 6))


@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_any_so_many_of_a_kind_share_the_responsibility(least):
    # Things 0 to 4 fit; the answer changes when so many of them are gone.
    def margins(removed):
        return 0.5 + (least - 1) - removed[:, :5].sum(1).astype(float)

    shares, gone = responsibilities(margins, 8)
    np.testing.assert_allclose(shares, counted_out(margins, 8))
    assert gone.sum() == least


def test_what_gets_worse_before_it_changes_is_found_among_things_alike():
    # More of things 0 and 1 than of 2 to 4 is "yes"; all gone is "no" again, and margins lead the wrong way.
    def margins(removed):
        more = (~removed[:, :2]).sum(1) > (~removed[:, 2:5]).sum(1)
        return np.where(more, -1.0, 1.0 - 0.1 * removed[:, :2].sum(1))

    assert not responsibilities(margins, 6)[0][2:5].any()
    np.testing.assert_allclose(responsibilities(margins, 6, alike=[0, 0, 1, 1, 1, 2])[0], counted_out(margins, 6))


def test_a_set_that_is_found_is_minimal():
    rng = np.random.default_rng(0)
    for _ in range(40):
        weights, limit = rng.integers(0, 4, 9), 5

        def margins(removed, weights=weights, limit=limit):
            return limit - 0.5 - removed @ weights

        found = smallest(margins, np.ones(9, bool))
        assert (found is None) == (weights.sum() < limit)
        if found is not None:
            assert margins(found[None])[0] < 0
            rest = found & ~np.eye(9, dtype=bool)[found]
            assert (margins(rest) >= 0).all()


def test_nothing_is_responsible_where_nothing_changes_the_answer():
    shares, gone = responsibilities(lambda removed: np.ones(len(removed)), 5)
    assert not shares.any()
    assert gone is None


def test_a_spent_budget_keeps_what_is_known():
    asked = []

    def margins(removed):
        asked.append(len(removed))
        if len(asked) > 1:
            raise SpentError
        return 0.5 - removed[:, 3]

    assert responsibilities(margins, 5)[0].tolist() == [0, 0, 0, 1, 0]


def test_phrases_are_replaced_with_their_plural_and_mark():
    words = ["How", "many", "circles", "are", "left", "of", "red", "square?"]
    swapped = [replaced(words, p, p.others[-1]) for p in phrases(words)]
    assert swapped == [
        "How many pentagons are left of red square?",
        "How many circles are below red square?",
        "How many circles are left of yellow square?",
        "How many circles are left of red pentagon?",
    ]
    assert [p.others for p in phrases(["Left", "lung"], [["left", "right"]])] == [("right",)]
    assert replaced(["Left", "lung"], phrases(["Left"], [["left", "right"]])[0], "right") == "Right lung"


def test_tiles_are_put_together_again():
    image = np.random.default_rng(0).random((6, 9, 3)).astype(np.float32)
    tiles = tiles_of(image, 3)
    np.testing.assert_array_equal(tiles[4], image[2:4, 3:6])
    np.testing.assert_array_equal(picture_of(tiles[None], 3)[0], image)


def test_a_margin_is_the_lead_over_the_next_answer():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(20, 5))
    expected = [row[2] - max(v for i, v in enumerate(row) if i != 2) for row in logits]
    np.testing.assert_allclose(margins_of(logits, 2), expected)


def pool_of(model, variant: str, bucket, n: int = 3, seed: int = 31):
    made = scenes(variant, [bucket], n, seed=seed)
    pictures = [(drawn(s, 16) / np.float32(255)).astype(np.float32) for s in made]
    examples = [Example(s.scene_id, p, s.question.text) for s, p in zip(made, pictures, strict=True)]
    return made, Pool(examples, Asker(model), 5)


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda b: b.key)
def test_the_executor_is_explained_by_causes_alone(bucket):
    made, pool = pool_of(RuleExecutor(), "pure", bucket)
    explainer, shares = Responsibility(), []
    for i, scene in enumerate(made):
        found = explainer.explain(pool, i)
        truth = check(scene.things, scene.question, 5)
        assert found.calls <= explainer.budget
        assert not found.text[~text_mask(scene.question.text)].any()
        # Where the pool shows nothing that would turn a "no", nothing can be told.
        assert found.text.any() or not (found.image.any() or found.extras["added"].any())
        if truth.causal and found.image.any():
            shares.append(found.image[vision_mask(truth.causal, 5)].sum() / found.image.sum())
    assert not shares or np.mean(shares) >= 0.85


@pytest.mark.parametrize("bucket", [b for b in BUCKETS if b.relational], ids=lambda b: b.key)
def test_the_counter_is_explained_by_what_fits_and_never_by_anchors(bucket):
    made, pool = pool_of(WordCounter(), "pure", bucket)
    for i, scene in enumerate(made):
        found = Responsibility().explain(pool, i)
        truth = check(scene.things, scene.question, 5)
        assert not found.image[~vision_mask(truth.shortcut, 5)].any()
        assert not found.text[~shortcut_text_mask(scene.question.text)].any()
        assert found.image.any()


def test_no_is_explained_by_the_anchors_of_what_would_have_to_be_added():
    bucket = next(b for b in BUCKETS if b.key == "D2-M-exists-d07")
    made, pool = pool_of(RuleExecutor(), "pure", bucket, n=12)
    told = 0
    for i, scene in enumerate(made):
        truth = check(scene.things, scene.question, 5)
        found = Responsibility().explain(pool, i)
        assert ("added" in found.extras) == (scene.answer == "no")
        if scene.answer == "no" and found.extras["added"].any():
            told += 1
            # Something that fits can only be added inside every half-plane.
            assert not found.extras["added"][~vision_mask(truth.clauses[0].region, 5)].any()
            anchors = vision_mask(frozenset(truth.clauses[0].anchors), 5)
            np.testing.assert_allclose(found.image[anchors], 1)
            assert not found.image[~anchors].any()
    assert told >= 3


def test_it_says_the_same_again():
    bucket = next(b for b in BUCKETS if b.key == "D2-SO-exists-d07")
    one, two = (Responsibility().explain(pool_of(RuleExecutor(), "pure", bucket)[1], 1) for _ in range(2))
    np.testing.assert_array_equal(one.image, two.image)
    np.testing.assert_array_equal(one.text, two.text)


@pytest.mark.parametrize("options", [{"budget": 63}, {"sets": 0}, {"donors": 0}, {"empty": "pink"}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        Responsibility(**options)
