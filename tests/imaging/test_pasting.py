"""Pasting a region: golden pictures, and what must hold for any of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.errors import RegionError
from medground.imaging.pasting import (
    alpha_of,
    blended,
    box_of,
    matched,
    moments,
    residue,
    scaled_donor,
    support_of,
)


@pytest.fixture(scope="module")
def arrays(golden: Path) -> Any:
    return np.load(golden / "heal_medvqa/vpt_compositing/cases.npz")


@pytest.fixture(scope="module")
def cases(golden: Path) -> list[dict]:
    listed = json.loads((golden / "heal_medvqa/vpt_compositing/expected.json").read_text())
    return [case for case in listed if "results" in case]


def parts(arrays: Any, case: dict) -> tuple:
    return tuple(arrays[f"{case['id']}/{name}"] for name in ("target", "target_mask", "donor", "donor_mask"))


def near(array: Any, expected: Any) -> bool:
    return np.allclose(array, expected, rtol=0, atol=1e-9)


def test_the_donor_is_scaled_to_the_targets_box(arrays: Any, cases: list) -> None:
    for case in cases:
        target, target_mask, donor, donor_mask = parts(arrays, case)
        box = box_of(target_mask)
        assert list(box) == case["target_box"]
        assert list(box_of(donor_mask)) == case["donor_box"]
        block, mask = scaled_donor(donor, donor_mask, box)
        placed, flags = target.copy(), np.zeros(target.shape, bool)
        placed[box[1] : box[3], box[0] : box[2]] = block
        flags[box[1] : box[3], box[0] : box[2]] = mask
        assert near(placed, arrays[f"{case['id']}/scaled_donor"])
        assert np.array_equal(flags, arrays[f"{case['id']}/scaled_donor_mask"] != 0)


def test_every_support_feather_and_matching(arrays: Any, cases: list) -> None:
    for case in cases:
        target, target_mask, donor, donor_mask = parts(arrays, case)
        box = box_of(target_mask)
        block, mask = scaled_donor(donor, donor_mask, box)
        region = target_mask != 0
        own = moments(block[region[box[1] : box[3], box[0] : box[2]]])
        blocks = {"plain": block, "matched": matched(block, own, moments(target[region]))}
        for one in case["results"]:
            name = f"{case['id']}/{one['support']}/sigma{one['sigma']}/{one['alpha']}/{one['intensity']}"
            support = support_of(target_mask, mask, box, one["support"])
            alpha = alpha_of(support, box, one["sigma"], one["alpha"])
            image = blended(target, blocks[one["intensity"]], alpha, box)
            assert near(alpha, arrays[f"{name}/alpha"]), name
            assert near(image, arrays[f"{name}/image"]), name
            changed = np.abs(image - target) > 1e-9
            assert np.count_nonzero(changed & ~support) == one["changed_outside_support"], name
            for left in one["residual"]:
                lesion = np.zeros(target.shape, bool)
                x0, y0, x1, y1 = left["box"]
                lesion[y0:y1, x0:x1] = True
                assert residue(lesion, support, alpha) == pytest.approx((left["hard"], left["soft"]), abs=1e-9)


def test_pasting_the_own_region_back_changes_nothing(arrays: Any, cases: list) -> None:
    case = next(case for case in cases if case["id"] == "own_region_back")
    target, target_mask, _, _ = parts(arrays, case)
    box = box_of(target_mask)
    block, _ = scaled_donor(target, target_mask, box)
    image = blended(target, block, alpha_of(target_mask != 0, box, 2.0), box)
    assert np.abs(image - target).max() <= 1e-12 * np.abs(target).max()


@given(st.integers(0, 2**32 - 1), st.floats(0, 4))
def test_an_inward_feather_leaves_everything_outside_as_it_was(seed: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    target, donor = rng.random((24, 20)), rng.random((17, 23))
    target_mask, donor_mask = rng.random((24, 20)) < 0.4, rng.random((17, 23)) < 0.4
    box = box_of(target_mask)
    block, _ = scaled_donor(donor, donor_mask, box)
    alpha = alpha_of(target_mask, box, sigma)
    image = blended(target, block, alpha, box)
    assert np.array_equal(image[~target_mask], target[~target_mask])
    assert 0 <= alpha.min() <= alpha.max() <= 1
    lowest, highest = min(target.min(), donor.min()), max(target.max(), donor.max())
    assert lowest - 1e-12 <= image.min() <= image.max() <= highest + 1e-12


def test_a_flat_donor_is_only_shifted() -> None:
    assert np.array_equal(matched(np.full((2, 2), 3.0), (3.0, 0.0), (0.5, 0.2)), np.full((2, 2), 0.5))


def test_nothing_is_pasted_where_there_is_no_region() -> None:
    empty, some = np.zeros((4, 4), bool), np.ones((4, 4), bool)
    with pytest.raises(RegionError, match="no pixel"):
        box_of(empty)
    with pytest.raises(RegionError, match="no pixel"):
        scaled_donor(np.zeros((4, 4)), empty, box_of(some))
    with pytest.raises(RegionError, match="another size"):
        scaled_donor(np.zeros((4, 4, 3)), some, box_of(some))
    with pytest.raises(RegionError, match="feather"):
        alpha_of(some, box_of(some), float("nan"))
    assert residue(empty, some, np.ones((4, 4))) is None
