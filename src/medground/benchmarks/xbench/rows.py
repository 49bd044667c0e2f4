"""From what a model said about one case to rows of counts, whether it was asked just now or in an earlier run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.base import Measured
from medground.benchmarks.xbench.boxes import BOX_COLUMNS, box_columns
from medground.benchmarks.xbench.ceiling import ceiling
from medground.benchmarks.xbench.measure import MapCounts, count, make_target
from medground.benchmarks.xbench.prior import PriorCounts
from medground.benchmarks.xbench.protocol import Protocol
from medground.datasets.base import Case
from medground.imaging.geometry import Geometry
from medground.imaging.regions import Region

SCHEMA = pl.Schema(
    {
        "case_id": pl.String(),
        "patient_id": pl.String(),
        "view": pl.String(),
        "traits": pl.String(),
        "finding": pl.String(),
        "seen": pl.Boolean(),
        "localised": pl.Boolean(),
        "label": pl.Boolean(),
        "score": pl.Float64(),
        "probability": pl.Float64(),
        "state": pl.String(),
        "reason": pl.String(),
        "share": pl.Float64(),
        "area": pl.Int64(),
        "total": pl.Int64(),
        "covered": pl.Int64(),
        "ties": pl.Int64(),
        "ties_inside": pl.Int64(),
        "first_inside": pl.Boolean(),
        "peak_x": pl.Int64(),
        "peak_y": pl.Int64(),
        "prior_ties": pl.Int64(),
        "prior_ties_inside": pl.Int64(),
        "prior_first_inside": pl.Boolean(),
        "prior_selected": pl.Int64(),
        "prior_inside": pl.Int64(),
        "ceiling_ties": pl.Int64(),
        "ceiling_ties_inside": pl.Int64(),
        "ceiling_first_inside": pl.Boolean(),
        "ceiling_selected": pl.Int64(),
        "ceiling_inside": pl.Int64(),
        "selected": pl.List(pl.Int64()),
        "inside": pl.List(pl.Int64()),
        "geometry": pl.String(),
        "map_file": pl.String(),
        "map_sha256": pl.String(),
        **BOX_COLUMNS,
    }
)
"""A row: one (case, finding). Everything that a summary needs, and no verdict."""

KeepMaps = Literal["regions", "all", "none"]


@dataclass(frozen=True)
class Inferred:
    """What the model said about one image, in the order of the task's findings."""

    scores: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]]
    maps: Sequence[NDArray[np.floating[Any]]] | None
    geometry: Geometry
    absent: Mapping[int, str]
    origin: Mapping[int, tuple[str, str]]
    boxes: Mapping[int, Sequence[Sequence[float]]] = field(default_factory=dict)


class MapMeasurer:
    """Measures cases under one protocol.

    Args:
        findings: classes, in the order in which the model was asked.
        protocol: every choice.
        prior: what the class prior reaches, for the columns beside the model's.
    """

    def __init__(
        self,
        findings: Sequence[str],
        protocol: Protocol,
        prior: PriorCounts,
    ) -> None:
        self.findings = tuple(findings)
        self.protocol = protocol
        self.prior = prior

    def measure(self, case: Case, regions: Mapping[str, Region], inferred: Inferred, *, seen: bool = False) -> Measured:
        """Count every finding of one case.

        Args:
            case: with its labels.
            regions: its regions, made.
            inferred: what the model said.
            seen: whether the model was trained on this patient.
        """
        rows = []
        for j, finding in enumerate(self.findings):
            row = self._identity(case, finding, seen=seen)
            row |= {"score": _number(inferred.scores[j]), "probability": _number(inferred.probabilities[j])}
            row |= box_columns(inferred.boxes.get(j), regions.get(finding))
            row |= self._grounding(case.case_id, finding, j, regions.get(finding), inferred)
            rows.append(row)
        return Measured(rows)

    def failed(self, case: Case, reason: str) -> Measured:
        """Return rows that say why nothing was measured."""
        why = {"state": "failed", "reason": reason}
        return Measured([self._identity(case, finding) | why for finding in self.findings])

    def _identity(self, case: Case, finding: str, *, seen: bool = False) -> dict[str, Any]:
        label = True if finding in case.regions else case.labels.get(finding)
        return dict.fromkeys(SCHEMA.names()) | {
            "case_id": case.case_id,
            "patient_id": case.patient_id,
            "view": case.view,
            "traits": json.dumps(dict(case.traits), sort_keys=True, ensure_ascii=False) if case.traits else None,
            "finding": finding,
            "label": label,
            "seen": seen,
            "localised": finding in case.regions,
            "selected": [],
            "inside": [],
        }

    def _grounding(
        self, case_id: str, finding: str, j: int, region: Region | None, inferred: Inferred
    ) -> dict[str, Any]:
        if region is None:
            return {"state": "none"}
        target = make_target(region, self.protocol)
        place = {
            "share": target.share,
            "area": int(target.mask.sum()),
            "total": target.mask.size,
            "geometry": json.dumps(inferred.geometry.to_dict(), sort_keys=True),
        }
        place |= dict(zip(("map_file", "map_sha256"), inferred.origin.get(j, (None, None)), strict=True))
        if inferred.maps is None or j in inferred.absent:
            counts = MapCounts("absent", inferred.absent.get(j, "the model gives no maps"))
        else:
            counts = count(inferred.maps[j], inferred.geometry, target, self.protocol)
        beside = self.prior.counts(case_id, finding, target) | ceiling(region, target, self.protocol)
        return place | beside | _columns(counts)


def _columns(counts: MapCounts) -> dict[str, Any]:
    return {f.name: getattr(counts, f.name) for f in fields(counts)}


def _number(value: Any) -> float | None:
    """NaN and infinities are undefined, and stay so in the table."""
    return float(value) if np.isfinite(value) else None
