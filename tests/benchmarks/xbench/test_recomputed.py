"""Every cell of a run is computed again by slow plain code, on drawn cases and on the published sample of NIH."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.xbench import oracle

from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.datasets.base import Case
from medground.datasets.nih_chestxray14 import NihChestXray14
from medground.imaging.regions import Region
from medground.models.base import ModelInfo

SMALL = resolve_protocol({"base": "xbench", "grid": [40, 40], "name": "small"})
GROUNDING = [
    "pointing",
    "pointing_prior",
    "pointing_gain",
    "pointing_ceiling",
    *(
        f"{name}{end}"
        for name in ("dice", "iou")
        for end in ("@0.5", "@best", "@crossfit", "_gap", "_gain", "_floor", "_prior", "_ceiling")
    ),
]


def drawn() -> tuple[list[Case], tuple[str, ...]]:
    """Cases with patients of several pictures, unknown patients, labels that nobody gave, and a class without any."""
    rng = np.random.default_rng(11)
    cases = []
    for i in range(48):
        labels: dict[str, bool | None] = {f: bool(rng.random() < p) for f, p in (("A", 0.6), ("B", 0.4), ("C", 0.15))}
        if i % 9 == 4:
            labels["B"] = None
        regions = {}
        for finding, given in labels.items():
            if given and rng.random() < 0.85:
                x, y = rng.integers(0, 30, 2).tolist()
                w, h = rng.integers(2, 22, 2).tolist()
                regions[finding] = Region.from_boxes((40, 40), [(x, y, min(40, x + w), min(40, y + h))])
        patient = None if i % 11 == 5 else f"p{i % 29}"
        cases.append(
            Case(f"c{i:02d}", Path("x.png"), patient, ("PA", "AP", None)[i % 3], labels | {"D": False}, regions)
        )
    return cases, ("A", "B", "C", "D")


def answers(
    cases: list[Case], findings: tuple[str, ...], seed: int
) -> tuple[dict[str, str], dict[tuple[str, str], ScoredMap]]:
    """Return cases that could not be read, and an answer for each (case, finding): odd ones among them."""
    rng = np.random.default_rng(seed)
    failed = {case.case_id: "cut short" for k, case in enumerate(cases) if k % 17 == 3}
    said = {}
    for k, case in enumerate(cases):
        for finding in findings:
            saliency = rng.random((5, 5))
            if k % 13 == 2:
                saliency[1, 1] = np.nan
            if k % 13 == 7:
                saliency[:] = 0.25
            score = None if k % 15 == 6 else float(rng.integers(-4, 5)) / 2
            probability = None if k % 15 == 8 else float(rng.integers(0, 21)) / 20
            gone = k % 19 == 10
            said[case.case_id, finding] = ScoredMap(None if gone else saliency, score=score, probability=probability)
    return failed, said


def decade(age: str | None) -> str | None:
    """Return the band of an age, by hand."""
    if age is None:
        return None
    for below, name in ((40, "below 40"), (60, "40 to below 60"), (80, "60 to below 80")):
        if int(age) < below:
            return name
    return "80 and above"


def compare(cases: list[Case], findings: tuple[str, ...], protocol: Any, size: int, seed: int) -> int:
    """Hold every cell of a summary against the oracle; return how many there were."""
    failed, said = answers(cases, findings, seed)
    rows = rows_from_maps(cases, findings, lambda c, f: said[c, f], protocol, failed=failed)
    cards = {"m": ModelInfo("m")}
    summary = summarise({("m", "d"): rows}, cards, {"d": findings}, SummaryOptions(protocol, replicates=0))

    items = oracle.pairs_of(cases, findings, lambda c, f: "failed" if c in failed else said[c, f].map, size)
    oracle.with_thresholds(items, findings)
    expected = oracle.grounding(items, findings, GROUNDING)
    truth: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    likely: dict[str, list[float]] = {}
    for finding in findings:
        told = [(c, True if finding in c.regions else c.labels.get(finding)) for c in cases]
        truth[finding] = [math.nan if y is None or c.case_id in failed else float(y) for c, y in told]
        for kept, name in ((scores, "score"), (likely, "probability")):
            own = [getattr(said[c.case_id, finding], name) for c in cases]
            kept[finding] = [math.nan if x is None else x for x in own]
    people = [c.patient_id or f"case {c.case_id}" for c in cases]
    expected |= oracle.recognition(truth, scores, likely, people)

    places = {case.case_id: i for i, case in enumerate(cases)}
    traits = {name: [c.traits.get(name) for c in cases] for c in cases for name in c.traits}
    traits |= {"age": [decade(age) for age in traits["age"]]} if "age" in traits else {}
    expected |= oracle.subgroups(truth, scores, traits | {"view": [c.view for c in cases]}, items, places)
    assert {(c.scope, c.group, c.metric) for c in summary.cells} == set(expected)
    by_group = {(scope, group): of for scope, group, of in oracle.groups(items, findings)}
    for cell in summary.cells:
        value = expected[cell.scope, cell.group, cell.metric]
        where = (cell.scope, cell.group, cell.metric)
        assert (cell.value is None) == (value is None), where
        if value is not None:
            assert cell.value == pytest.approx(value, abs=1e-12), where
        of = by_group.get((cell.scope, cell.group))
        if of is None or cell.metric not in GROUNDING:
            continue
        assert cell.n == sum(not math.isnan(i.get(cell.metric, math.nan)) for i in of), where
        assert cell.failed == sum(i["state"] == "failed" for i in of), where
        assert cell.flat == sum(i["state"] == "flat" for i in of), where
        assert cell.n + cell.undefined + cell.failed == len(of), where
        if not cell.metric.endswith(("gap", "gain")) and value is not None:
            limits = oracle.interval(of, cell.metric)
            assert (cell.low is None) == (limits is None), where
            if limits is not None:
                assert (cell.low, cell.high) == pytest.approx(limits, abs=1e-9), where
    return len(summary.cells)


@pytest.mark.parametrize("seed", [0, 1])
def test_every_cell_of_drawn_cases(seed: int) -> None:
    cases, findings = drawn()
    assert compare(cases, findings, SMALL, 40, seed) > 250


@pytest.mark.data
def test_every_cell_of_the_published_sample(data_root: Path) -> None:
    dataset = NihChestXray14(data_root / "nih-chestxray14", image_dir="images")
    protocol = resolve_protocol({"base": "xbench", "grid": [56, 56], "name": "quarter"})
    assert compare(list(dataset.cases()), tuple(dataset.findings), protocol, 56, 2) > 400
