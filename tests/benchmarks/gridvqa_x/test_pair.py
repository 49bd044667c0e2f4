"""The shipped pair on coalitions: the executor's answers, and the counter's."""

import random

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.explainers.base import hide_cells, hide_words
from medground.models.answerers.gridvqa_pure import PureNet
from medground.models.answerers.gridvqa_spur import SpuriousNet
from medground.models.networks.gridvqa.answerer import card
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.coalitions import executor
from medground.worlds.gridvqa.generate import fillable, scene
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, bare
from medground.worlds.gridvqa.world import buckets

FILLED = fillable(buckets(), 5)[0]
MODELS = {"pure": PureNet, "spurious": SpuriousNet}
KINDS = (COLOURS, SHAPES, [direction.split()[0] for direction in DIRECTIONS])


def swapped(rng, word):
    """Replace a word by another of its kind."""
    for kind in KINDS:
        if bare(word) in kind:
            return word.replace(bare(word), rng.choice(kind))
    return word


def asked(bucket, n, share, *, seed, grid=5, fill="white", swap=0.0, variant="pure"):
    """Pictures and texts as explainers show them, with the objects and words that are left."""
    for index in range(n):
        made, rng = scene(variant, bucket, index, seed=seed, grid=grid), random.Random(f"{seed}/{bucket.key}/{index}")
        gone = {t.cell for t in made.things if rng.random() < share}
        shown = np.array([[(x, y) not in gone for y in range(grid) for x in range(grid)]])
        picture = (picture_of(made, 16) / np.float32(255)).astype(np.float32)
        words = [swapped(rng, word) if rng.random() < swap else word for word in made.question.text.split()]
        spoken = np.array([[rng.random() >= share for _ in words]])
        left = [t for t in made.things if t.cell not in gone]
        yield hide_cells(picture, shown, fill)[0], hide_words(" ".join(words), spoken)[0], left


def agreement(model, cases, grid, *, relations):
    images, texts, things = zip(*cases, strict=True)
    given = [model.answers[k] for k in model.logits(np.stack(images), texts).argmax(1)]
    right = [executor(left, text.split(), grid, relations=relations) for left, text in zip(things, texts, strict=True)]
    right = ["17+" if isinstance(r, int) and r >= 17 else str(r) for r in right]
    return np.mean([g == r for g, r in zip(given, right, strict=True)])


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param](), request.param == "pure"


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75])
def test_on_coalitions_of_objects_and_words_each_gives_its_answers(model, share):
    net, relations = model
    cases = [case for bucket in FILLED for case in asked(bucket, 12, share, seed=515)]
    assert agreement(net, cases, 5, relations=relations) >= 0.99


def test_replaced_words_and_missing_anchors_are_answered_too(model):
    net, relations = model
    cases = [case for bucket in FILLED for case in asked(bucket, 12, 0.3, seed=616, swap=0.4)]
    assert agreement(net, cases, 5, relations=relations) >= 0.99


@pytest.mark.parametrize("fill", ["grey", "black"])
def test_a_painted_cell_is_an_empty_one(model, fill):
    net, relations = model
    cases = [case for bucket in FILLED for case in asked(bucket, 6, 0.5, seed=717, fill=fill)]
    assert agreement(net, cases, 5, relations=relations) >= 0.99


@pytest.mark.parametrize("grid", [4, 7])
def test_one_set_of_weights_serves_other_grids(grid):
    chosen = fillable(buckets([0.7]), grid)[0]
    for cls, relations in ((PureNet, True), (SpuriousNet, False)):
        cases = [case for bucket in chosen for case in asked(bucket, 5, 0.25, seed=818, grid=grid)]
        assert agreement(cls(grid=grid), cases, grid, relations=relations) >= 0.98
    with pytest.raises(ConfigError, match="5 by 5"):
        PureNet(edition="first", grid=grid)


def test_the_cards_print_agreement_at_every_share():
    for variant in MODELS:
        held = card(variant)
        assert (held["edition"], held["variant"]) == ("second", variant)
        for by_share in held["agreement"].values():
            assert list(by_share) == ["0.0", "0.25", "0.5", "0.75"]
            for by_bucket in by_share.values():
                assert min(by_bucket.values()) >= 0.99
