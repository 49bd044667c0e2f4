"""A small part of ``make simulate``: the cells where other methods fail, with few data sets."""

import numpy as np
import pytest
from simulations import alarms, coverage
from simulations.gates import judge
from simulations.worlds import Ranked, Shape, dice, hidden, hits

SETS = 300


def noise(limit, sets=SETS):
    """Three standard errors above a share."""
    return limit + 3 * np.sqrt(limit * (1 - limit) / sets)


@pytest.mark.parametrize(
    "cell",
    [
        (coverage.rates, Shape(6), 0.17),
        (coverage.rates, Shape(29, 0, 0.5), 0.05),
        (coverage.rates, Shape(153), 0.0065),
        (coverage.overlaps, Shape(10, 0, 0.3), 0.6, 0.3),
        (coverage.differences, Shape(35), 0.1, 0.05, 0.0, "never"),
        (coverage.macros, (2, 6, 9, 40), (0.1, 0.2, 0.3, 0.5), True),
    ],
    ids=lambda cell: f"{cell[0].__name__} {cell[1]}",
)
def test_intervals_hold_the_truth(cell):
    function, *given = cell
    found = function(*given, SETS, np.random.default_rng(7))
    assert found.covered >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / SETS)
    assert found.width > 0


@pytest.mark.parametrize("statistic", ["AUC", "AP", "F1"])
def test_intervals_of_rankings_hold_the_truth(statistic):
    found = coverage.rankings(Ranked(10, 40, 0.9, 0, 0.3), SETS, np.random.default_rng(8), statistic)
    assert found.covered >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / SETS)


@pytest.mark.parametrize("patients", [3, 5, 10, 35])
def test_the_paired_test_of_dice_holds_its_level(patients):
    found = alarms.exchangeable(Shape(patients), "dice", SETS, np.random.default_rng(9))
    assert found.alarms <= noise(0.05)


def test_a_claim_holds_where_a_flip_alone_does_not():
    found = alarms.skewed(10, "one in ten loses", SETS, np.random.default_rng(10))
    assert found.alarms <= noise(0.05)


def test_families_hold_their_level():
    found = alarms.families(8, 30, 10, "max-T", 150, np.random.default_rng(11))
    assert found.alarms <= noise(0.05, 150)


def test_the_worlds_have_the_means_that_they_promise():
    rng = np.random.default_rng(12)
    by = Shape(200, 0, 0.4).clusters(rng)
    z = hidden(rng, by, 400, 0.4)
    assert hits(z, 0.17).mean() == pytest.approx(0.17, abs=0.01)
    assert dice(z, 0.6, 0.3).mean() == pytest.approx(0.12, abs=0.01)
    world = Ranked(2000, 8000, 0.8)
    truth, _ = world.layout(rng)
    scores = world.scores(rng.standard_normal((1, truth.size)), truth)[0]
    from medground.metrics.classification import auc, average_precision, f1

    assert auc(truth.astype(float), scores).value == pytest.approx(0.8, abs=0.02)
    assert average_precision(truth.astype(float), scores).value == pytest.approx(world.average_precision(0.2), abs=0.03)
    assert f1(truth.astype(float), scores, 0.5).value == pytest.approx(world.f1(0.2, 0.5), abs=0.03)


def test_a_gate_that_is_missed_is_said():
    low = coverage.Coverage("rate", "made up", False, 100, 0.90, 0.1, 1.0, 20)
    alarm = alarms.Alarms("p", "made up", 0.06, 100, 0.07)
    held = {gate.name: gate.held for gate in judge([low], [alarm])}
    assert not held["rate, lowest cell"]
    assert not held["p"]
    assert held["width of rates over Wilson's, 10 to 30 items"]
