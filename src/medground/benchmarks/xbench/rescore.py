"""Rows under another protocol, or from maps made elsewhere: the same measuring, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.xbench.prior import PriorCounts
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.rows import SCHEMA, Inferred, MapMeasurer
from medground.datasets.base import Case
from medground.imaging.geometry import Geometry

NO_MAP: NDArray[np.float32] = np.full((1, 1), np.nan, dtype=np.float32)


class ScoredMap(NamedTuple):
    """What is known of one (case, finding).

    Attributes:
        map: ``(h, w)``, or None.
        geometry: how it lies on the picture; None where it covers the whole.
        score: the model's, or None.
        probability: the model's, or None.
        absent: why there is no map.
        origin: (file, SHA-256) of a map that was made elsewhere.
    """

    map: NDArray[np.floating[Any]] | None
    geometry: Geometry | None = None
    score: float | None = None
    probability: float | None = None
    absent: str = "no map"
    origin: tuple[str, str] | None = None


Lookup = Callable[[str, str], ScoredMap]


def rows_from_maps(
    cases: Iterable[Case],
    findings: Sequence[str],
    lookup: Lookup,
    protocol: Protocol,
    *,
    seed: int = 0,
    failed: Mapping[str, str] | None = None,
    seen: frozenset[str] = frozenset(),
) -> pl.DataFrame:
    """Measure maps that exist already.

    Args:
        cases: with their regions; no image is opened.
        findings: classes, in order.
        lookup: (case, finding) -> what is known.
        protocol: every choice.
        seed: of the class prior's folds.
        failed: case -> why it could not be read when the maps were made.
        seen: patients that the model was trained on.
    """
    known = list(cases)
    measurer = MapMeasurer(findings, protocol, PriorCounts(known, findings, protocol, seed))
    rows: list[Mapping[str, Any]] = []
    for case in known:
        if failed and case.case_id in failed:
            rows += measurer.failed(case, failed[case.case_id]).rows
            continue
        regions = {f: case.regions[f] for f in findings if f in case.regions}
        told = _inferred(case.case_id, findings, lookup)
        rows += measurer.measure(case, regions, told, seen=case.patient_id in seen).rows
    return pl.DataFrame(rows, schema=SCHEMA)


def _inferred(case_id: str, findings: Sequence[str], lookup: Lookup) -> Inferred:
    maps = [lookup(case_id, finding) for finding in findings]
    geometry = next((f.geometry for f in maps if f.geometry), Geometry.identity((1, 1)))
    return Inferred(
        scores=np.array([f.score for f in maps], dtype=np.float64),
        probabilities=np.array([f.probability for f in maps], dtype=np.float64),
        maps=[NO_MAP if f.map is None else f.map for f in maps],
        geometry=geometry,
        absent={j: f.absent for j, f in enumerate(maps) if f.map is None},
        origin={j: f.origin for j, f in enumerate(maps) if f.origin},
    )
