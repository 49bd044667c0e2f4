"""How often a test or a claim is made where nothing is there: one function a kind of question, one cell a shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from medground.metrics import permutation
from medground.metrics.bootstrap import Clusters
from medground.metrics.decide import Rule, decide_difference
from medground.metrics.differences import Difference, compare_aucs, compare_average_precisions, compare_means
from medground.metrics.spec import MetricSpec
from simulations.worlds import Ranked, Shape, dice, hits, pair

ALPHA = 0.05
DRAWS = 999  # exchanges a data set; another seed each time, so that no fixed set of them lends its own level
SPEC = MetricSpec(name="simulated", title="Simulated", family="rate")
NO_MARGIN = Rule(None, 2)  # the hardest test of the rule: any shown difference is a claim, from two patients on


@dataclass(frozen=True)
class Alarms:
    """What a cell came to.

    Attributes:
        question: what was tested.
        cell: the shape of the data, in words.
        limit: what the share of false alarms may be.
        sets: simulated data sets.
        alarms: share of p values (or claims) that say "there is something".
    """

    question: str
    cell: str
    limit: float
    sets: int
    alarms: float


def _claimed(difference: Difference) -> bool:
    return decide_difference(difference, SPEC, NO_MARGIN).direction != 0


def exchangeable(shape: Shape, kind: str, sets: int, rng: np.random.Generator) -> Alarms:
    """The p value of two models that may change places."""
    by = shape.clusters(rng)
    a, b = pair(rng, by, sets, shape.alike, 0.5)
    one, two = (dice(a, 0.4, 0.4), dice(b, 0.4, 0.4)) if kind == "dice" else (hits(a, 0.3), hits(b, 0.3))
    p = [compare_means(x, y, by, seed=i, draws=DRAWS).p or 1.0 for i, (x, y) in enumerate(zip(one, two, strict=True))]
    return Alarms("p, exchangeable", f"{shape} {kind}", 0.06, sets, float(np.mean(np.array(p) <= ALPHA)))


def skewed(patients: int, kind: str, sets: int, rng: np.random.Generator) -> Alarms:
    """A claim (p and interval) where the means are equal and the differences are not symmetric."""
    by = Clusters(np.arange(patients), patients)
    if kind == "one in ten loses":
        d = np.where(rng.random((sets, patients)) < 0.1, -0.45, 0.05)
    elif kind == "one in ten gains":
        d = np.where(rng.random((sets, patients)) < 0.1, 0.45, -0.05)
    elif kind == "one in three loses":
        d = np.where(rng.random((sets, patients)) < 1 / 3, -0.4, 0.2)
    else:
        d = 0.2 * (rng.exponential(1.0, (sets, patients)).clip(max=5) - _CLIPPED)
    base = np.full(patients, 0.5)
    claims = [
        _claimed(compare_means(base + row / 2, base - row / 2, by, seed=i, draws=DRAWS)) for i, row in enumerate(d)
    ]
    return Alarms("claim, equal means", f"{patients} patients, {kind}", 0.06, sets, float(np.mean(claims)))


_CLIPPED = float(1 - np.exp(-5))  # mean of an exponential variable cut at 5


def ranked(world: Ranked, equal: str, sets: int, rng: np.random.Generator, statistic: str) -> Alarms:
    """The p value of two rankings: exchangeable, or of equal AUC from other score distributions."""
    truth, by = world.layout(rng)
    other = world if equal == "exchangeable" else Ranked(*_shape(world), wider=2.0)
    a, b = pair(rng, by, sets, world.alike, 0.3)
    one, two, labels = world.scores(a, truth), other.scores(b, truth), truth.astype(float)
    compare = compare_aucs if statistic == "AUC" else compare_average_precisions
    p = [compare(labels, x, y, by, seed=i, draws=DRAWS).p or 1.0 for i, (x, y) in enumerate(zip(one, two, strict=True))]
    limit = 0.08 if equal != "exchangeable" and world.positives < 20 else 0.06
    return Alarms(f"p of {statistic}, {equal}", str(world), limit, sets, float(np.mean(np.array(p) <= ALPHA)))


def _shape(world: Ranked) -> tuple[Any, ...]:
    return world.positives, world.negatives, world.auc, world.items, world.alike


def families(classes: int, patients: int, each: int, kind: str, sets: int, rng: np.random.Generator) -> Alarms:
    """Any p of a family below .05 where no class differs, corrected by max-T or by Holm."""
    by = Clusters(np.tile(np.arange(patients), classes), patients)
    held = [rng.choice(patients, each, replace=False) for _ in range(classes)]
    a, b = pair(rng, by, sets, 0.3, 0.4)
    one, two = dice(a, 0.3, 0.4), dice(b, 0.3, 0.4)
    alarms = []
    for i in range(sets):
        made = []
        for c, who in enumerate(held):
            at = c * patients + who
            x, y = np.full(by.codes.size, np.nan), np.full(by.codes.size, np.nan)
            x[at], y[at] = one[i, at], two[i, at]
            made.append(compare_means(x, y, by, draws=DRAWS if kind == "Holm" else 0, seed=i))
        if kind == "Holm":
            p = permutation.holm_all([d.p or 1.0 for d in made])
        else:
            columns = np.stack([d.contribution for d in made if d.contribution is not None], axis=1)
            p = permutation.max_t(columns, i, DRAWS).p_family.tolist()
        alarms.append(min(p) <= ALPHA)
    cell = f"{classes} classes of {each} among {patients} patients"
    return Alarms(f"family, {kind}", cell, 0.065, sets, float(np.mean(alarms)))


def equivalence(patients: int, margin: float, spread: float, sets: int, rng: np.random.Generator) -> Alarms:
    """Say equivalent where the difference is exactly the margin."""
    by = Clusters(np.arange(patients), patients)
    d = (margin + spread * rng.uniform(-np.sqrt(3), np.sqrt(3), (sets, patients))).clip(-1, 1)
    rule = Rule(margin, 2)
    said = [decide_difference(compare_means((1 + row) / 2, (1 - row) / 2, by, draws=0), SPEC, rule).word for row in d]
    alike = float(np.mean([word == "equivalent" for word in said]))
    return Alarms("equivalent, at the margin", f"{patients} patients, margin {margin}, sd {spread}", 0.06, sets, alike)


def cells() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield (function, arguments) of every cell; sets and generator are appended."""
    for patients in (3, 5, 6, 8, 10, 14, 20, 35, 80, 300):
        for shape in (Shape(patients), Shape(patients, 0, 0.4)):
            for kind in ("hits", "dice"):
                yield exchangeable, (shape, kind)
    for patients in (4, 6, 8, 10, 14, 20, 35, 80, 200):
        for kind in ("one in ten loses", "one in ten gains", "one in three loses", "exponential"):
            yield skewed, (patients, kind)
    for positives, negatives in ((4, 20), (6, 40), (10, 30), (20, 60), (40, 120)):
        for auc in (0.6, 0.85):
            for equal in ("exchangeable", "other distributions"):
                yield _as(ranked, "AUC"), (Ranked(positives, negatives, auc, 0, 0.3), equal)
            yield _as(ranked, "AP"), (Ranked(positives, negatives, auc, 0, 0.3), "exchangeable")
    for classes, patients, each in ((8, 60, 12), (14, 80, 40), (21, 60, 10), (3, 12, 8)):
        for kind in ("max-T", "Holm"):
            yield families, (classes, patients, each, kind)
    for patients, margin, spread in ((20, 0.1, 0.2), (80, 0.1, 0.3), (150, 0.05, 0.2), (300, 0.02, 0.1)):
        yield equivalence, (patients, margin, spread)


@dataclass(frozen=True)
class _Bound:
    """A function with its last argument, so that it travels between processes."""

    function: Any
    statistic: str

    def __call__(self, *given: Any) -> Alarms:
        found: Alarms = self.function(*given, self.statistic)
        return found


def _as(function: Any, statistic: str) -> _Bound:
    return _Bound(function, statistic)
