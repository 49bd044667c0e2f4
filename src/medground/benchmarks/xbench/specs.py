"""What the metrics of XBench are: titles, floors, families, and what was searched on the cases that it is scored on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from medground.benchmarks.xbench.boxes import box_specs
from medground.benchmarks.xbench.protocol import Protocol
from medground.metrics.counted import CountedMetric
from medground.metrics.spec import Floor, MetricSpec

OVERLAPS = {"dice": "Dice", "iou": "IoU"}
CUT = 0.5
"""Probability from which a finding counts as called."""

_SIGNED = (-1.0, 1.0)
_CHANCE = 0.5


@cache
def grounding_specs(protocol: Protocol) -> tuple[MetricSpec, ...]:
    """Return the metrics of saliency maps under a protocol, in the order of its tables."""
    return (*_pointing(), *_overlaps(protocol))


@cache
def recognition_specs() -> tuple[MetricSpec, ...]:
    """Return the metrics of scores and probabilities, in the order of tables; no protocol touches them."""
    return tuple(_recognition())


def specs(protocol: Protocol, further: Sequence[CountedMetric] = ()) -> tuple[MetricSpec, ...]:
    """Return all of them, further metrics of saliency maps before those of scores."""
    further_specs = (metric.spec for metric in further)
    return (*grounding_specs(protocol), *box_specs(), *further_specs, *recognition_specs())


def fixed(overlap: str, tau: float) -> str:
    """Return the name of an overlap at a fixed threshold: ``dice@0.5``."""
    return f"{overlap}@{tau:g}"


def _pointing() -> Iterator[MetricSpec]:
    yield MetricSpec(
        "pointing",
        "Pointing",
        floor="class prior",
        floor_metric="pointing_prior",
        ceiling="truth as map",
        ceiling_metric="pointing_ceiling",
        digits=2,
    )
    yield MetricSpec("pointing_prior", "Pointing of class prior", direction="neither", digits=2)
    yield MetricSpec("pointing_ceiling", "Pointing of the truth as a map", direction="neither", digits=2)
    yield MetricSpec(
        "pointing_gain",
        "Pointing gain over class prior",
        unit="points",
        bounds=_SIGNED,
        floor="zero",
        floor_value=0.0,
        digits=2,
    )


def _overlaps(protocol: Protocol) -> Iterator[MetricSpec]:
    searched, fair = protocol.optimistic, protocol.crossfitted is not None
    titles = {fixed(name, tau): f"{title} at {tau:g}" for tau in protocol.fixed for name, title in OVERLAPS.items()}
    titles |= {f"{name}@best": f"{title} at searched threshold" for name, title in OVERLAPS.items()}
    if searched and fair:
        titles |= {f"{name}@crossfit": f"{title} at cross-fitted threshold" for name, title in OVERLAPS.items()}
    for name, title in titles.items():
        kind, _, threshold = name.partition("@")
        yield MetricSpec(
            name,
            title,
            family="overlap",
            floor="all foreground",
            floor_metric=f"{kind}_floor",
            ceiling="truth as map",
            ceiling_metric=f"{kind}_ceiling",
            searched=searched and threshold == "best",
            partner=f"{kind}@crossfit" if searched and fair and threshold == "best" else None,
            digits=2,
        )
    for name, title in OVERLAPS.items():
        yield MetricSpec(
            f"{name}_gap",
            f"{title} gap",
            unit="points",
            direction="neither",
            family="overlap",
            bounds=_SIGNED,
            searched=searched,
            digits=2,
        )
    for name, title in OVERLAPS.items():
        for what, of in (("floor", "all foreground"), ("prior", "class prior"), ("ceiling", "the truth as a map")):
            yield MetricSpec(f"{name}_{what}", f"{title} of {of}", direction="neither", family="overlap", digits=2)
    for name, title in OVERLAPS.items():
        yield MetricSpec(
            f"{name}_gain",
            f"{title} gain over floor",
            unit="points",
            family="overlap",
            bounds=_SIGNED,
            floor="zero",
            floor_value=0.0,
            searched=searched,
            digits=2,
        )


def _recognition() -> Iterator[MetricSpec]:
    yield MetricSpec("auc", "AUC", statistic="ranking", floor="chance", floor_value=_CHANCE, digits=2)
    yield MetricSpec(
        "average_precision",
        "Average precision (AP)",
        statistic="ranking",
        floor="prevalence",
        digits=2,
        note="a constant score reaches the prevalence",
    )
    yield MetricSpec(
        "auprc_trapezoid",
        "AUPRC by straight lines (CARZero's formula)",
        statistic="ranking",
        direction="neither",
        digits=2,
        note="flatters: a constant score reaches half the way from the prevalence to 100",
    )
    floor: Floor | None = "all positive"
    yield MetricSpec(f"f1@{CUT}", f"F1 at {CUT}", statistic="f1", floor=floor, digits=2)
    # Searched on the evaluated cases, whatever the protocol's split.
    yield MetricSpec(
        "f1@best",
        "F1 at searched threshold",
        statistic="f1",
        floor=floor,
        searched=True,
        partner="f1@crossfit",
        digits=2,
    )
    yield MetricSpec("f1@crossfit", "F1 at cross-fitted threshold", statistic="f1", floor=floor, digits=2)
    yield MetricSpec(f"accuracy@{CUT}", f"Accuracy at {CUT}", floor="all negative", digits=2)
    yield MetricSpec(f"hamming@{CUT}", f"Hamming at {CUT}", statistic="ratio", floor="all negative", digits=2)
    for name, title in (("sensitivity", "Sensitivity"), ("specificity", "Specificity"), ("ppv", "PPV"), ("npv", "NPV")):
        yield MetricSpec(name, title, statistic="ratio" if name.endswith("pv") else "mean", digits=2)
    for name, title in (("brier", "Brier"), ("log_loss", "Log loss"), ("ece", "ECE")):
        floor = None if name == "ece" else "base rate"
        bounds = None if name == "log_loss" else (0.0, 1.0)
        yield MetricSpec(
            name, title, unit="none", direction="lower", family="loss", bounds=bounds, floor=floor, digits=4
        )
