"""Poisson cloning: exact on gradients, silent outside, bleeding at the edge."""

from __future__ import annotations

import numpy as np
import pytest

from medground.imaging.cloning import cloned
from medground.imaging.pasting import box_of


@pytest.fixture
def disc() -> np.ndarray:
    y, x = np.mgrid[:20, :24]
    return (x - 11) ** 2 + (y - 9) ** 2 < 36


def test_the_own_region_comes_back(disc: np.ndarray) -> None:
    target = np.random.default_rng(0).random((20, 24))
    x0, y0, x1, y1 = box = box_of(disc)
    assert np.allclose(cloned(target, target[y0:y1, x0:x1], disc, box), target, atol=1e-9)


def test_a_shifted_donor_leaves_no_trace(disc: np.ndarray) -> None:
    target = np.random.default_rng(1).random((20, 24))
    x0, y0, x1, y1 = box = box_of(disc)
    inner = np.zeros_like(disc)
    inner[y0 + 1 : y1 - 1, x0 + 1 : x1 - 1] = disc[y0 + 1 : y1 - 1, x0 + 1 : x1 - 1]
    assert np.allclose(cloned(target, target[y0:y1, x0:x1] + 5, inner, box), target, atol=1e-9)


def test_a_flat_donor_gives_the_harmonic_filling(disc: np.ndarray) -> None:
    y, x = np.mgrid[:20, :24]
    ramp = 0.5 * x + 0.25 * y
    box = box_of(disc)
    flat = np.zeros((box[3] - box[1], box[2] - box[0]))
    assert np.allclose(cloned(ramp, flat, disc, box), ramp, atol=1e-9)  # a ramp is harmonic


def test_nothing_outside_changes(disc: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    target, box = rng.random((20, 24)), box_of(disc)
    block = rng.random((box[3] - box[1], box[2] - box[0]))
    image = cloned(target, block, disc, box)
    assert np.array_equal(image[~disc], target[~disc])
    assert not np.allclose(image[disc], target[disc])


def test_without_an_edge_the_mean_is_kept() -> None:
    target, block = np.full((4, 5), 0.5), np.random.default_rng(3).random((4, 5))
    image = cloned(target, block, np.ones((4, 5), bool), (0, 0, 5, 4))
    assert np.allclose(image - image.mean(), block - block.mean())
    assert image.mean() == pytest.approx(0.5)


def test_an_empty_support_changes_nothing() -> None:
    target = np.eye(4)
    assert np.array_equal(cloned(target, np.zeros((4, 4)), np.zeros((4, 4), bool), (0, 0, 4, 4)), target)
