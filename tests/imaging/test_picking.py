import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from medground.imaging.picking import first_taking, picked

STARRED = Path(__file__).parents[1] / "golden" / "metrics" / "starred"


def test_starred_three_to_seven():
    expected = json.loads((STARRED / "T03_resize_alignment" / "expected.json").read_text())["expected"]
    rows = expected["three_to_seven_nearest"]
    assert picked(3, 7, "floor").tolist() == rows["legacy_floor_indices"]
    assert picked(3, 7, "centre").tolist() == rows["centre_indices"]


@given(st.integers(1, 300), st.integers(1, 300))
def test_picked_rows_follow_their_formulas(source, target):
    assert picked(source, target, "floor").tolist() == [i * source // target for i in range(target)]
    centre = [int((2 * i + 1) * source // (2 * target)) for i in range(target)]
    assert picked(source, target, "centre").tolist() == centre
    assert picked(source, target, "centre").tolist() == [source - 1 - row for row in reversed(centre)] or any(
        (2 * i + 1) * source % (2 * target) == 0 for i in range(target)
    )


@given(st.integers(1, 60), st.integers(1, 60), st.data())
@pytest.mark.parametrize("resize", ["floor", "centre"])
def test_first_taking_is_the_first_row_that_takes_the_edge(resize, source, target, data):
    edge = data.draw(st.integers(-3, source + 3))
    rows = picked(source, target, resize).tolist()
    expected = next((i for i, row in enumerate(rows) if row >= min(max(edge, 0), source)), target)
    assert first_taking(edge, source, target, resize) == expected
