import pytest

from medground.errors import MetricError
from medground.metrics.spec import MetricSpec, from_json, register, registered, spec_of


def test_a_specification_survives_json():
    spec = MetricSpec("dice@best", "Dice", family="overlap", searched=True, partner="dice@crossfit", bounds=(0, 1))
    data = spec.to_json() | {"bounds": [0, 1], "from a later version": 1}
    assert from_json(data) == spec


def test_values_are_printed_on_the_scale_of_the_unit():
    assert MetricSpec("a", "A").shown(0.1234) == "12.3"
    assert MetricSpec("a", "A", unit="points", digits=2).shown(0.001, signed=True) == "+0.10"
    assert MetricSpec("a", "A", unit="none", digits=3).shown(0.1234) == "0.123"
    assert MetricSpec("a", "A").shown(None) == ""
    assert MetricSpec("a", "A").shown(-0.0001) == "0.0"


def test_which_of_two_is_better():
    assert MetricSpec("a", "A").better(1, 0) is True
    assert MetricSpec("a", "A", direction="lower").better(1, 0) is False
    assert MetricSpec("a", "A", direction="neither").better(1, 0) is None
    assert MetricSpec("a", "A").better(1, 1) is None


def test_a_benchmark_has_its_own_names():
    mine = MetricSpec("made up", "Of one benchmark")
    register(mine, benchmark="test of specifications")
    register(mine, benchmark="test of specifications")
    assert spec_of("made up", "test of specifications") is mine
    assert mine in registered("test of specifications")
    assert mine not in registered("another")
    with pytest.raises(MetricError, match="one name"):
        register(MetricSpec("made up", "Something else"), benchmark="test of specifications")


def test_nothing_is_read_off_a_name():
    unknown = spec_of("dice@best", "no such benchmark")
    assert (unknown.title, unknown.direction, unknown.family, unknown.searched) == (
        "dice@best",
        "neither",
        "score",
        False,
    )
    given = MetricSpec("dice@best", "Dice")
    assert spec_of("dice@best", "no such benchmark", [given]) is given


def test_a_misspelt_field_is_named():
    with pytest.raises(MetricError, match="family") as caught:
        MetricSpec("a", "A", family="overlaps")
    assert "overlap" in caught.value.fix
