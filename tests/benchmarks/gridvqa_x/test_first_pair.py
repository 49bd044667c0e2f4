"""The first edition's pair on fresh scenes: what it must do, and what it must not."""

import random

import numpy as np
import pytest

from medground.models.answerers.gridvqa_pure import PureNet
from medground.models.answerers.gridvqa_spur import SpuriousNet
from medground.models.networks.gridvqa.answerer import card
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.generate import scenes
from medground.worlds.gridvqa.language import DIRECTIONS, Clause, Question, Relation
from medground.worlds.gridvqa.world import buckets

EACH = 24


def asked(model, variant, bucket, change):
    made = scenes(variant, [bucket], EACH, seed=77_001, edition="first")
    images = np.stack([picture_of(s, 16) for s in made]).astype(np.float32) / 255
    said = model.logits(images, [change(s.question) for s in made]).argmax(1)
    return [model.answers[k] for k in said], [str(s.answer) for s in made]


def share_right(model, variant, bucket):
    said, true = asked(model, variant, bucket, lambda question: question.text)
    return np.mean([a == b for a, b in zip(said, true, strict=True)])


def with_other_directions(question):
    rng = random.Random(question.text)
    clauses = [
        Clause(
            clause.target,
            tuple(
                Relation(rng.choice([d for d in DIRECTIONS if d != r.direction]), r.anchor) for r in clause.relations
            ),
        )
        for clause in question.clauses
    ]
    return Question(question.form, tuple(clauses)).text


@pytest.fixture(scope="module")
def pair():
    return PureNet(edition="first"), SpuriousNet(edition="first")


def test_each_is_right_on_its_own_data(pair):
    pure, spurious = pair
    for bucket in buckets():
        assert share_right(pure, "pure", bucket) >= 0.99, bucket.key
        assert share_right(spurious, "spurious", bucket) >= 0.99, bucket.key


def test_the_shortcut_fails_where_relations_matter(pair):
    _, spurious = pair
    for bucket in buckets():
        if bucket.depth > 1 and bucket.form == "count":
            assert share_right(spurious, "pure", bucket) <= 0.05, bucket.key
        if bucket.type == "A":
            assert share_right(spurious, "pure", bucket) >= 0.95


def test_directions_move_the_reasoning_model_alone(pair):
    pure, spurious = pair
    changed = {"pure": [], "spurious": []}
    for bucket in buckets([0.7]):
        if bucket.relational:
            for name, model in (("pure", pure), ("spurious", spurious)):
                before, _ = asked(model, "pure", bucket, lambda question: question.text)
                after, _ = asked(model, "pure", bucket, with_other_directions)
                changed[name] += [a != b for a, b in zip(before, after, strict=True)]
    assert np.mean(changed["spurious"]) <= 0.02
    assert np.mean(changed["pure"]) > 0.5


def test_the_cards_say_what_the_requirements_ask():
    for variant in ("pure", "spurious"):
        held = card(variant, "first")
        assert held["variant"] == variant
        assert min(held["accuracy"][variant].values()) >= 0.99
    counts = {k: v for k, v in card("spurious", "first")["accuracy"]["pure"].items() if "count" in k and k[1] in "23"}
    assert max(counts.values()) <= 0.05
