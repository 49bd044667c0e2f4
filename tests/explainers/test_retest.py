"""One scene in twenty is explained twice, and how alike the maps are is kept."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from medground.explainers.base import Attribution
from medground.explainers.retest import EVERY, IMAGE, TEXT, agreement, explained


class Noisy:
    """Returns noise of its seed, and words that never change."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.calls = 0

    def explain(self, pool: object, index: int) -> Attribution:
        self.calls += 1
        rng = np.random.default_rng([self.seed, index])
        return Attribution(rng.normal(size=(30, 30)), np.arange(4.0), 0, extras={"own": 1.0})


def test_another_seed_shows_what_is_noise() -> None:
    found = explained(Noisy(), SimpleNamespace(), 0)
    assert abs(found.extras[IMAGE]) < 0.2
    assert found.extras[TEXT] == pytest.approx(1.0)
    assert found.extras["own"] == 1.0
    np.testing.assert_array_equal(found.image, Noisy().explain(None, 0).image)


def test_most_scenes_are_explained_once() -> None:
    explainer = Noisy()
    found = [explained(explainer, SimpleNamespace(), i) for i in range(2 * EVERY)]
    assert sum(IMAGE in f.extras for f in found) == 2
    assert explainer.seed == 0


def test_an_explainer_without_a_seed_is_asked_again_as_it_is() -> None:
    class Drifting:
        turn = 0

        def explain(self, pool: object, index: int) -> Attribution:
            Drifting.turn += 1
            return Attribution(np.random.default_rng(Drifting.turn).normal(size=(30, 30)), None, 0)

    found = explained(Drifting(), SimpleNamespace(), 0)
    assert abs(found.extras[IMAGE]) < 0.2
    assert TEXT not in found.extras


def test_maps_that_cannot_be_held_together_have_no_agreement() -> None:
    assert agreement(None, [1.0]) is None
    assert agreement([1.0, np.nan], [1.0, 2.0]) is None
    assert agreement([1.0, 2.0], [1.0, 2.0, 3.0]) is None
    assert agreement([1.0, 2.0], [2.0, 1.0]) == pytest.approx(-1)
