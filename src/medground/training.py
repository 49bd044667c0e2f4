"""Makes the training sets of the reference model: phantoms drawn here, and half of the patients of ChestX-ray14."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final

import numpy as np

from medground.datasets._phantom.drawing import draw
from medground.datasets._phantom.scene import make_scene
from medground.datasets.base import Case
from medground.imaging.reading import read_radiograph
from medground.metrics.folds import patient_folds
from medground.models._reference.examples import Collector, Examples, join
from medground.models._reference.picture import SIZE, picture
from medground.models._reference.vocabulary import ANATOMIES, CONCEPTS, FINDINGS

TRAINING_SEED: Final = 20_261_013
"""Seed of the phantoms that the reference model learns from; every other seed is unseen."""


def phantom_examples(count: int, seed: int, workers: int = 1) -> Examples:
    """Draw phantoms as training examples: cases 0 to ``count - 1``, the same for any number of workers."""
    bounds = np.linspace(0, count, max(1, min(workers * 4, count)) + 1).astype(int)
    spans = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    if workers == 1:
        return join([_drawn(span, seed) for span in spans])
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return join(list(pool.map(partial(_drawn, seed=seed), spans)))


def _drawn(span: tuple[int, int], seed: int) -> Examples:
    collector = Collector(CONCEPTS)
    for case in range(*span):
        drawing = draw(make_scene(seed, case), SIZE)
        labels: dict[str, bool | None] = {f: f in drawing.findings for f in FINDINGS}
        collector.add(
            drawing.pixels, {**labels, **dict.fromkeys(ANATOMIES, True)}, {**drawing.findings, **drawing.anatomies}
        )
    return collector.examples()


def case_examples(cases: Sequence[Case]) -> Examples:
    """Read real cases as training examples; anatomies stay unknown."""
    collector = Collector(CONCEPTS)
    for case in cases:
        radiograph = read_radiograph(case.image)
        regions = dict(case.regions)
        masks = {f: regions[f].mask_at((SIZE, SIZE)) for f in FINDINGS if f in regions}
        collector.add(picture(radiograph.pixels), case.labels, masks)
    return collector.examples()


def split(cases: Sequence[Case], seed: int) -> tuple[list[Case], list[Case]]:
    """Return the cases of the training half and of the held-out half, split by patient."""
    fold = patient_folds([case.patient_id or case.case_id for case in cases], 2, seed)
    halves: tuple[list[Case], list[Case]] = ([], [])
    for case, half in zip(cases, fold, strict=True):
        halves[int(half)].append(case)
    return halves
