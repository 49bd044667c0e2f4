"""How values are printed: by the specification, never by the name."""

from __future__ import annotations

import pytest

from medground.errors import MetricError
from medground.metrics.spec import MetricSpec, register, registered, spec_of


@pytest.mark.parametrize(
    ("given", "digits", "text"),
    [
        ({}, None, "12.35"),
        ({}, 1, "12.3"),
        ({"unit": "plain", "digits": 4}, None, "0.1235"),
        ({"unit": "plain", "digits": 4}, 1, "0.1235"),
    ],
)
def test_a_value_is_printed_in_its_unit(given: dict, digits: int | None, text: str) -> None:
    assert MetricSpec(name="m", title="M", **given).text(0.12345, digits) == text


def test_an_interval_stands_behind_its_value_or_is_left_out() -> None:
    spec = MetricSpec(name="m", title="M")
    assert spec.with_interval(0.5, 0.25, 0.75, 1) == "50.0 [25.0, 75.0]"
    assert spec.with_interval(0.5, None, None, 1) == "50.0"
    assert spec.interval(0.25, None) == ""


def test_what_was_searched_on_its_own_items_says_so() -> None:
    assert MetricSpec(name="m", title="Dice", searched=True).heading == "Dice (optimistic)"
    assert MetricSpec(name="m", title="Dice").heading == "Dice"


def test_which_of_two_is_better() -> None:
    assert MetricSpec(name="m", title="M").prefers(1, 0) is True
    assert MetricSpec(name="m", title="M", better="lower").prefers(1, 0) is False
    assert MetricSpec(name="m", title="M", better="neither").prefers(1, 0) is None
    assert MetricSpec(name="m", title="M").prefers(1, 1) is None


def test_a_benchmark_has_its_own_names() -> None:
    mine = MetricSpec(name="made up", title="Of one benchmark")
    register(mine, benchmark="test of specifications")
    register(mine, benchmark="test of specifications")
    assert spec_of("made up", "test of specifications") is mine
    assert mine in registered("test of specifications")
    assert mine not in registered("another")
    with pytest.raises(MetricError, match="one name"):
        register(MetricSpec(name="made up", title="Something else"), benchmark="test of specifications")


def test_nothing_is_read_off_a_name() -> None:
    unknown = spec_of("dice@best", "no such benchmark")
    assert (unknown.title, unknown.better, unknown.family, unknown.searched) == ("dice@best", "neither", "", False)
