"""Two facts must never come from one number: every pair is independent, but for those that are meant to depend."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from medground.worlds.phantom.findings import WEDGE
from medground.worlds.phantom.scene import _drawn_findings, make_scene
from medground.worlds.phantom.streams import FINDINGS, TASKS, stream
from medground.worlds.phantom.values import task_facts

CASES = 400

FREE = ("Mass", "Nodule", "Pneumonia")
"""Findings that may lie in any third."""


def information(one: np.ndarray, other: np.ndarray) -> float:
    """Mutual information of two labels, nats; 2 n of it is about chi-squared when they are independent."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    table /= table.sum()
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True)
    there = table > 0
    return float((table[there] * np.log(table[there] / expected[there])).sum())


def noise(one: np.ndarray, other: np.ndarray) -> float:
    """Bound that independent labels exceed about once in 10,000 pairs."""
    degrees = (len(np.unique(one)) - 1) * (len(np.unique(other)) - 1)
    return (degrees + 4 * np.sqrt(2 * degrees) + 8) / (2 * len(one))


@cache
def places(finding: str) -> dict[str, np.ndarray]:
    """Side, third, place across, size, view of one finding over many cases."""
    rows = []
    for case in range(CASES):
        scene = make_scene(99, case, [finding])
        lesion = scene.lesions[finding][0]
        if lesion.kind == WEDGE:
            continue
        top, peak = scene.anatomy.apex, scene.anatomy.dome_peaks[lesion.side]
        third = min(int(3 * (lesion.y - top) / (peak - top)), 2)
        rows.append(
            (lesion.side, third, abs(lesion.x), lesion.a, lesion.amount, scene.view == "AP", scene.anatomy.knob[0])
        )
    side, third, across, size, amount, view, knob = map(np.array, zip(*rows, strict=True))
    halves = {
        name: (values > np.median(values)).astype(int)
        for name, values in (("across", across), ("size", size), ("amount", amount), ("knob", knob))
    }
    return {"side": side, "third": third, "view": view.astype(int), **halves}


@pytest.mark.parametrize("finding", FREE)
def test_every_side_and_third_is_filled(finding: str) -> None:
    drawn = places(finding)
    table = np.zeros((2, 3), int)
    np.add.at(table, (drawn["side"], drawn["third"]), 1)
    assert table.min() >= 20


@pytest.mark.parametrize("finding", [*FREE, "Infiltration", "Atelectasis"])
def test_side_tells_nothing_of_height_or_anything_else(finding: str) -> None:
    drawn = places(finding)
    # How far a lesion lies from the midline depends on the height, for the lung is narrower at its top; a wide one
    # keeps away from the borders; and high domes (AP) leave less room below.
    dependent = {("across", "third"), ("across", "size"), ("size", "third"), ("third", "view"), ("amount", "size")}
    for one, other in itertools.combinations(sorted(drawn), 2):
        if (one, other) not in dependent:
            assert information(drawn[one], drawn[other]) < noise(drawn[one], drawn[other]), (finding, one, other)


def test_findings_depend_on_each_other_by_their_number_alone() -> None:
    def drawn(case: int) -> list[str]:
        return _drawn_findings(stream(3, case, "truth"), FINDINGS)

    present = np.array([[finding in drawn(case) for finding in FINDINGS] for case in range(600)])
    assert np.allclose(present.mean(0), 1.25 / 8, atol=0.05)
    correlation = np.corrcoef(present.T)[~np.eye(len(FINDINGS), dtype=bool)]
    assert np.abs(correlation).max() < 0.17
    assert abs(correlation.mean()) < 0.06


@cache
def labels() -> dict[str, np.ndarray]:
    """Labels of the twelve tasks, view, findings and devices of the population ``tasks``; -1 for unsayable."""
    rows = []
    for case in range(CASES):
        scene = make_scene(31, case, population="tasks")
        row = {task: -1 if fact.label is None else fact.label for task, fact in task_facts(scene).items()}
        row |= {finding: int(finding in scene.findings) for finding in FINDINGS}
        row |= {kind: int(any(d.kind == kind for d in scene.devices)) for kind in ("lead", "tube", "line", "pacemaker")}
        rows.append({**row, "view": int(scene.view == "AP")})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_labels_of_the_tasks_are_balanced_within_each_view() -> None:
    drawn = labels()
    for task in TASKS:
        if task == "projection":
            assert np.array_equal(drawn[task] == 1, drawn["view"] == 1)
            continue
        for view in (0, 1, None):
            kept = (drawn[task] >= 0) & ((drawn["view"] == view) if view is not None else True)
            share, spread = drawn[task][kept].mean(), 1.5 / np.sqrt(kept.sum())
            assert abs(share - 0.5) < max(0.1, spread), (task, view, share)


def test_no_task_tells_of_another_of_the_view_or_of_a_finding() -> None:
    drawn = labels()
    # By definition: the view is the projection, an enlarged heart is the finding, and a lung cut at the side has no
    # width to hold a heart against.
    dependent = {
        frozenset(("projection", "view")),
        frozenset(("cardiomegaly", "Cardiomegaly")),
        frozenset(("cardiomegaly", "inclusion")),
    }
    for one, other in itertools.combinations(drawn, 2):
        if frozenset((one, other)) in dependent or (one in FINDINGS and other in FINDINGS):
            continue
        kept = (drawn[one] >= 0) & (drawn[other] >= 0)
        a, b = drawn[one][kept], drawn[other][kept]
        assert information(a, b) < noise(a, b), (one, other)
