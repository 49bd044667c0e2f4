"""The one join: what fits, what is missing, what is extra; nothing that fits is an error."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from medground.errors import DataError
from medground.tables.ids import form, plain_id
from medground.tables.join import join

IDS = st.text(alphabet="01ab.", max_size=4)


def one(*ids: str) -> list[tuple[str, ...]]:
    return [(name,) for name in ids]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("32", "00000032"),
        ("32", "32.0"),
        ("00013118_008", "00013118_008.png"),
        ("AB-1", "ab-1"),
        ("x", " x "),
        ("0", "00"),
    ],
)
def test_ids_are_compared_as_one_way_of_writing(ours: str, theirs: str) -> None:
    found = join(one(ours), one(theirs), what="t", unit="patients")
    assert found.matched == {(ours,): (theirs,)}
    assert found.rewritten == 1
    assert "once ids were written one way" in found.line()


@pytest.mark.parametrize(("one", "other"), [("32", "320"), ("a.b", "a"), ("1_1", "1_10"), ("p32", "32"), ("1.5", "1")])
def test_different_ids_stay_different(one: str, other: str) -> None:
    assert plain_id(one) != plain_id(other)


def test_what_is_ambiguous_is_refused() -> None:
    with pytest.raises(DataError, match="two ids become one"):
        join(one("7"), one("07", "007"), what="t", unit="cases")
    assert not join(one("8"), one("07", "007"), what="t", unit="cases").matched


def test_nothing_in_common_is_an_error_that_shows_both() -> None:
    found = join(one("a1", "a2"), one("b-1"), what="scores.csv", unit="cases")
    with pytest.raises(DataError, match=r"nothing in scores\.csv fits") as caught:
        found.require_some()
    assert "a1; a2" in str(caught.value)
    assert "b-1" in str(caught.value)
    assert "a9 here, a-9 there" in str(caught.value)
    join([], one("b"), what="t", unit="cases").require_some()
    join(one("b"), [], what="t", unit="cases").require_some()


def test_a_turned_order_is_recognised() -> None:
    found = join([("c1", "Mass")], [("Mass", "c1")], what="maps", unit="cases and findings")
    with pytest.raises(DataError, match="turned round"):
        found.require_some()


def test_forms_show_what_differs() -> None:
    assert (form("p10046166"), form("00013118_008"), form("32")) == ("a9", "9_9", "9")


@given(st.sets(IDS), st.sets(IDS))
def test_every_key_is_counted_once(wanted: set[str], given_: set[str]) -> None:
    ours, theirs = one(*sorted(wanted)), one(*sorted(given_))
    try:
        found = join(ours, theirs, what="t", unit="cases")
    except DataError:
        plain = [plain_id(i) for side in (wanted, given_) for i in side]
        assert len(set(plain)) < len(plain)
        return
    assert {*found.matched, *found.missing} == set(ours)
    assert len(found.matched) + len(found.missing) == len(ours)
    assert {*found.matched.values(), *found.extra} == set(theirs)
    assert len(set(found.matched.values())) == len(found.matched)
    assert all(plain_id(a[0]) == plain_id(b[0]) for a, b in found.matched.items())
    assert {key for key in ours if key in theirs} <= set(found.matched)
