"""Run lengths in both pixel orders, and which one a file uses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.heal_medvqa.pixel_order import CodedMask, detected_order
from medground.errors import RegionError

ORDERS = {"row_major": "row", "column_major": "column"}


@pytest.fixture(scope="module")
def coded(heal_golden: Path) -> list[tuple[dict, CodedMask]]:
    listed = json.loads((heal_golden / "relation/run_lengths.json").read_text())
    return [(one, CodedMask(one["anatomy"], one["mask_rle"], one["mask_h"], one["mask_w"])) for one in listed]


def test_masks_are_read_in_their_order(heal_golden: Path, coded: list) -> None:
    masks = np.load(heal_golden / "relation/masks.npz")
    for one, mask in coded:
        if one["pixels"]:
            expected = masks[f"{one['image']}/{one['anatomy']}"] != 0
            assert np.array_equal(mask.read(ORDERS[one["order"]]), expected)


@pytest.mark.parametrize("written", ORDERS)
def test_the_order_is_told_from_place_and_shape(coded: list, written: str) -> None:
    assert detected_order(mask for one, mask in coded if one["order"] in (written, "either")) == ORDERS[written]


def test_empty_masks_are_known_and_never_read(coded: list) -> None:
    empty = [mask for one, mask in coded if one["pixels"] == 0]
    assert len(empty) == 2
    assert all(mask.is_empty for mask in empty)
    with pytest.raises(RegionError, match="empty"):
        empty[0].read("row")


def test_a_picture_that_is_not_square_tells_by_falling_apart() -> None:
    mask = np.zeros((40, 30), bool)
    mask[10:30, 12:18] = True
    starts = np.flatnonzero(np.diff(np.concatenate([[0], mask.ravel().astype(int)])) == 1)
    pairs = [int(n) for start in starts for n in (start, 6)]
    assert detected_order([CodedMask("trachea", pairs, 40, 30)]) == "row"


def test_what_does_not_tell_is_said() -> None:
    with pytest.raises(RegionError, match="cannot be told"):
        detected_order([CodedMask("thorax", [0, 16], 4, 4)])
