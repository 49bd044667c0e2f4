"""True explanations against plain enumeration of every coalition."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import ConfigError
from medground.worlds.gridvqa.coalitions import executor
from medground.worlds.gridvqa.generate import fillable, scene
from medground.worlds.gridvqa.readings import phrases, readings
from medground.worlds.gridvqa.shapley import true_values
from medground.worlds.gridvqa.world import Thing, buckets

SMALL = fillable(buckets([0.3]), 5)[0]


def worth(things, text, groups, relations, explained):
    """The value of every subset of objects and word players, by asking the executor each time."""
    words, n, p = text.split(), len(things), len(things) + len(groups)
    playing = {i for group in groups for i in group}
    value = np.empty(1 << p)
    for subset in range(1 << p):
        left = [thing for i, thing in enumerate(things) if subset >> i & 1]
        spoken = {i for k, group in enumerate(groups) if subset >> (n + k) & 1 for i in group}
        kept = [word for i, word in enumerate(words) if i in spoken or i not in playing]
        value[subset] = executor(left, kept, 5, relations=relations) == explained
    return value, p


def shapley(value, p):
    """The textbook sums over all subsets."""
    size = np.array([subset.bit_count() for subset in range(1 << p)])
    alone = np.array([factorial(s) * factorial(p - s - 1) / factorial(p) if s < p else 0 for s in range(p + 1)])
    paired = np.array([factorial(s) * factorial(max(0, p - s - 2)) / factorial(p - 1) for s in range(p + 1)])
    every = np.arange(1 << p)
    one, two = np.zeros(p), np.zeros((p, p))
    for i in range(p):
        without = every[every >> i & 1 == 0]
        one[i] = (alone[size[without]] * (value[without | 1 << i] - value[without])).sum()
    for i, j in combinations(range(p), 2):
        without = every[(every >> i & 1 == 0) & (every >> j & 1 == 0)]
        gain = value[without | 1 << i | 1 << j] - value[without | 1 << i] - value[without | 1 << j] + value[without]
        two[i, j] = two[j, i] = (paired[size[without]] * gain).sum()
    return one, two


def held(found, things, text, groups, relations):
    one, two = shapley(*worth(things, text, groups, relations, found.answer))
    assert np.r_[found.objects, found.spoken] == pytest.approx(one, abs=1e-10)
    assert found.among == pytest.approx(two, abs=1e-10)
    assert found.across == pytest.approx(two[: len(things), len(things) :], abs=1e-10)
    assert one.sum() == pytest.approx(found.whole - found.nothing, abs=1e-10)


@pytest.mark.parametrize("relations", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "How many circles are left of square?",
        "How many red objects are above blue object?",
        "Is there any circle that is below square?",
        "How many red circles are left of blue square?",
    ],
)
def test_values_over_words_equal_enumeration(text, relations):
    things = [
        Thing(0, 0, "red", "circle"),
        Thing(2, 1, "blue", "square"),
        Thing(4, 0, "red", "circle"),
        Thing(1, 3, "yellow", "circle"),
        Thing(3, 4, "red", "square"),
    ]
    found = true_values(things, text, 5, relations=relations, pairs=True)
    held(found, things, text, [(i,) for i in range(len(text.split()))], relations)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(SMALL), st.integers(0, 10**6), st.sampled_from(["phrases", "objects"]), st.booleans())
def test_values_over_phrases_and_objects_equal_enumeration(bucket, seed, players, relations):
    made = scene("pure", bucket, 0, seed=seed)
    text, things = made.question.text, made.things
    found = true_values(things, text, 5, relations=relations, players=players, pairs=True)
    held(found, things, text, phrases(text) if players == "phrases" else [], relations)


def test_null_players_get_nothing_and_maps_hold_the_values():
    (bucket,) = [b for b in buckets([0.7]) if b.key == "D2-M-count-d07"]
    made = scene("pure", bucket, 2)
    text = made.question.text
    found = true_values(made.things, text, 5, players="objects")
    roles = np.array([thing.role for thing in made.things])
    assert (found.objects[(roles == "distractor") | (roles == "lure")] == 0).all()
    assert found.objects.sum() == pytest.approx(1)
    assert found.image.sum() == pytest.approx(found.objects.sum())
    words = true_values(made.things, text, 5)
    silent = [i for i, word in enumerate(text.split()) if word in ("How", "many", "are", "of", "and")]
    assert words.text(len(text.split()))[silent] == pytest.approx(0, abs=1e-12)
    assert np.abs(words.across).sum() == pytest.approx(words.synergy.sum())
    assert words.objects.sum() + words.spoken.sum() == pytest.approx(words.whole - words.nothing)
    counter = true_values(made.things, text, 5, relations=False, players="objects")
    assert (counter.objects[roles == "anchor"] == 0).all()


def test_too_many_words_are_refused_with_the_way_out():
    (bucket,) = [b for b in buckets([0.7]) if b.key == "D3-CMP-compare-d07"]
    made = scene("pure", bucket, 0)
    with pytest.raises(ConfigError, match=r"18 words can change.*\n.*\n.*\n.*phrases"):
        true_values(made.things, made.question.text, 5)
    found = true_values(made.things, made.question.text, 5, players="phrases")
    assert found.objects.sum() + found.spoken.sum() == pytest.approx(found.whole - found.nothing)
    with pytest.raises(ConfigError, match="not an answer"):
        true_values(made.things, made.question.text, 5, players="objects", answer="perhaps")


def test_phrases_take_descriptions_and_relations_together():
    text = "Are there more red squares left of blue circle than green circles?"
    words = text.split()
    spelt = [" ".join(words[i] for i in group) for group in phrases(text)]
    assert spelt == ["Are", "red squares", "left blue circle", "than", "green circles?"]
    assert len(readings(text, phrases(text)).readings) <= 2**5
