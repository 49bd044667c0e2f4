"""Which cases are shown: the true worst and best, the same random ones for all, and never too many."""

from __future__ import annotations

from hypothesis import given, strategies as st

from medground.reporting.xbench.selection import SIZES, ScoredPair, choose, lists_of, pictures

FINDINGS = ("Mass", "Nodule")


def scored(n: int) -> list[ScoredPair]:
    return [
        ScoredPair((f"case {k}", FINDINGS[k % 2]), None if k % 10 == 7 else (k * 37 % 100) / 100, outcome(k))
        for k in range(n)
    ]


def outcome(k: int) -> str:
    return "undefined" if k % 10 == 7 else "hit" if k % 3 else "miss"


def test_worst_and_best_are_the_ends_of_the_order() -> None:
    pairs = scored(50)
    lists = lists_of(pairs, 5, 2, seed=0)
    values = {pair.key: pair.value for pair in pairs}
    order = sorted(v for v in values.values() if v is not None)
    assert [values[key] for key in lists[""]["worst"]] == order[:5]
    assert [values[key] for key in lists[""]["best"]] == order[::-1][:5]
    assert {key[1] for key in lists["Mass"]["worst"]} == {"Mass"}
    assert len(lists["Mass"]["worst"]) == 2


def test_undefined_and_failed_have_a_list_of_their_own() -> None:
    lists = lists_of(scored(50), 24, 0, seed=0)
    assert [key[0] for key in lists[""]["failed"]] == [f"case {k}" for k in (7, 17, 27, 37, 47)]
    assert not {*lists[""]["failed"]} & {*lists[""]["worst"], *lists[""]["best"]}
    assert set(lists) == {""}


def test_a_miss_comes_before_a_hit_of_the_same_dice() -> None:
    pairs = [ScoredPair(("a", "Mass"), 0.5, "hit"), ScoredPair(("b", "Mass"), 0.5, "miss")]
    assert lists_of(pairs, 2, 0, 0)[""]["worst"] == [("b", "Mass"), ("a", "Mass")]


def test_random_cases_depend_on_the_seed_alone() -> None:
    pairs = scored(60)
    one = lists_of(pairs, 10, 0, seed=1)[""]["random"]
    assert one == lists_of(pairs[::-1], 10, 0, seed=1)[""]["random"]
    assert one != lists_of(pairs, 10, 0, seed=2)[""]["random"]


def test_the_lists_shrink_until_the_pictures_fit() -> None:
    tasks = {(f"m{k}", "d"): scored(400) for k in range(6)}
    for most in (1000, 200, 60, 10):
        assert len(pictures(choose(tasks, most, 0))) <= most
    longest = choose(tasks, 10_000, 0)["m0", "d"]
    assert len(longest[""]["worst"]) == SIZES[0][0]


@given(st.integers(0, 80), st.integers(1, 30), st.integers(0, 9))
def test_a_list_holds_no_pair_twice_and_only_pairs_that_are_there(n: int, overall: int, each: int) -> None:
    pairs = scored(n)
    for groups in lists_of(pairs, overall, each, 0).values():
        for keys in groups.values():
            assert len(set(keys)) == len(keys) <= max(overall, each)
            assert set(keys) <= {pair.key for pair in pairs}
