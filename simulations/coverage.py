"""How often an interval holds the truth: one function a statistic, one cell a shape of data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from medground.metrics.bootstrap import Clusters
from medground.metrics.comparison import wilson
from medground.metrics.differences import compare_aucs, compare_average_precisions, compare_macros, compare_means
from medground.metrics.inference import (
    AUC,
    MACRO_RANKING,
    SHARE,
    Estimate,
    estimate,
    estimate_macro,
)
from medground.metrics.influence import of_auc, of_average_precision, of_f1, of_mean
from simulations.worlds import Floats, Ranked, Shape, dice, hidden, hits, pair


@dataclass(frozen=True)
class Coverage:
    """What a cell came to.

    Attributes:
        statistic: of what.
        cell: the shape of the data, in words.
        small: whether fewer than 10 patients (of either kind) stand behind it, or behind one of its classes.
        sets: simulated data sets.
        covered: share of intervals that hold the truth.
        width: mean width.
        relative: mean width over that of Wilson's interval with the true design effect; rates only.
        items: mean items a data set.
    """

    statistic: str
    cell: str
    small: bool
    sets: int
    covered: float
    width: float
    relative: float | None = None
    items: float = 0.0


def _counted(
    statistic: str, cell: object, small: bool, found: Iterable[tuple[Estimate, float]], reference: float | None = None
) -> Coverage:
    pairs = list(found)
    inside = [e.low is not None and e.high is not None and e.low <= t <= e.high for e, t in pairs]
    width = float(np.mean([(e.high or 0.0) - (e.low or 0.0) for e, _ in pairs]))
    relative = None if reference is None else width / reference
    items = float(np.mean([e.n for e, _ in pairs]))
    return Coverage(statistic, str(cell), small, len(pairs), float(np.mean(inside)), width, relative, items)


def rates(shape: Shape, rate: float, sets: int, rng: np.random.Generator) -> Coverage:
    """Rate of hits (pointing, accuracy)."""
    by = shape.clusters(rng)
    drawn = hits(hidden(rng, by, sets, shape.alike), rate)
    found = [(estimate(of_mean(row, by), SHARE), rate) for row in drawn]
    sizes = np.bincount(by.codes)
    # The true design effect: the correlation of two hits of one patient, by simulation of many pairs.
    alike = _correlation(rate, shape.alike)
    effect = 1 + (float((sizes**2).sum() / sizes.sum()) - 1) * alike
    n = by.codes.size / effect
    limits = [wilson_at(float(row.mean()), n) for row in drawn]
    reference = float(np.mean([high - low for low, high in limits]))
    return _counted("rate", (shape, rate), shape.patients < 10, found, reference)


def wilson_at(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share of n items, n not necessarily whole."""
    if n == int(n):
        return wilson(round(share * n), int(n)) or (0.0, 1.0)
    z = 1.959964
    centre, spread = (share + z * z / (2 * n)) / (1 + z * z / n), z / (1 + z * z / n)
    half = spread * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return float(centre - half), float(centre + half)


def _correlation(rate: float, alike: float) -> float:
    if not alike:
        return 0.0
    rng = np.random.default_rng(0)
    two = hits(hidden(rng, Clusters(np.zeros(2, dtype=np.int64), 1), 400_000, alike), rate)
    both = float((two[:, 0] * two[:, 1]).mean())
    return (both - rate**2) / (rate * (1 - rate))


def overlaps(shape: Shape, zeros: float, mean: float, sets: int, rng: np.random.Generator) -> Coverage:
    """Mean Dice with many zeros."""
    by = shape.clusters(rng)
    drawn = dice(hidden(rng, by, sets, shape.alike), zeros, mean)
    truth = (1 - zeros) * mean
    found = [(estimate(of_mean(row, by), SHARE), truth) for row in drawn]
    return _counted("Dice", (shape, zeros, mean), shape.patients < 10, found)


def rankings(world: Ranked, sets: int, rng: np.random.Generator, statistic: str) -> Coverage:
    """AUC, average precision or F1 of one score."""
    truth, by = world.layout(rng)
    scores = world.scores(hidden(rng, by, sets, world.alike), truth)
    labels, prevalence, cut = truth.astype(float), float(truth.mean()), 0.5
    if statistic == "AUC":
        found = [(estimate(of_auc(labels, row, by), AUC), world.auc) for row in scores]
    elif statistic == "AP":
        target = world.average_precision(prevalence)
        found = [(estimate(of_average_precision(labels, row, by), SHARE), target) for row in scores]
    else:
        target = world.f1(prevalence, cut)
        found = [(estimate(of_f1(labels, row > cut, by), SHARE), target) for row in scores]
    return _counted(statistic, world, min(world.positives, world.negatives) < 10, found)


def _classes(rng: np.random.Generator, sizes: Sequence[int], shared: bool) -> tuple[Clusters, list[Any]]:
    """Return one set of patients for all classes, and the items of each class."""
    people = max(sizes) if shared else sum(sizes)
    codes, masks, start = [], [], 0
    for size in sizes:
        own = rng.choice(people, size, replace=False) if shared else start + np.arange(size)
        start += 0 if shared else size
        codes.append(own)
    flat = np.concatenate(codes)
    ends = np.cumsum([0, *sizes])
    masks = [np.arange(ends[i], ends[i + 1]) for i in range(len(sizes))]
    return Clusters(flat.astype(np.int64), people), masks


def _only(row: Floats, mask: Any) -> Floats:
    kept = np.full(row.size, np.nan)
    kept[mask] = row[mask]
    return kept


def macros(sizes: Sequence[int], rates: Sequence[float], shared: bool, sets: int, rng: np.random.Generator) -> Coverage:
    """Macro mean of rates over classes, some with few patients."""
    by, masks = _classes(rng, sizes, shared)
    z = hidden(rng, by, sets, 0.3 if shared else 0.0)
    by_class = np.empty_like(z)
    for mask, rate in zip(masks, rates, strict=True):
        by_class[:, mask] = hits(z[:, mask], rate)
    truth = float(np.mean(rates))
    found = [(estimate_macro([of_mean(_only(row, mask), by) for mask in masks]), truth) for row in by_class]
    return _counted("macro mean", (sizes, rates, shared), min(sizes) < 10, found)


def macro_aucs(
    positives: Sequence[int], patients: int, aucs: Sequence[float], sets: int, rng: np.random.Generator
) -> Coverage:
    """Macro AUC over classes that share their patients."""
    by = Clusters(np.arange(patients), patients)
    truths = [np.isin(np.arange(patients), rng.choice(patients, m, replace=False)) for m in positives]
    worlds = [Ranked(m, patients - m, a) for m, a in zip(positives, aucs, strict=True)]
    common = hidden(rng, by, sets, 0.0)
    drawn = [
        w.scores(np.sqrt(0.3) * common + np.sqrt(0.7) * hidden(rng, by, sets, 0.0), t)
        for w, t in zip(worlds, truths, strict=True)
    ]
    target = float(np.mean(aucs))
    found = []
    for i in range(sets):
        parts = [of_auc(t.astype(float), d[i], by) for t, d in zip(truths, drawn, strict=True)]
        found.append((estimate_macro(parts, MACRO_RANKING), target))
    return _counted("macro AUC", (positives, patients, aucs), min(positives) < 10, found)


def differences(
    shape: Shape, first: float, second: float, close: float, kind: str, sets: int, rng: np.random.Generator
) -> Coverage:
    """Difference of two rates, or of two mean overlaps; ``kind`` never: the second only loses hits of the first."""
    by = shape.clusters(rng)
    a, b = pair(rng, by, sets, shape.alike, close)
    if kind == "dice":
        one, other = dice(a, 0.3, first), dice(b, 0.3, second)
        truth = 0.7 * (first - second)
    elif kind == "never":
        one = hits(a, first)
        other, truth = one * hits(b, second / first), first - second
        if close:
            raise ValueError("a model that only loses hits has nothing else in common")
    else:
        one, other, truth = hits(a, first), hits(b, second), first - second
    found = [(compare_means(x, y, by, draws=0), truth) for x, y in zip(one, other, strict=True)]
    cell = (shape, first, second, close, kind)
    return _counted("difference of means", cell, shape.patients < 10, found)


def ranking_differences(
    world: Ranked, other: float, close: float, sets: int, rng: np.random.Generator, statistic: str
) -> Coverage:
    """Difference of two AUC, or of two average precisions, on the same cases."""
    truth, by = world.layout(rng)
    rival = Ranked(world.positives, world.negatives, other, world.items, world.alike, world.wider)
    a, b = pair(rng, by, sets, world.alike, close)
    one, two, labels = world.scores(a, truth), rival.scores(b, truth), truth.astype(float)
    if statistic == "AUC":
        target, compare = world.auc - other, compare_aucs
    else:
        share = float(truth.mean())
        target, compare = world.average_precision(share) - rival.average_precision(share), compare_average_precisions
    found = [(compare(labels, x, y, by, draws=0), target) for x, y in zip(one, two, strict=True)]
    small = min(world.positives, world.negatives) < 10
    return _counted(f"difference of {statistic}", (world, other, close), small, found)


def macro_differences(sizes: Sequence[int], gap: float, shared: bool, sets: int, rng: np.random.Generator) -> Coverage:
    """Difference of two macro means."""
    by, masks = _classes(rng, sizes, shared)
    a, b = pair(rng, by, sets, 0.3 if shared else 0.0, 0.5)
    one, two = dice(a, 0.2, 0.5), dice(b, 0.2, 0.5 - gap)
    found = [
        (compare_macros([(of_mean(_only(x, m), by), of_mean(_only(y, m), by)) for m in masks], draws=0), 0.8 * gap)
        for x, y in zip(one, two, strict=True)
    ]
    return _counted("difference of macro means", (sizes, gap, shared), min(sizes) < 10, found)


Cells = Iterator[tuple[Any, tuple[Any, ...]]]
_SIDES = ((2, 20), (4, 50), (6, 12), (8, 200), (10, 10), (10, 100), (20, 60), (30, 300), (80, 90))
_FEW_CLASSES, _MANY_CLASSES = (2, 6, 9, 9, 15, 40, 90, 200), (20, 25, 30, 40, 60, 80, 100, 200)
_PAIRS = (
    (0.3, 0.3, 0.5, "hits"),
    (0.5, 0.3, 0.5, "hits"),
    (0.1, 0.02, 0.5, "hits"),
    (0.9, 0.7, 0.2, "hits"),
    (0.1, 0.05, 0.0, "never"),
    (0.3, 0.15, 0.0, "never"),
    (0.5, 0.5, 0.6, "dice"),
    (0.5, 0.35, 0.6, "dice"),
    (0.2, 0.15, 0.3, "dice"),
)


def cells() -> Cells:
    """Yield (function, arguments) of every cell; sets and generator are appended."""
    yield from _of_means()
    yield from _of_rankings()
    yield from _of_macros()
    yield from _of_differences()


def _of_means() -> Cells:
    for patients in (3, 6, 8, 10, 14, 20, 29, 50, 79, 153, 400, 1000):
        for shape in (Shape(patients), Shape(patients, 0), Shape(patients, 0, 0.2), Shape(patients, 0, 0.5)):
            for rate in (0.0065, 0.02, 0.05, 0.1, 0.17, 0.3, 0.5, 0.7, 0.9):
                yield rates, (shape, rate)
        if patients <= 400:
            for shape in (Shape(patients), Shape(patients, 0, 0.3)):
                for zeros, mean in ((0.0, 0.15), (0.0, 0.5), (0.0, 0.85), (0.3, 0.4), (0.6, 0.3), (0.8, 0.5)):
                    yield overlaps, (shape, zeros, mean)


def _of_rankings() -> Cells:
    for (positives, negatives), auc in product(_SIDES, (0.5, 0.65, 0.8, 0.9, 0.97)):
        for items, alike in ((1, 0.0), (0, 0.3), (0, 0.5)):
            for statistic in ("AUC", "AP", "F1"):
                yield _as(rankings, statistic), (Ranked(positives, negatives, auc, items, alike),)


def _of_macros() -> Cells:
    shapes = (_FEW_CLASSES, _MANY_CLASSES, (1, 3, 5, 12), (10, 12, 15, 20), (6,) * 14, (30,) * 21)
    for shared, sizes, level in product((False, True), shapes, (0.05, 0.2, 0.5)):
        spread = np.clip(np.linspace(level / 2, 1.5 * level, len(sizes)), 0.01, 0.99)
        yield macros, (sizes, tuple(spread.tolist()), shared)
    for counts, auc in product(((4, 8, 15, 40), (10, 12, 20, 60), (20, 30, 60, 120)), (0.6, 0.8, 0.93)):
        yield macro_aucs, (counts, 250, (auc,) * 4)


def _of_differences() -> Cells:
    for patients in (3, 6, 8, 10, 14, 20, 35, 80, 200):
        for shape, case in product((Shape(patients), Shape(patients, 0, 0.4)), _PAIRS):
            yield differences, (shape, *case)
    sides = ((4, 30), (8, 80), (10, 20), (15, 100), (40, 200))
    for (positives, negatives), (one, other) in product(sides, ((0.7, 0.7), (0.85, 0.75), (0.95, 0.9))):
        for close, statistic in product((0.3, 0.8), ("AUC", "AP")):
            yield _as(ranking_differences, statistic), (Ranked(positives, negatives, one, 0, 0.3), other, close)
    shapes = ((10, 12, 15, 20), (20, 30, 60, 120), _FEW_CLASSES)
    for sizes, gap, shared in product(shapes, (0.0, 0.1), (False, True)):
        yield macro_differences, (sizes, gap, shared)


@dataclass(frozen=True)
class _Bound:
    """A function with its last argument, so that it travels between processes."""

    function: Any
    statistic: str

    def __call__(self, *given: Any) -> Coverage:
        found: Coverage = self.function(*given, self.statistic)
        return found


def _as(function: Any, statistic: str) -> _Bound:
    return _Bound(function, statistic)
