"""The executor on coalitions against a slow one that walks over words and coordinates."""

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.worlds.gridvqa.build import board_of
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.coalitions import executor, meaning
from medground.worlds.gridvqa.drawing import paint
from medground.worlds.gridvqa.generate import fillable, scene
from medground.worlds.gridvqa.language import COLOURS, SHAPES, Clause, Kind, Question, Relation
from medground.worlds.gridvqa.world import Thing, buckets

FILLED = fillable(buckets(), 5)[0]
STEPS = {"left": (-1, 0), "right": (1, 0), "above": (0, -1), "below": (0, 1)}


def slow(things, words, *, relations=True):
    """Read word by word, keep lists of objects, compare coordinates."""
    plain = [w.strip(",.?").lower() for w in words]
    plain = [w[:-1] if w in ("circles", "squares", "triangles", "pentagons", "objects") else w for w in plain]
    first = plain[0] if plain and (words[0][0].isupper() or plain[0] == "how") else ""
    halves = [plain]
    if first == "are" and "than" in plain:
        at = plain.index("than")
        halves = [plain[:at], plain[at + 1 :]]
    numbers = [len(kept(things, half, relations)) for half in halves]
    if first == "are":
        return "yes" if numbers[0] > (numbers[1] if len(numbers) > 1 else len(things)) else "no"
    if first == "is":
        return "yes" if numbers[0] else "no"
    return numbers[0]


def kept(things, words, relations):
    groups = [[None]]
    for word in words:
        if word in STEPS:
            groups.append([word])
        else:
            groups[-1].append(word)
    fitting = []
    for group in groups:
        asked = []
        for word in group[1:]:
            if word == "object":
                break
            if word in SHAPES:
                asked.append(word)
                break
            if word in COLOURS:
                if asked:
                    break
                asked.append(word)
        fitting.append((group[0], asked, [t for t in things if all(a in (t.colour, t.shape) for a in asked)]))
    targets = fitting[0][2]
    for direction, asked, anchors in fitting[1:] if relations else []:
        if asked:
            dx, dy = STEPS[direction]
            targets = [t for t in targets if any((t.x - a.x) * dx + (t.y - a.y) * dy > 0 for a in anchors)]
    return targets


def thinned(rng, sequence, share):
    return [one for one in sequence if rng.random() >= share]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(FILLED), st.integers(0, 10**9), st.sampled_from([0.0, 0.25, 0.5, 0.75]), st.booleans())
def test_the_executor_agrees_with_a_slow_one_on_any_coalition(bucket, seed, share, relations):
    made, rng = scene("pure", bucket, 0, seed=seed), random.Random(seed)
    things, words = thinned(rng, made.things, share), thinned(rng, made.question.text.split(), share)
    assert executor(things, words, 5, relations=relations) == slow(things, words, relations=relations)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FILLED), st.integers(0, 10**9))
def test_on_whole_scenes_it_is_the_truth_and_the_counter_the_bag_of_words(bucket, seed):
    made = scene("pure", bucket, 0, seed=seed)
    truth, words = check(made.things, made.question, 5), made.question.text.split()
    assert executor(made.things, words, 5) == truth.answer
    assert executor(made.things, words, 5, relations=False) == truth.bag_of_words[1]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FILLED), st.integers(0, 10**9), st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_the_analytic_pair_gives_its_answers_on_any_coalition(bucket, seed, share):
    made, rng = scene("pure", bucket, 0, seed=seed), random.Random(seed)
    things, words = thinned(rng, made.things, share), thinned(rng, made.question.text.split(), share)
    picture = (paint(board_of(things, 5), 16)[None] / 255).astype(np.float32)
    for model, relations in ((RuleExecutor(), True), (WordCounter(), False)):
        said = model.answers[int(model.logits(picture, [" ".join(words)])[0].argmax())]
        right = executor(things, words, 5, relations=relations)
        assert said == ("17+" if right == 17 else str(right))


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("How many red circles are left of blue square?", 1),
        ("How many red circles are left blue square?", 1),
        ("How many red circles are of blue square?", 3),
        ("How many red circles are left of?", 3),
        ("How many red circles are left of blue", 1),
        ("How many red circles are left of square?", 3),
        ("How many red circles are left of green square?", 3),
        ("How many red circles are left of yellow square?", 0),
        ("How many are left of blue square?", 2),
        ("are left of blue square?", 2),
        ("How many", 6),
        ("", 6),
    ],
)
def test_what_masked_words_mean(text, counted):
    things = [
        Thing(0, 0, "red", "circle"),
        Thing(2, 0, "red", "circle"),
        Thing(3, 0, "red", "circle"),
        Thing(1, 1, "blue", "square"),
        Thing(4, 4, "green", "square"),
        Thing(0, 3, "yellow", "pentagon"),
    ]
    assert executor(things, text.split(), 5) == counted


def test_the_counter_takes_no_anchor_for_a_target():
    assert meaning(("How", "many", "are", "left", "of", "blue", "square?"), False) == Question(
        "count", (Clause(Kind()),)
    )
    relation = Relation("left of", Kind("blue", "square"))
    assert meaning(("left", "blue", "square?")) == Question("count", (Clause(Kind(), (relation,)),))
