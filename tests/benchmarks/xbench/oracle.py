"""Every cell of a summary again, by slow plain code that shares nothing with it but the enlarging of a map.

One dictionary a (case, finding), Python loops, and the formulas as they are written down in the documentation.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta

from medground.imaging.geometry import upsample

STEPS = 101
EDGES = (0.01, 0.05, 0.15)
GRID = 112
NAN = float("nan")
Item = dict[str, Any]


def folds(patients: Sequence[str], seed: int = 0) -> list[int]:
    order = sorted(set(patients), key=lambda p: hashlib.sha256(f"{seed}:{p}".encode()).hexdigest())
    return [order.index(p) % 2 for p in patients]


def pairs_of(cases: Sequence[Any], findings: Sequence[str], maps: Callable[[str, str], Any], size: int) -> list[Item]:
    """Measure every localised pair under protocol xbench on a square grid.

    Args:
        cases: of the dataset.
        findings: classes in order.
        maps: (case, finding) -> map, None where there is none, or "failed".
        size: of the grid.
    """
    fold = dict(
        zip((c.case_id for c in cases), folds([c.patient_id or f"case {c.case_id}" for c in cases]), strict=True)
    )
    priors = {(f, own): _prior(cases, f, own, fold, size) for f in findings for own in (0, 1)}
    items = []
    for case in cases:
        for finding in findings:
            if finding not in case.regions:
                continue
            region = case.regions[finding]
            truth = region.mask_at((size, size))
            item: Item = {
                "case": case.case_id,
                "finding": finding,
                "patient": case.patient_id or f"case {case.case_id}",
                "view": case.view or "unknown",
                "share": region.area / (region.frame[0] * region.frame[1]),
                "state": "ok",
                "curves": None,
            }
            items.append(item | _measured(maps(case.case_id, finding), truth, priors[finding, fold[case.case_id]]))
            items[-1] |= _of_truth(region, truth) if items[-1]["state"] in {"ok", "flat"} else {}
    return items


def _prior(cases: Sequence[Any], finding: str, own: int, fold: Mapping[str, int], size: int) -> tuple[Any, Any] | None:
    """Where the mean of the other half's regions has its first maximum, and its best cut, both on the grid."""
    masks = [c.regions[finding].mask_at((GRID, GRID)) for c in cases if finding in c.regions and fold[c.case_id] != own]
    if not masks:
        return None
    mean = (np.sum(masks, axis=0) / len(masks)).astype(np.float32)
    cuts = [mean >= k / 100 * mean.max() for k in range(STEPS)]
    scores = [math.fsum(2 * int((cut & m).sum()) / int(cut.sum() + m.sum()) for m in masks) for cut in cuts]
    cut, cells = cuts[int(np.argmax(scores))], [int((k + 0.5) * GRID / size) for k in range(size)]
    chosen = np.array([[cut[row, col] for col in cells] for row in cells])
    return int(np.argmax(upsample(mean, (size, size), "bilinear"))), chosen


def _measured(saliency: Any, truth: Any, prior: Any) -> Item:
    if isinstance(saliency, str):
        return {"state": "failed", "share": NAN}  # a case that could not be read is in no band of sizes
    if saliency is None:
        return {"state": "absent"}
    size = truth.shape[0]
    large = upsample(saliency, (size, size), "bilinear")
    if not np.isfinite(large).all():
        return {"state": "invalid"}
    area, total = int(truth.sum()), truth.size
    low, high = large.min(), large.max()
    scaled = np.zeros_like(large) if high == low else (large - low) / (high - low)
    values: Item = {"state": "flat" if high == low else "ok"}
    values["pointing"] = float(truth.ravel()[int(np.argmax(large))])
    selected = [int((scaled >= k / 100).sum()) for k in range(STEPS)]
    inside = [int(((scaled >= k / 100) & truth).sum()) for k in range(STEPS)]
    values["curves"] = {
        "dice": [2 * i / (s + area) for s, i in zip(selected, inside, strict=True)],
        "iou": [i / (s + area - i) for s, i in zip(selected, inside, strict=True)],
    }
    values |= {"dice_floor": 2 * area / (area + total), "iou_floor": area / total}
    if prior is not None:
        peak, chosen = prior
        values["pointing_prior"] = float(truth.ravel()[peak])
        both = int((chosen & truth).sum())
        values |= {"dice_prior": 2 * both / (chosen.sum() + area), "iou_prior": both / (chosen.sum() + area - both)}
    return values


def _of_truth(region: Any, truth: Any) -> Item:
    """The truth as a map, drawn in its own frame."""
    size = truth.shape[0]
    large = upsample(region.mask_at(region.frame).astype(np.float32), (size, size), "bilinear")
    scaled = (large - large.min()) / (large.max() - large.min())
    area = int(truth.sum())
    counts = [(int((scaled >= k / 100).sum()), int(((scaled >= k / 100) & truth).sum())) for k in range(STEPS)]
    s, i = max(counts, key=lambda c: 2 * c[1] / (c[0] + area))
    hit = float(truth.ravel()[int(np.argmax(large))])
    return {"pointing_ceiling": hit, "dice_ceiling": 2 * i / (s + area), "iou_ceiling": i / (s + area - i)}


def with_thresholds(items: list[Item], findings: Sequence[str]) -> None:
    """Search a threshold by mean Dice over classes: on all pairs, and for each half of the patients on the other."""

    def best(source: list[Item]) -> int | None:
        means = []
        for k in range(STEPS):
            of_class = [[i["curves"]["dice"][k] for i in source if i["finding"] == f and i["curves"]] for f in findings]
            known = [math.fsum(v) / len(v) for v in of_class if v]
            means.append(math.fsum(known) / len(known) if known else NAN)
        top = max((m for m in means if not math.isnan(m)), default=None)
        return None if top is None else next(k for k, m in enumerate(means) if m >= top - 1e-12)

    searched = best(items)
    halves = folds([i["patient"] for i in items])
    other = {half: best([i for i, h in zip(items, halves, strict=True) if h != half]) for half in (0, 1)}
    for item, half in zip(items, halves, strict=True):
        for name in ("dice", "iou"):
            curve = item["curves"][name] if item["curves"] else [NAN] * STEPS
            item[f"{name}@0.5"] = curve[50]
            item[f"{name}@best"] = NAN if searched is None else curve[searched]
            cut = other[half]
            item[f"{name}@crossfit"] = NAN if cut is None else curve[cut]
            item[f"{name}_gap"] = item[f"{name}@best"] - item[f"{name}@0.5"]
            item[f"{name}_gain"] = item[f"{name}@best"] - item.get(f"{name}_floor", NAN)
        item["pointing_gain"] = item.get("pointing", NAN) - item.get("pointing_prior", NAN)


def groups(items: list[Item], findings: Sequence[str]) -> Iterator[tuple[str, str, list[Item]]]:
    for finding in findings:
        yield "class", finding, [i for i in items if i["finding"] == finding]
    yield "pairs", "", items
    for view in sorted({i["view"] for i in items}):
        yield "view", view, [i for i in items if i["view"] == view]
    names = ["below 0.01", "0.01 to 0.05", "0.05 to 0.15", "0.15 and more"]
    for name, low, high in zip(names, (0.0, *EDGES), (*EDGES, math.inf), strict=True):
        yield "size", f"{name} of the picture", [i for i in items if low <= i["share"] < high]


def mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if not math.isnan(v)]
    return math.fsum(known) / len(known) if known else None


def interval(items: list[Item], metric: str, c: float = 2.0) -> tuple[float, float] | None:
    """Korn and Graubard's interval of a mean, patients as units, from the formula in words."""
    known = [(i["patient"], i[metric]) for i in items if not math.isnan(i.get(metric, NAN))]
    people = sorted({p for p, _ in known})
    if len(people) < 2:
        return None
    n = len(known)
    t = math.fsum(v for _, v in known) / n
    influence = [math.fsum((v - t) / n for p, v in known if p == person) for person in people]
    weight = [sum(p == person for p, _ in known) / n for person in people]
    k = 1 / math.fsum(w * w for w in weight)
    if t in {0.0, 1.0}:
        effective = k
    else:
        variance = (len(people) * math.fsum(x * x for x in influence) + c * t * (1 - t) / k) / (len(people) + c)
        effective = t * (1 - t) / variance
    low = 0.0 if t == 0 else float(beta.ppf(0.025, t * effective, (1 - t) * effective + 1))
    high = 1.0 if t == 1 else float(beta.ppf(0.975, t * effective + 1, (1 - t) * effective))
    return low, high


def grounding(
    items: list[Item], findings: Sequence[str], metrics: Sequence[str]
) -> dict[tuple[str, str, str], float | None]:
    """Return (scope, group, metric) -> value; means over classes under ``macro``."""
    found: dict[tuple[str, str, str], float | None] = {}
    for metric in metrics:
        for scope, group, of in groups(items, findings):
            found[scope, group, metric] = mean([i.get(metric, NAN) for i in of])
        known = [v for f in findings if (v := found["class", f, metric]) is not None]
        found["macro", "", metric] = math.fsum(known) / len(known) if known else None
    return found


def recognition(
    truth: Mapping[str, list[float]],
    scores: Mapping[str, list[float]],
    probabilities: Mapping[str, list[float]],
    patients: Sequence[str],
) -> dict[tuple[str, str, str], float | None]:
    """Return (scope, group, metric) -> value of every class and over classes; NaN: not annotated, or no answer."""
    half = folds(patients)
    found: dict[tuple[str, str, str], float | None] = {}
    right, asked = 0, 0
    for finding, labels in truth.items():
        said = [(y, s, h) for y, s, h in zip(labels, scores[finding], half, strict=True) if not math.isnan(y + s)]
        likely = [(y, p) for y, p in zip(labels, probabilities[finding], strict=True) if not math.isnan(y + p)]
        own = _ranked([(y, s) for y, s, _ in said]) | _called(likely)
        own["f1@crossfit"] = _crossfitted(said)
        own |= _operated(said)
        right += sum((p >= 0.5) == (y == 1) for y, p in likely)
        asked += len(likely)
        found |= {("class", finding, metric): value for metric, value in own.items()}
    for metric in dict.fromkeys(metric for _, _, metric in found):
        known = [v for f in truth if (v := found["class", f, metric]) is not None]
        found["macro", "", metric] = math.fsum(known) / len(known) if known else None
    found["macro", "", "hamming@0.5"] = right / asked if asked else None
    return found


def _operated(said: list[tuple[float, float, int]]) -> dict[str, float | None]:
    """Each half is called at the highest threshold of the other where sensitivity and specificity together are best."""
    called = []
    for half in (0, 1):
        positive, negative = ([s for y, s, h in said if h != half and y == want] for want in (1, 0))
        if positive and negative:
            gains = {
                cut: len(negative) * sum(p >= cut for p in positive) + len(positive) * sum(n < cut for n in negative)
                for cut in {*positive, *negative}
            }
            cut = max(c for c, gain in gains.items() if gain == max(gains.values()))
            called += [(y, s >= cut) for y, s, h in said if h == half]

    def share(of: list[bool]) -> float | None:
        return sum(of) / len(of) if of else None

    return {
        "sensitivity": share([c for y, c in called if y == 1]),
        "specificity": share([not c for y, c in called if y == 0]),
        "ppv": share([y == 1 for y, c in called if c]),
        "npv": share([y == 0 for y, c in called if not c]),
    }


def subgroups(
    truth: Mapping[str, list[float]],
    scores: Mapping[str, list[float]],
    traits: Mapping[str, list[str | None]],
    items: list[Item],
    places: Mapping[str, int],
) -> dict[tuple[str, str, str], float | None]:
    """Return AUC over the classes that group and rest both have of either kind, and pointing, of every group."""
    found: dict[tuple[str, str, str], float | None] = {}
    for trait, values in traits.items():
        names = {v for v in values if v is not None}
        for name in names if len(names) > 1 else ():
            areas = []
            for finding, labels in truth.items():
                inside, outside = (
                    [
                        (y, s)
                        for y, s, v in zip(labels, scores[finding], values, strict=True)
                        if v is not None and (v == name) == want and not math.isnan(y + s)
                    ]
                    for want in (True, False)
                )
                if all(len({y for y, _ in side}) == 2 for side in (inside, outside)):
                    areas.append(_ranked(inside)["auc"])
            found[trait, name, "auc"] = mean([a for a in areas if a is not None])
            if trait != "view":
                own = [i.get("pointing", NAN) for i in items if values[places[i["case"]]] == name]
                found[trait, name, "pointing"] = mean(own)
    return found


def _ranked(said: list[tuple[float, float]]) -> dict[str, float | None]:
    positive, negative = ([s for y, s in said if y == want] for want in (1, 0))
    if not positive or not negative:
        auc = average = trapezoid = None
    else:
        wins = math.fsum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
        auc = wins / (len(positive) * len(negative))
        average = trapezoid = 0.0
        recall, precision = 0.0, 1.0
        for cut in sorted({s for _, s in said}, reverse=True):
            hits, called = sum(s >= cut for s in positive), sum(s >= cut for _, s in said)
            average += (hits / len(positive) - recall) * hits / called
            trapezoid += (hits / len(positive) - recall) * (precision + hits / called) / 2
            recall, precision = hits / len(positive), hits / called
    best = max((_f1(said, cut) or 0.0 for _, cut in said), default=0.0) if positive else None
    return {"auc": auc, "average_precision": average, "auprc_trapezoid": trapezoid, "f1@best": best}


def _f1(said: list[tuple[float, float]], cut: float) -> float | None:
    positives, called = sum(y == 1 for y, _ in said), sum(s >= cut for _, s in said)
    return 2 * sum(y == 1 and s >= cut for y, s in said) / (positives + called) if positives else None


def _called(likely: list[tuple[float, float]]) -> dict[str, float | None]:
    n = len(likely)
    if not n:
        return dict.fromkeys(("f1@0.5", "accuracy@0.5", "brier", "log_loss", "ece"))
    moved = [(y, min(max(p, 1e-15), 1 - 1e-15)) for y, p in likely]
    loss = [-math.log(p if y == 1 else 1 - p) for y, p in moved]
    gaps = 0.0
    for k in range(10):
        inside = [(y, p) for y, p in likely if k / 10 < p <= (k + 1) / 10 or (k == 0 and p == 0)]
        if inside:
            gaps += abs(math.fsum(p for _, p in inside) - math.fsum(y for y, _ in inside)) / n
    return {
        "f1@0.5": _f1(likely, 0.5),
        "accuracy@0.5": sum((p >= 0.5) == (y == 1) for y, p in likely) / n,
        "brier": math.fsum((p - y) ** 2 for y, p in likely) / n,
        "log_loss": math.fsum(loss) / n,
        "ece": gaps,
    }


def _crossfitted(said: list[tuple[float, float, int]]) -> float | None:
    """Each half is called at the smallest best threshold of the other; a half without one is left out."""
    called = []
    for half in (0, 1):
        other = [(y, s) for y, s, h in said if h != half]
        if any(y == 1 for y, _ in other):
            scores = {s: _f1(other, s) for _, s in other}
            cut = min(s for s, f in scores.items() if f == max(scores.values()))
            called += [(y, float(s >= cut)) for y, s, h in said if h == half]
    return _f1(called, 1.0)
