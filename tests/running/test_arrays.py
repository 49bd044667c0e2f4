from __future__ import annotations

import io
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from medground.running.arrays import pack_arrays, unpack_arrays

dtypes = st.sampled_from(["f4", "f8", "i2", "u1", "?"])
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
packs = st.dictionaries(st.text(max_size=8), st.dictionaries(st.text(max_size=8), arrays, min_size=1), min_size=1)


@settings(max_examples=30)
@given(packs)
def test_what_is_packed_comes_back_in_order(pack):
    found = list(unpack_arrays(io.BytesIO(pack_arrays(pack.items()))))
    assert [item for item, _ in found] == list(pack)
    for item, members in found:
        assert list(members) == list(pack[item])
        for name, array in members.items():
            assert array.dtype == pack[item][name].dtype
            np.testing.assert_array_equal(array, pack[item][name])


def test_the_same_arrays_give_the_same_bytes_at_any_time(monkeypatch):
    rng = np.random.default_rng(0)
    pack = [("a", {"x": rng.random((3, 4), dtype=np.float32)}), ("b", {"x": rng.random(2)})]
    first = pack_arrays(pack)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    fortran = [(item, {name: np.asfortranarray(a) for name, a in members.items()}) for item, members in pack]
    assert pack_arrays(fortran) == first


def test_numpy_alone_reads_the_file_and_names_cannot_leave_their_folder():
    data = pack_arrays([("../../x", {"map": np.arange(3)}), ("a.png", {"map": np.zeros(0)})])
    with np.load(io.BytesIO(data)) as file:
        assert file.files == ["%2E.%2F..%2Fx/map", "a.png/map"]
        assert file["%2E.%2F..%2Fx/map"].tolist() == [0, 1, 2]


def test_only_the_wanted_items_are_read():
    data = pack_arrays([(str(i), {"x": np.full(2, i)}) for i in range(5)])
    found = dict(unpack_arrays(io.BytesIO(data), only={"3", "1", "9"}))
    assert list(found) == ["1", "3"]


def test_no_arrays_no_file():
    assert pack_arrays([("a", {}), ("b", {})]) is None


def test_python_objects_are_refused():
    with pytest.raises(ValueError, match="Object arrays"):
        pack_arrays([("a", {"x": np.array([{}], dtype=object)})])
