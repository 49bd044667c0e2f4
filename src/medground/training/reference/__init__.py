"""Trains the reference model: phantoms drawn here, and half of the patients of ChestX-ray14 where it is at hand.

This is the only place that joins datasets with the model's training loop, which knows arrays only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from medground.datasets.base import Case
from medground.datasets.nih_chestxray14 import NihChestXray14
from medground.imaging.reading import read_radiograph
from medground.metrics.folds import patient_folds
from medground.models.networks.reference import checkpoint
from medground.models.networks.reference.card import markdown
from medground.models.networks.reference.picture import SIZE, picture
from medground.models.networks.reference.vocabulary import ANATOMIES, CONCEPTS, FINDINGS
from medground.training.reference.examples import Collector, Examples, join
from medground.training.reference.figures import TestSet, figures, measure
from medground.training.reference.train import Progress, Recipe, train
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.scene import make_scene

TRAINING_SEED: Final = 20_261_013
"""Seed of the phantoms that the reference model learns from; every other seed is unseen."""

TUNING_SEED, TEST_SEED = TRAINING_SEED + 1, TRAINING_SEED + 2
"""Seeds of the phantoms that a threshold is taken from, and of those that are measured."""

SAY: Final[Callable[[str], None]] = partial(print, flush=True)
"""Prints a line at once, also into a file."""

Masks = dict[str, NDArray[np.bool_]]


def train_reference(
    out: Path,
    *,
    nih: Path | None = None,
    seed: int = 0,
    recipe: Recipe | None = None,
    phantoms: int = 6000,
    tests: int = 300,
    workers: int | None = None,
    say: Callable[[str], None] = SAY,
) -> Path:
    """Train the reference model from scratch, measure it on what it has not seen, and write weights and card.

    Args:
        out: folder for ``reference.safetensors`` and ``MODEL_CARD.md``.
        nih: folder of ChestX-ray14; its patients with boxes are split in two by the seed, and one half is used.
            Pictures are taken from ``images/`` where there is such a folder, else from all folders of pictures.
        seed: of the split, the weights, the order and the augmentation.
        recipe: every choice of the training; its own seed counts where it is given.
        phantoms: pictures to draw and learn from.
        tests: unseen phantoms to measure on.
        workers: processes that draw; by default one a core.
        say: takes one line of progress.

    Returns:
        The weight file. On one machine and one number of threads the same arguments give the same bytes.
    """
    recipe = recipe or Recipe(seed=seed)
    workers = workers or os.cpu_count() or 1
    say(f"drawing {phantoms:,} phantoms on {workers} processes")
    drawn = phantom_examples(phantoms, TRAINING_SEED, workers)
    halves = split(_boxed_cases(nih), seed) if nih else None
    real = case_examples(halves[0]) if halves else None
    say(f"training on {len(drawn):,} phantoms and {len(real) if real else 0:,} real pictures, {recipe.steps:,} steps")
    network = train(drawn, real, recipe, _reporter(say))

    out.mkdir(parents=True, exist_ok=True)
    path = out / "reference.safetensors"
    card: dict[str, Any] = {
        "recipe": asdict(recipe),
        "phantoms": {"count": phantoms, "seed": TRAINING_SEED},
        "real": _facts(halves[0]) if halves else None,
        "seen_patients": {"nih_chestxray14": sorted({_patient(case) for case in halves[0]}) if halves else []},
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "torch": torch.__version__.partition("+")[0],
        "threads": torch.get_num_threads(),
    }
    checkpoint.save(network, card, path)
    say("measuring what the stored weights reach on unseen pictures")
    stored = checkpoint.load(path).network
    card["figures"] = {}
    if halves:
        tuned = measure(stored, case_tests(halves[0]), FINDINGS).best_threshold()
        card["figures"]["held-out patients"] = figures(
            measure(stored, case_tests(halves[1]), FINDINGS), FINDINGS, tuned
        )
    tuned = measure(stored, phantom_tests(tests, TUNING_SEED), FINDINGS).best_threshold()
    card["figures"]["unseen phantoms"] = figures(
        measure(stored, phantom_tests(tests, TEST_SEED), FINDINGS), FINDINGS, tuned
    )
    checkpoint.save(network, card, path)
    (out / "MODEL_CARD.md").write_text(markdown(card), encoding="utf-8")
    for name, found in card["figures"].items():
        say(f"{name}: " + ", ".join(f"{metric} {m['value']:.1f}" for metric, m in found["macro"].items()))
    return path


def _reporter(say: Callable[[str], None], every: float = 10.0) -> Callable[[Progress], None]:
    """Return a function that says a line every few seconds."""
    last = time.monotonic()

    def report(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= every or now.step == now.steps:
            last = time.monotonic()
            left = now.seconds / now.step * (now.steps - now.step)
            say(
                f"step {now.step:,} of {now.steps:,}, presence loss {now.presence:.3f}, map loss {now.maps:.3f}, "
                f"{left / 60:.1f} min left"
            )

    return report


def _boxed_cases(folder: Path) -> Sequence[Case]:
    # A folder that holds resized copies beside the originals has every picture twice: one of them must be named.
    only = "images" if (folder / "images").is_dir() else None
    return NihChestXray14(folder, image_dir=only).cases()


def _patient(case: Case) -> str:
    return case.patient_id or case.case_id


def _facts(cases: Sequence[Case]) -> dict[str, int]:
    return {
        "pictures": len(cases),
        "patients": len({_patient(case) for case in cases}),
        "boxes": sum(len(region.boxes) for case in cases for region in case.regions.values()),
    }


def split(cases: Sequence[Case], seed: int) -> tuple[list[Case], list[Case]]:
    """Return the cases of the training half and of the held-out half, split by patient."""
    fold = patient_folds([_patient(case) for case in cases], 2, seed)
    halves: tuple[list[Case], list[Case]] = ([], [])
    for case, half in zip(cases, fold, strict=True):
        halves[int(half)].append(case)
    return halves


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
        labels: dict[str, bool | None] = {finding: finding in drawing.findings for finding in FINDINGS}
        collector.add(drawing.pixels, labels | dict.fromkeys(ANATOMIES, True), drawing.masks)
    return collector.examples()


def case_examples(cases: Sequence[Case]) -> Examples:
    """Read real cases as training examples; anatomies stay unknown."""
    collector = Collector(CONCEPTS)
    for case in cases:
        collector.add(_picture(case), case.labels, _masks(case))
    return collector.examples()


def _picture(case: Case) -> NDArray[np.uint8]:
    return picture(read_radiograph(case.image).pixels)


def _masks(case: Case) -> Masks:
    return {f: case.regions[f].mask_at((SIZE, SIZE)) for f in FINDINGS if f in case.regions}


def case_tests(cases: Sequence[Case]) -> TestSet:
    """Read real cases as a test set."""
    codes = {True: 1, False: 0, None: -1}
    return TestSet(
        np.stack([_picture(case) for case in cases]),
        np.array([[codes[case.labels.get(finding)] for finding in FINDINGS] for case in cases], np.int8),
        [_masks(case) for case in cases],
        [_patient(case) for case in cases],
    )


def phantom_tests(count: int, seed: int) -> TestSet:
    """Draw phantoms as a test set."""
    drawings = [draw(make_scene(seed, case), SIZE) for case in range(count)]
    return TestSet(
        np.stack([drawing.pixels for drawing in drawings]),
        np.array([[finding in drawing.findings for finding in FINDINGS] for drawing in drawings], np.int8),
        [drawing.findings for drawing in drawings],
        [f"phantom {case}" for case in range(count)],
    )
