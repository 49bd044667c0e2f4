"""Where a finding usually lies covers it better than marking everything: whoever does not look gets no yes for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.xbench.claims import ClaimResult, grounding_claims, weakest
from medground.benchmarks.xbench.grounding import How
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.prior import enlarged
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.benchmarks.xbench.specs import specs
from medground.datasets.base import Case
from medground.imaging.regions import Region
from medground.metrics.decide import DEFAULTS, Decision
from medground.metrics.folds import patient_folds
from medground.models.baselines.baseline_class_prior import GRID, ClassPrior

PROTOCOL = resolve_protocol({"base": "xbench", "grid": [28, 28], "name": "small"})
FINDINGS = ("Low", "High")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Two findings, each about its own place: a map that never looks can do well."""
    rng = np.random.default_rng(4)
    made = []
    for i in range(60):
        x, y = rng.integers(2, 7, 2).tolist()
        low = Region.from_boxes((28, 28), [(x, y, x + 8, y + 8)])
        high = Region.from_boxes((28, 28), [(x + 10, y + 10, x + 16, y + 17)])
        made.append(Case(f"c{i}", Path("x.png"), f"p{i // 2}", regions={"Low": low, "High": high}))
    return made


def claims(cases: list[Case], maps) -> dict[str, ClaimResult]:
    rows = rows_from_maps(cases, FINDINGS, lambda c, f: ScoredMap(maps(c, f)), PROTOCOL)
    known = {spec.name: spec for spec in specs(PROTOCOL)}
    return grounding_claims(Pairs.of(rows, PROTOCOL), FINDINGS, DEFAULTS, How(), known)


@pytest.fixture(scope="module")
def prior(cases: list[Case]) -> ClassPrior:
    model = ClassPrior()
    model.fit(cases, FINDINGS)
    return model


def test_the_region_of_the_prior_is_the_cut_with_the_largest_mean_dice(cases: list[Case], prior: ClassPrior) -> None:
    fold = patient_folds([case.patient_id or "" for case in cases])
    for own in (0, 1):
        case = cases[fold.tolist().index(own)]
        others = [c.regions["Low"].mask_at((GRID, GRID)) for c, f in zip(cases, fold, strict=True) if f != own]
        mean = np.mean(others, axis=0)
        best, best_dice = None, -1.0
        for k in range(101):
            cut = mean.astype(np.float32) >= k / 100 * mean.astype(np.float32).max()
            dice = float(np.mean([2 * (cut & m).sum() / (cut.sum() + m.sum()) for m in others]))
            if dice > best_dice + 1e-12:
                best, best_dice = cut, dice
        np.testing.assert_array_equal(prior.region_for(case.case_id, "Low"), best)


def test_rows_hold_what_the_region_of_the_prior_covers(cases: list[Case], prior: ClassPrior) -> None:
    rows = rows_from_maps(cases, FINDINGS, lambda *_: ScoredMap(np.ones((2, 2))), PROTOCOL)
    pairs = Pairs.of(rows, PROTOCOL)
    for row, dice in zip(rows.iter_rows(named=True), pairs.prior[0], strict=True):
        case = next(c for c in cases if c.case_id == row["case_id"])
        truth = case.regions[row["finding"]].mask_at((28, 28))
        chosen = prior.region_for(case.case_id, row["finding"])[2::4, 2::4]  # the cell that holds a pixel's centre
        assert row["prior_selected"] == chosen.sum()
        assert dice == pytest.approx(2 * (chosen & truth).sum() / (chosen.sum() + truth.sum()))


@pytest.mark.parametrize("size", [(7, 5), (112, 112), (300, 200)])
def test_a_region_is_enlarged_by_the_cell_under_each_centre(size: tuple[int, int]) -> None:
    region = np.random.default_rng(0).random((GRID, GRID)) < 0.4
    got = enlarged(region, size)
    assert got.shape == size[::-1]
    for row in range(0, size[1], 3):
        for col in range(0, size[0], 3):
            cell = int((row + 0.5) * GRID / size[1]), int((col + 0.5) * GRID / size[0])
            assert got[row, col] == region[cell]


def test_nobody_who_does_not_look_covers_the_finding(cases: list[Case], prior: ClassPrior) -> None:
    mean = {f: np.mean([c.regions[f].mask_at((28, 28)) for c in cases], axis=0) for f in FINDINGS}
    for blind in (prior.map_for, lambda _, f: mean[f], lambda *_: np.ones((4, 4))):
        told = claims(cases, blind)
        assert {told["overlaps"].answer, told["points"].answer} <= {"no", "cannot be told"}
    looking = claims(cases, lambda c, f: next(x for x in cases if x.case_id == c).regions[f].mask_at((28, 28)))
    assert looking["overlaps"].answer == "yes"


def test_a_constant_map_does_beat_marking_everything(cases: list[Case], prior: ClassPrior) -> None:
    rows = rows_from_maps(cases, FINDINGS, lambda c, f: ScoredMap(prior.map_for(c, f)), PROTOCOL)
    old = rows.drop("prior_selected", "prior_inside")
    known = {spec.name: spec for spec in specs(PROTOCOL)}
    held = grounding_claims(Pairs.of(old, PROTOCOL), FINDINGS, DEFAULTS, How(), known)["overlaps"]
    assert held.whole.word == "better", "rows of an older run have no such floor"


def test_of_several_floors_the_hardest_decides() -> None:
    words = ("better", "cannot be told", "equivalent", "worse")
    made = {word: Decision(word, word) for word in words}
    for i, first in enumerate(words):
        for j, second in enumerate(words):
            joined = weakest(
                [ClaimResult(made[first], {"a": made[second]}), ClaimResult(made[second], {"a": made["better"]})]
            )
            assert joined.whole.word == words[max(i, j)]
            assert joined.by_class["a"].word == second
