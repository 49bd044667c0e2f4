"""Kappa with its interval against resampled dialogues; the majority of several; alpha against its definition."""

import itertools

import numpy as np
import pytest

from medground.metrics.agreement import agreement, alpha, estimate_kappa, majority
from medground.metrics.bootstrap import clusters


def judged(dialogues=80, turns=5, seed=3):
    """Two judges that agree on four turns of five, and on whole dialogues more than on their turns."""
    rng = np.random.default_rng(seed)
    truth = rng.random((dialogues, 1)) < rng.random((dialogues, turns))
    second = np.where(rng.random(truth.shape) < 0.2, ~truth, truth)
    names = np.repeat(np.arange(dialogues), turns).tolist()
    return truth.ravel().astype(int).tolist(), second.ravel().astype(int).tolist(), names


def test_the_interval_of_kappa_is_that_of_resampled_dialogues():
    first, second, names = judged()
    got = estimate_kappa(first, second, clusters(names))
    a, b = np.array(first).reshape(80, 5), np.array(second).reshape(80, 5)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        who = rng.integers(80, size=80)
        drawn.append(agreement(a[who].ravel().tolist(), b[who].ravel().tolist(), [0, 1]).kappa)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert got.value == pytest.approx(agreement(first, second).kappa)
    assert got.low == pytest.approx(low, abs=0.02)
    assert got.high == pytest.approx(high, abs=0.02)


def test_kappa_is_undefined_with_its_reason():
    assert estimate_kappa([1, 1], [1, 1], clusters(["a", "b"])).reason == "both always say the same"
    nobody = estimate_kappa([None, 1], [1, None], clusters(["a", "b"]))
    assert (nobody.value, nobody.n, nobody.n_undefined) == (None, 0, 2)


def test_alpha_by_its_definition():
    rng = np.random.default_rng(5)
    units = [[int(rng.integers(2)) if rng.random() < 0.8 else None for _ in range(3)] for _ in range(40)]
    pairs = []
    for unit in units:
        read = [word for word in unit if word is not None]
        pairs += [(x, y, 1 / (len(read) - 1)) for x, y in itertools.permutations(read, 2)] if len(read) > 1 else []
    pool = [word for unit in units if sum(w is not None for w in unit) > 1 for word in unit if word is not None]
    seen = sum(weight for x, y, weight in pairs if x != y) / len(pool)
    chance = sum(x != y for x, y in itertools.permutations(pool, 2)) / (len(pool) * (len(pool) - 1))
    assert alpha(list(zip(*units, strict=True))) == pytest.approx(1 - seen / chance)


def test_a_tie_is_nobodys_majority():
    assert majority([0, 0, 1]) == 0
    assert majority([0, 1, None]) is None
    assert majority([None, None]) is None
