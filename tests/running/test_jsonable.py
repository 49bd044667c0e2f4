from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st

from medground.errors import RunError
from medground.running.jsonable import plain, to_json, to_yaml

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@given(trees)
def test_json_comes_back_the_same(tree):
    assert json.loads(to_json(tree)) == tree


def test_keys_are_sorted_and_floats_are_the_shortest():
    assert to_json({"b": 0.1 + 0.2, "a": 1e-7}) == b'{\n  "a": 1e-07,\n  "b": 0.30000000000000004\n}\n'


def test_numpy_paths_sets_and_tuples_become_plain():
    mixed = {"a": np.float32(0.5), "b": np.arange(2), "c": Path("x/y"), "d": {"q", "p"}, 1: (np.bool_(True),)}
    assert plain(mixed) == {"a": 0.5, "b": [0, 1], "c": "x/y", "d": ["p", "q"], "1": [True]}
    assert yaml.safe_load(to_yaml(mixed)) == plain(mixed)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("nan")])
def test_a_number_that_is_none_is_named_by_its_place(value):
    with pytest.raises(RunError, match=r"where: summary\.a\[1\]\.b"):
        to_json({"a": [0, {"b": value}]}, "summary")


@pytest.mark.parametrize("value", [b"bytes", date(2020, 1, 1), object()])
def test_what_has_no_json_is_refused(value):
    with pytest.raises(RunError, match=type(value).__name__):
        to_json({"a": value})
