import hashlib
import json
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import ConfigError
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.generate import fillable, scene, scenes
from medground.worlds.gridvqa.world import buckets, occupied

ALL = buckets()
FILLED = fillable(ALL, 5)[0]


def truths(variant, n, **options):
    options = {"edition": "first"} | options
    made = scenes(variant, ALL, n, **options)
    return [(s, check(s.things, s.question, s.grid)) for s in made]


def test_there_are_19_buckets_a_density():
    assert len(ALL) == 38
    assert len({b.key for b in ALL}) == 38
    assert [b.key for b in ALL[:3]] == ["D1-A-count-d03", "D1-A-exists-d03", "D1-SO-count-d03"]


@pytest.mark.parametrize(("grid", "n"), [(5, (7, 17)), (6, (10, 25)), (8, (19, 44))])
def test_densities_round_down(grid, n):
    assert (occupied(grid, 0.3), occupied(grid, 0.7)) == n


def test_strict_scenes_need_every_relation():
    for made, truth in truths("pure", 40):
        bucket = made.bucket
        assert len(made.things) == occupied(5, bucket.density)
        assert truth.answer == made.answer
        if bucket.type != "CMP":
            assert all(d.status == "filled" for d in truth.drop_one), made
            assert all(d.count != truth.counts[0] for d in truth.drop_one)
        if bucket.relational and bucket.form != "exists":
            assert truth.needs_directions, made
        directions = [[r.direction for r in c.relations] for c in made.question.clauses]
        assert all(len(set(d)) == len(d) for d in directions)
        if bucket.form == "count":
            assert made.answer >= 1


def test_counting_target_words_always_answers_the_spurious_scenes():
    for made, truth in truths("spurious", 40):
        assert truth.answer == made.answer
        assert truth.bag_of_words == (truth.counts, truth.answer)
        assert len(made.things) == occupied(5, made.bucket.density)


def test_answers_of_yes_no_questions_are_balanced():
    for variant in ("pure", "spurious"):
        said = Counter((s.bucket.form, s.answer) for s, _ in truths(variant, 60) if s.bucket.form != "count")
        for form in ("exists", "compare"):
            share = said[form, "yes"] / (said[form, "yes"] + said[form, "no"])
            assert 0.44 < share < 0.56


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(FILLED),
    st.integers(5, 12),
    st.integers(0, 10**9),
    st.sampled_from(["pure", "spurious"]),
    st.sampled_from(["second", "first"]),
)
def test_any_grid_holds_what_the_variants_promise(bucket, grid, seed, variant, edition):
    made = scene(variant, bucket, 1, seed=seed, grid=grid, edition=edition)
    truth = check(made.things, made.question, grid)
    assert truth.answer == made.answer
    roles = {"target": set(), "anchor": set(), "lure": set(), "distractor": set()}
    for thing in made.things:
        roles[thing.role].add(thing.cell)
    assert roles["target"] | roles["anchor"] == truth.causal
    assert roles["target"] | roles["lure"] == truth.shortcut
    if variant == "pure" and bucket.type != "CMP":
        assert truth.strict_confusers in (None, True)
    if variant == "spurious":
        assert not roles["lure"]


def test_a_scene_depends_on_its_own_seed_only():
    bucket = ALL[30]
    alone = scene("pure", bucket, 7, seed=3)
    assert alone == scenes("pure", ALL[28:31], 8, seed=3)[2 * 8 + 7]
    assert alone != scene("pure", bucket, 7, seed=4)
    assert alone != scene("pure", bucket, 8, seed=3)


def test_the_released_generator_leaves_a_quarter_of_the_relations_redundant(grid_golden):
    published = json.loads((grid_golden / "generator_rates.json").read_text())["pure"]
    unchanged, blind = Counter(), Counter()
    total, n = Counter(), 80
    for made, truth in truths("pure", n, confusers="released", seed=5):
        assert truth.answer == made.answer
        key = made.bucket.key.replace("count", "f0").replace("exists", "f1").replace("compare", "f0")
        blind[key] += not truth.needs_directions
        for d in truth.drop_one:
            total[key] += 1
            unchanged[key] += d.count == truth.counts[d.clause]
    deep = [k for k in total if k[1] in "23" and "CMP" not in k]
    assert sum(unchanged[k] for k in deep) / sum(total[k] for k in deep) == pytest.approx(0.265, abs=0.035)
    for key, rates in published.items():
        assert blind[key] / n == pytest.approx(rates["bag_of_words_right"], abs=0.2), key
        if total[key]:
            assert unchanged[key] / total[key] == pytest.approx(rates["unchanged_count"], abs=0.2), key


def test_a_density_that_leaves_no_room_is_refused():
    (bucket,) = [b for b in buckets([0.2]) if b.key == "D3-M-count-d02"]
    for edition in ("first", "second"):
        with pytest.raises(ConfigError, match="needs 7 objects"):
            scene("pure", bucket, 0, edition=edition)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        buckets([1.5])
    with pytest.raises(ConfigError, match="differ"):
        buckets([0.7, 0.3, 0.7])


def test_the_first_edition_is_that_of_earlier_releases_to_the_byte():
    held = {
        ("pure", "strict"): "ce6afe51677a94a99d0a4ed22f20b3f557caf72840961262dd92a30350891088",
        ("pure", "released"): "f513847a8ccea02d2eb38281bc500a711c87f791507133de4e808ea3c81347cc",
        ("spurious", "strict"): "810f2125acb9af4039af5c3af1a10021c026232334fe3e9dce061385e2751b89",
        ("spurious", "released"): "26a2393c5d7abb8db206cd89fcb635e4bef7be6d97e68dc8c3cbf22e7104806f",
    }
    for (variant, confusers), expected in held.items():
        made = scenes(variant, ALL, 3, seed=11, confusers=confusers, edition="first")
        assert hashlib.sha256(repr(made).encode()).hexdigest() == expected
