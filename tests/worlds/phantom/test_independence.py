"""Two facts must never come from one number: every pair is independent, but for those that are meant to depend."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from medground.worlds.phantom.scene import POPULATIONS, Population, _drawn_findings, make_scene
from medground.worlds.phantom.shapes import WEDGE
from medground.worlds.phantom.streams import FINDINGS, TASKS, stream
from medground.worlds.phantom.values import task_facts

from .scene_facts import scene_facts

CASES: Final = 500
SEED: Final = 31
LEVEL: Final = 0.01
"""Chance of one false alarm among all pairs of a population, by Bonferroni."""

FREE: Final = ("Mass", "Nodule", "Pneumonia")
"""Findings that may lie in any third."""


class Meant(NamedTuple):
    """Two patterns of names whose facts are meant to depend on each other, and why."""

    one: str
    other: str
    why: str


ALWAYS: Final = (
    Meant("right clavicle, *", "left clavicle, *", "both hang from one height of the shoulders"),
    Meant("*: height", "*: across", "of one lesion: a lung is narrower at its top"),
    Meant("Pneumonia: size", "Pneumonia: other size", "a consolidation is about as high as wide"),
)
DEPENDENT: Final[Mapping[Population, tuple[Meant, ...]]] = {
    "default": (
        *ALWAYS,
        Meant("has * edge", "has * edge", "one coin says whether a picture is collimated at all"),
    ),
    "tasks": (
        *ALWAYS,
        Meant("cardiomegaly", "has Cardiomegaly", "the finding is the task's label"),
        Meant("inclusion", "* edge", "half of the cuts are made by a collimator that has come too far in"),
    ),
}

FOLLOWS_VIEW: Final[Mapping[Population, Mapping[str, str]]] = {
    "default": {
        "turn": "patients in bed lie less straight",
        "right dome": "they breathe in less",
        "heart width": "a heart far from the detector is magnified",
        "clavicle rise": "the tube stands lower",
        "photons": "portable tubes are weaker",
        "scatter": "and have no grid",
        "fog": "so dark parts are lighter",
        "portable": "the word is written on portable pictures alone",
        "has lead": "patients in bed are monitored",
    },
    "tasks": {
        "turn": "as above",
        "clavicle rise": "as above",
        "photons": "as above",
        "scatter": "as above",
        "fog": "as above",
        "projection": "it is the view, by definition",
        "mediastinal_widening": "its threshold follows the view, and labels are balanced within each",
        "cardiomegaly": "likewise",
    },
}
"""Population -> what depends on the view, and why. All other pairs are held within each view."""

LEFT_OUT: Final[Mapping[Population, Mapping[str, str]]] = {
    "default": dict.fromkeys(TASKS, "there a value is measured on the anatomy, whose own numbers are held"),
    "tasks": {
        "right dome": "solved for inspiration",
        "rib spacing": "solved for inspiration",
        "anterior spacing": "a ratio to the rib spacing",
        "heart width": "a usual heart's, given as a share of the cage",
        "* inner border, high": "solved for the mediastinum",
        "knob across": "solved for the knob",
        "knob radius": "solved for the knob",
        "descending width": "solved for the descending aorta",
        "scale": "solved for the inclusion",
        "shift *": "solved for the inclusion",
    },
}
"""Population -> facts that are solved for others, and for which."""


@cache
def drawn(population: Population) -> dict[str, NDArray[np.float64]]:
    """Fact -> its value in every case."""
    rows = [scene_facts(SEED, case, population) for case in range(CASES)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def classes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Up to four values as they are, more as thirds of their range; -1 for none."""
    there = ~np.isnan(values)
    distinct = np.unique(values[there])
    cuts = distinct[1:] if len(distinct) <= 4 else np.quantile(values[there], [1 / 3, 2 / 3])
    return np.where(there, np.searchsorted(cuts, values, side="right"), -1)


def g_statistic(tables: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """G and degrees of freedom of contingency tables ``(..., k, l)``; classes that do not occur do not count."""
    rows, columns = tables.sum(-1, keepdims=True), tables.sum(-2, keepdims=True)
    expected = rows * columns / np.maximum(rows.sum(-2, keepdims=True), 1)
    terms = np.where(tables > 0, tables * np.log(np.where(tables > 0, tables / np.maximum(expected, 1e-12), 1.0)), 0.0)
    degrees = ((rows > 0).sum((-2, -1)) - 1).clip(0) * ((columns > 0).sum((-2, -1)) - 1).clip(0)
    return 2 * terms.sum((-2, -1)), degrees.astype(float)


def p_values(facts: Mapping[str, NDArray[np.float64]], strata: NDArray[np.int64]) -> NDArray[np.float64]:
    """G-test of all pairs of facts within strata, ``(n, n)``; 1 where a pair cannot be held."""
    g = degrees = np.zeros((len(facts), len(facts)))
    for stratum in np.unique(strata):
        inside = strata == stratum
        labels = np.array([classes(values[inside]) for values in facts.values()])
        hot = (labels[:, :, None] == np.arange(4)).transpose(0, 2, 1).reshape(-1, inside.sum()).astype(float)
        tables = (hot @ hot.T).reshape(len(facts), 4, len(facts), 4).transpose(0, 2, 1, 3)
        more, further = g_statistic(tables)
        g, degrees = g + more, degrees + further
    return np.where(degrees > 0, chi2.sf(g, np.maximum(degrees, 1)), 1.0)


def struck(facts: Mapping[str, NDArray[np.float64]], strata: NDArray[np.int64]) -> dict[tuple[str, str], float]:
    """Pairs that depend, the family of all pairs being held at LEVEL, with their p-values."""
    names, p = list(facts), p_values(facts, strata)
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    return {(names[j], names[i]): float(p[i, j]) for i, j in pairs if p[i, j] * len(pairs) < LEVEL}


def view(population: Population) -> NDArray[np.int64]:
    return drawn(population)["view"].astype(int)


def held(population: Population) -> dict[str, NDArray[np.float64]]:
    """The facts that are held against each other."""
    out = LEFT_OUT[population]
    facts = {name: v for name, v in drawn(population).items() if not any(fnmatchcase(name, x) for x in out)}
    del facts["view"]
    return {name: values for name, values in facts.items() if len(np.unique(values[~np.isnan(values)])) > 1}


def matches(pair: tuple[str, str], meant: Meant) -> bool:
    """Whether a rule speaks of a pair, either way round."""
    ways = ((pair[0], pair[1]), (pair[1], pair[0]))
    one_lesion = ": " not in meant.one or pair[0].partition(":")[0] == pair[1].partition(":")[0]
    return one_lesion and any(fnmatchcase(a, meant.one) and fnmatchcase(b, meant.other) for a, b in ways)


@pytest.mark.parametrize("population", POPULATIONS)
def test_every_pair_of_facts_is_independent(population: Population) -> None:
    facts = held(population)
    assert len(facts) > 120
    found = struck(facts, view(population))
    assert {pair: p for pair, p in found.items() if not any(matches(pair, m) for m in DEPENDENT[population])} == {}


@pytest.mark.parametrize("population", POPULATIONS)
def test_every_pair_that_is_meant_to_depend_does(population: Population) -> None:
    """A rule that strikes nothing any more would only hide a new fault."""
    facts = held(population)
    names, p = list(facts), p_values(facts, view(population))
    pairs = {(names[j], names[i]): float(p[i, j]) for i in range(len(names)) for j in range(i)}
    for meant in DEPENDENT[population]:
        assert min(value for pair, value in pairs.items() if matches(pair, meant)) < 1e-3, meant


@pytest.mark.parametrize("population", POPULATIONS)
def test_the_view_tells_of_nothing_but_what_follows_it(population: Population) -> None:
    found = {b if a == "view" else a for a, b in struck(drawn(population), np.zeros(CASES, int)) if "view" in (a, b)}
    follows, out = FOLLOWS_VIEW[population], LEFT_OUT[population]
    assert {name for name in found - set(follows) if not any(fnmatchcase(name, x) for x in out)} == set()


def test_facts_that_are_shuffled_raise_no_alarm_and_one_number_for_two_raises_it() -> None:
    rng = np.random.default_rng(0)
    facts = {name: rng.permutation(values) for name, values in held("default").items()}
    assert struck(facts, view("default")) == {}
    # The fault of the first drawing: the side was the first number of the stream that the height came from.
    number = rng.random(CASES)
    facts |= {"side": (number < 0.5).astype(float), "height": 0.2 + 0.7 * number}
    assert set(struck(facts, view("default"))) == {("side", "height")}


def test_the_statistic_is_that_of_a_table_counted_by_hand() -> None:
    table = np.array([[30.0, 10.0], [20.0, 40.0]])
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    by_hand = 2 * sum(table[i, j] * np.log(table[i, j] / expected[i, j]) for i in (0, 1) for j in (0, 1))
    padded = np.zeros((4, 4))
    padded[:2, 1:3] = table
    g, degrees = g_statistic(padded)
    assert (float(g), float(degrees)) == pytest.approx((by_hand, 1.0))


@pytest.mark.parametrize("finding", FREE)
def test_every_side_and_third_is_filled(finding: str) -> None:
    table = np.zeros((2, 3), int)
    for case in range(400):
        scene = make_scene(99, case, [finding])
        lesion = scene.lesions[finding][0]
        top, peak = scene.anatomy.apex, scene.anatomy.dome_peaks[lesion.side]
        table[lesion.side, min(int(3 * (lesion.y - top) / (peak - top)), 2)] += 1
    assert table.min() >= 20


@pytest.mark.parametrize("finding", ["Atelectasis", "Infiltration"])
def test_every_side_and_third_that_a_finding_may_take_is_filled(finding: str) -> None:
    """Plates lie in the lower half, clouds below the apex: no upper third."""
    table = np.zeros((2, 3), int)
    for case in range(400):
        scene = make_scene(99, case, [finding])
        for lesion in scene.lesions[finding]:
            if lesion.kind != WEDGE:
                top, peak = scene.anatomy.apex, scene.anatomy.dome_peaks[lesion.side]
                table[lesion.side, min(int(3 * (lesion.y - top) / (peak - top)), 2)] += 1
    assert table[:, 1:].min() >= 20


def test_findings_depend_on_each_other_by_their_number_alone() -> None:
    def present(case: int) -> list[str]:
        return _drawn_findings(stream(3, case, "truth"), FINDINGS)

    table = np.array([[finding in present(case) for finding in FINDINGS] for case in range(600)])
    assert np.allclose(table.mean(0), 1.25 / 8, atol=0.05)
    correlation = np.corrcoef(table.T)[~np.eye(len(FINDINGS), dtype=bool)]
    assert np.abs(correlation).max() < 0.17
    assert abs(correlation.mean()) < 0.06


def test_labels_of_the_tasks_are_balanced_within_each_view() -> None:
    scenes = [make_scene(SEED, case, population="tasks") for case in range(CASES)]
    views = np.array([scene.view == "AP" for scene in scenes])
    facts = [task_facts(scene) for scene in scenes]
    for task in TASKS:
        labels = np.array([-1 if fact[task].label is None else fact[task].label for fact in facts])
        if task == "projection":
            assert np.array_equal(labels == 1, views)
            continue
        for seen in (views, ~views, np.ones(CASES, bool)):
            kept = (labels >= 0) & seen
            assert abs(labels[kept].mean() - 0.5) < max(0.1, 1.5 / np.sqrt(kept.sum())), task
