"""The promises of the second edition, by brute force over words and coordinates."""

import re
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import ConfigError
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.generate import fillable, scene, scenes
from medground.worlds.gridvqa.second import refusal, second_scene
from medground.worlds.gridvqa.world import EVERYTHING, Only, buckets

FILLED, LEFT_OUT = fillable(buckets(), 5)
EITHER = [b for b in FILLED if b.form != "count"]
RELATIONAL = [b for b in EITHER if b.relational]
SIDES = {
    "left of": lambda a, b: a[0] < b[0],
    "right of": lambda a, b: a[0] > b[0],
    "above": lambda a, b: a[1] < b[1],
    "below": lambda a, b: a[1] > b[1],
}


def fits(phrase, thing):
    return all(word in (thing.colour, thing.shape, "object") for word in phrase.split())


def parts(text):
    """Split a question at its words alone: for every side its target and its (direction, anchor) phrases."""
    plain = re.sub(r"[?,]", "", text.lower())
    plain = re.sub(r"^(how many|is there any|are there more) ", "", plain)
    split = []
    for side in plain.split(" than "):
        pieces = re.split(r"(left of|right of|above|below)", side)
        names = [re.sub(r"\b(that|is|are|and)\b|(?<=[a-z])s\b", "", piece).strip() for piece in pieces]
        split.append((names[0], list(zip(pieces[1::2], names[2::2], strict=True))))
    return split


def counts(things, sides):
    found = []
    for target, relations in sides:
        n = 0
        for thing in things:
            beside = []
            for direction, phrase in relations:
                (anchor,) = [other for other in things if fits(phrase, other)]
                beside.append(SIDES[direction](thing.cell, anchor.cell))
            n += fits(target, thing) and all(beside)
        found.append(n)
    return found


def reply(form, found):
    if form == "count":
        return found[0]
    return "yes" if found[0] > (0 if form == "exists" else found[1]) else "no"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILLED), st.integers(0, 10**9))
def test_dropping_any_relation_changes_its_side_and_the_answer_where_logic_allows(bucket, seed):
    made = scene("pure", bucket, 0, seed=seed)
    sides = parts(made.question.text)
    whole = counts(made.things, sides)
    assert reply(bucket.form, whole) == made.answer
    truth, entry = check(made.things, made.question, 5), 0
    for i, (target, relations) in enumerate(sides):
        for k in range(len(relations)):
            shorter = [*sides[:i], (target, relations[:k] + relations[k + 1 :]), *sides[i + 1 :]]
            found = counts(made.things, shorter)
            assert found[i] > whole[i]
            bound = bucket.form != "count" and made.answer == ("yes" if i == 0 else "no")
            assert (reply(bucket.form, found) != made.answer) == (not bound)
            assert truth.drop_one[entry].can_change == (not bound)
            entry += 1
    assert entry == len(truth.drop_one)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RELATIONAL), st.integers(0, 10**9))
def test_both_answers_have_the_same_objects(bucket, seed):
    """Not alike on average: from the same chance, the very same colours and shapes."""
    yes, no = (second_scene(Draws(f"both/{seed}"), bucket, 5, "x", yes=answer) for answer in (True, False))
    assert (yes.answer, no.answer) == ("yes", "no")
    assert yes.question == no.question
    inventory = [Counter((t.colour, t.shape) for t in made.things) for made in (yes, no)]
    assert inventory[0] == inventory[1]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([b for b in EITHER if b.type == "A"]), st.integers(0, 10**9))
def test_without_relations_partial_look_alikes_are_the_same_too(bucket, seed):
    numbers = []
    for answer in (True, False):
        made = second_scene(Draws(f"both/{seed}"), bucket, 5, "x", yes=answer)
        target = made.question.clauses[0].target
        numbers.append(sum((t.colour == target.colour) + (t.shape == target.shape) == 1 for t in made.things))
    assert numbers[0] == numbers[1]


def best_guess(made, look):
    """Learn the likelier answer for every look of a scene on the first half, and count its hits on the second."""
    half = len(made) // 2
    seen = defaultdict(Counter)
    for one in made[:half]:
        seen[look(one)][one.answer] += 1
    right = [seen[look(one)].most_common(1)[0][0] == one.answer if seen[look(one)] else None for one in made[half:]]
    judged = [r for r in right if r is not None]
    return sum(judged), len(judged)


def look_alikes(made):
    return tuple(sum(fits(target, t) for t in made.things) for target, _ in parts(made.question.text))


@pytest.mark.parametrize("edition", ["first", "second"])
def test_the_number_of_look_alikes_tells_nothing_in_the_second_edition_alone(edition):
    leaks = {}
    for bucket in RELATIONAL:
        right, n = best_guess(scenes("pure", [bucket], 240, seed=4, edition=edition), look_alikes)
        leaks[bucket.key] = (right / n - 0.5) / (0.25 / n) ** 0.5
    if edition == "second":
        assert max(map(abs, leaks.values())) < 3.3, leaks
    else:
        assert sum(z > 3.3 for z in leaks.values()) >= 5, leaks


def test_the_opposite_of_the_bag_of_words_is_right_half_the_time():
    for bucket in (b for b in RELATIONAL if b.form == "compare"):
        made = scenes("pure", [bucket], 200, seed=9)
        opposite = sum(check(s.things, s.question, 5).needs_directions for s in made)
        assert 70 < opposite < 130, bucket.key


def test_buckets_without_room_are_named_and_refused():
    assert [sentence.split()[0] for sentence in LEFT_OUT] == ["D3-M-count-d03", "D3-CMP-compare-d03"]
    assert fillable(buckets(), 6)[1] == []
    assert refusal(FILLED[0], 5) is None
    with pytest.raises(ConfigError, match="D3-CMP-compare-d03 cannot be filled"):
        fillable(buckets(), 5, named=["D3-CMP-compare-d03"])
    with pytest.raises(ConfigError, match="always be 1"):
        fillable(Only(depths=(3,), types=("M",), forms=("count",)).of(buckets([0.3])), 5)
    assert fillable(buckets(), 5, edition="first") == (buckets(), [])


def test_a_run_may_name_depths_types_forms_or_keys():
    assert EVERYTHING.of(buckets()) == buckets()
    chosen = Only(depths=(2, 3), types=("M",), forms=("count",)).of(buckets([0.7]))
    assert [b.key for b in chosen] == ["D2-M-count-d07", "D3-M-count-d07"]
    assert [b.key for b in Only(keys=("D1-A-exists-d03",)).of(buckets())] == ["D1-A-exists-d03"]
    for wrong in ({"depths": (4,)}, {"types": ("X",)}, {"forms": ("why",)}):
        with pytest.raises(ConfigError, match="unknown"):
            Only(**wrong)
    with pytest.raises(ConfigError, match="no bucket has this key"):
        Only(keys=("D9",)).of(buckets())
    with pytest.raises(ConfigError, match="no bucket has these"):
        Only(depths=(3,), types=("A",)).of(buckets())
