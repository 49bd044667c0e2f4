"""What the class prior reaches on each region: the floor of pointing, and of overlap beside marking everything."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.xbench.measure import Target, on_grid
from medground.benchmarks.xbench.protocol import Protocol
from medground.datasets.base import Case
from medground.imaging.geometry import Geometry, Size
from medground.models.baselines.baseline_class_prior import ClassPrior


class PriorCounts:
    """Where the class prior of each finding peaks and what it covers on a protocol's grid; shared by all models.

    Args:
        cases: of the dataset; their regions are made when the prior is first needed.
        findings: classes, in order.
        protocol: every choice.
        seed: of the folds of patients.
    """

    def __init__(self, cases: Sequence[Case], findings: Sequence[str], protocol: Protocol, seed: int) -> None:
        self._fit = cases, findings, seed
        self._protocol = protocol
        self._peaks: dict[tuple[int, str, Size], NDArray[np.intp]] = {}
        self._lock = threading.Lock()

    @cached_property
    def _fitted(self) -> ClassPrior:
        cases, findings, seed = self._fit
        prior = ClassPrior(seed)
        prior.fit(cases, findings)
        return prior

    def counts(self, case_id: str, finding: str, target: Target) -> dict[str, Any]:
        """Return the columns of the class prior for one target; empty where it has no map."""
        # Fitted when it is first needed: it makes every region, which can mean a look at every picture's header.
        with self._lock:
            prior = self._fitted.map_for(case_id, finding)
            region = self._fitted.region_for(case_id, finding)
        if prior is None or region is None:
            return {}
        where = target.wide.ravel()[self._peak(prior, finding, target.size)]
        chosen = enlarged(region, target.size)
        return {
            "prior_ties": len(where),
            "prior_ties_inside": int(where.sum()),
            "prior_first_inside": bool(where[0]),
            "prior_selected": int(chosen.sum()),
            "prior_inside": int((chosen & target.mask).sum()),
        }

    def _peak(self, prior: NDArray[np.float32], finding: str, size: Size) -> NDArray[np.intp]:
        # Maps are shared by every case of a fold, so their identity is the key.
        key = (id(prior), finding, size)
        if key not in self._peaks:
            grid = Geometry.identity((prior.shape[1], prior.shape[0]))
            values, _ = on_grid(prior, grid, size, self._protocol)
            self._peaks[key] = np.flatnonzero(values == values.max())
        return self._peaks[key]


def enlarged(region: NDArray[np.bool_], size: Size) -> NDArray[np.bool_]:
    """Return a region on another grid, ``(H, W)``: each pixel takes the cell that holds its centre."""
    width, height = size
    rows, cols = ((np.arange(n) + 0.5) * cells / n for n, cells in zip((height, width), region.shape, strict=True))
    return region[np.ix_(rows.astype(np.intp), cols.astype(np.intp))]
