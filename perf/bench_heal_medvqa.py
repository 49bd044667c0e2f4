"""Speed of HEAL-MedVQA: questions and pastes for 10,000 images.

``make bench`` prints the processor time that it takes to plan all questions with their variants over 10,000 images
(eight anatomies, eight findings), and to make a paste at 512 pixels, scaled to as many as the plan holds.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from medground.benchmarks.heal_medvqa.draw import Draw, draw
from medground.benchmarks.heal_medvqa.masks import ANATOMIES, WHOLE, Stripes
from medground.benchmarks.heal_medvqa.pastes import PasteRule, paste
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable
from medground.benchmarks.heal_medvqa.variants import PICTURED, Planner, Surroundings

IMAGES, SIZE = 10_000, 512


@pytest.fixture(scope="module")
def table() -> RelationTable:
    rng, findings = random.Random(0), tuple(f"finding {n}" for n in range(8))
    images = []
    for number in range(IMAGES):
        held = rng.sample(findings, rng.choice((0, 1, 1, 2, 3)))
        related = frozenset((rng.choice(ANATOMIES[:7]), finding) for finding in held)
        split = "train" if number % 10 < 3 else "test"
        images.append(ImageFacts(f"i{number}", related, split=split, patient_id=f"p{number // 2}", view="PA"))
    return RelationTable(ANATOMIES, findings, tuple(images))


def test_questions_and_pastes_for_ten_thousand_images(benchmark, table):
    around = Surroundings(lambda *_: True, lambda _, a, b: a != b, WHOLE)

    def plan():
        questions, _ = draw(table, Draw(), ["train", "test"])
        planner = Planner(table, around)
        return [planner.plan(question) for question in questions]

    started = time.process_time()
    planned = benchmark.pedantic(plan, rounds=1)
    planning = time.process_time() - started
    pastes = sum(variant.name in PICTURED for one in planned for variant in one.variants)
    rng = np.random.default_rng(0)
    target, donor = (rng.random((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    mask = Stripes().masks("", (SIZE, SIZE))["right mid lung"]
    rule, rounds, started = PasteRule(), 40, time.process_time()
    for _ in range(rounds):
        paste(target, mask, donor, mask, rule, mask)
    each = (time.process_time() - started) / rounds
    print(f"\n{len(planned)} questions planned in {planning:.1f} s of one core")
    print(f"{pastes} pastes of {1e3 * each:.1f} ms at {SIZE} pixels: {pastes * each:.0f} s of one core")
