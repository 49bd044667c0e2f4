"""What a trained network reaches on pictures that it has not seen, with standard errors over patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from medground.imaging.geometry import upsample
from medground.metrics.bootstrap import bootstrap_mean, bootstrap_ranking, clusters
from medground.metrics.classification import auc, per_class
from medground.metrics.pointing import pointing
from medground.metrics.saliency import minmax
from medground.metrics.sweep import overlap, sweep, threshold_grid
from medground.models.networks.reference.network import ReferenceNet, normalise
from medground.models.networks.reference.picture import SIZE
from medground.models.networks.reference.text import padded

GRID: Final = threshold_grid(100)
REPLICATES: Final = 300


@dataclass(frozen=True)
class TestSet:
    """Pictures to measure on.

    Attributes:
        images: ``(N, 224, 224)`` grey values.
        labels: ``(N, C)``: 1 present, 0 absent, -1 unknown.
        masks: one mapping a picture: finding -> ``(224, 224)``, where it is localised.
        patients: one a picture.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int8]
    masks: Sequence[Mapping[str, NDArray[np.bool_]]]
    patients: Sequence[str]


@dataclass(frozen=True)
class Measured:
    """Sufficient statistics: scores ``(N, C)``; per picture and finding hit or miss and Dice over the grid, or NaN."""

    labels: NDArray[np.float64]
    scores: NDArray[np.float64]
    hits: NDArray[np.float64]
    dice: NDArray[np.float64]
    patients: Sequence[str]

    def best_threshold(self) -> int:
        """Return the grid's index with the highest mean Dice over all pairs."""
        return int(np.nanmean(self.dice, axis=(0, 1)).argmax())


def measure(network: ReferenceNet, tests: TestSet, findings: Sequence[str]) -> Measured:
    """Measure a network: maps are the sigmoid of its scores, enlarged bilinearly to 224 and scaled to 0 ... 1."""
    count = (len(tests.images), len(findings))
    scores, hits = np.empty(count), np.full(count, np.nan)
    dice = np.full((*count, len(GRID)), np.nan)
    with torch.no_grad():
        vectors = network.embed(torch.tensor(padded(list(findings))))
        for start in range(0, count[0], 16):
            grey = torch.from_numpy(tests.images[start : start + 16]).unsqueeze(1).float() / 255
            presence, logits = network(normalise(grey), vectors.expand(len(grey), -1, -1))
            scores[start : start + 16] = presence.numpy()
            for offset, maps in enumerate(logits.sigmoid().numpy()):
                picture = start + offset
                for column, finding in enumerate(findings):
                    mask = tests.masks[picture].get(finding)
                    if mask is not None and mask.any():
                        hits[picture, column], dice[picture, column] = _located(maps[column], mask)
    labels = np.where(tests.labels >= 0, tests.labels, np.nan).astype(np.float64)
    return Measured(labels, scores, hits, dice, tests.patients)


def _located(grid: NDArray[np.float32], mask: NDArray[np.bool_]) -> tuple[float, NDArray[np.float64]]:
    large = upsample(grid, (SIZE, SIZE))
    counts = sweep(minmax(large), mask, GRID)
    curve = overlap(counts.selected, counts.inside, int(mask.sum())).dice
    return float(pointing(large, mask).hit or 0.0), np.asarray(curve)


def figures(measured: Measured, findings: Sequence[str], threshold: int) -> dict[str, Any]:
    """Return macro figures with standard errors, and figures a finding, in percent.

    Args:
        measured: of one test set.
        findings: its columns.
        threshold: index in the grid at which Dice is taken; it must come from other pictures to be honest.
    """
    by = clusters(measured.patients)
    dice = measured.dice[:, :, threshold]
    ranks = bootstrap_ranking(measured.labels, measured.scores, by, REPLICATES)
    aucs = [value.value for value in per_class(auc, measured.labels, measured.scores)]
    values = {
        "auc": (np.array(aucs, np.float64), ranks.auc),
        "pointing": (np.nanmean(measured.hits, 0), bootstrap_mean(measured.hits, by, REPLICATES)),
        "dice": (np.nanmean(dice, 0), bootstrap_mean(dice, by, REPLICATES)),
    }
    macro = {
        name: {"value": _percent(np.nanmean(each)), "standard_error": _percent(np.nanstd(np.nanmean(drawn, axis=1)))}
        for name, (each, drawn) in values.items()
    }
    each = {
        finding: {
            "pairs": int(np.isfinite(measured.hits[:, column]).sum()),
            **{name: _percent(by_class[column]) for name, (by_class, _) in values.items()},
        }
        for column, finding in enumerate(findings)
    }
    return {"threshold": threshold / 100, "pictures": len(measured.scores), "macro": macro, "findings": each}


def _percent(share: float | np.floating[Any]) -> float:
    return round(100 * float(share), 1)
