"""Speed of CXReasonDial: judging, measuring and building, each as a share of what it may take.

``make bench`` prints processor time of one core, and its share of the limit: 100,000 turns through the ``evidence``
judge in 60 s on two cores, twelve tools on a case of 2,048 pixels in .5 s, 2,000 dialogues in a minute.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.cxreasondial.build import Builder
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.judges.evidence import Evidence
from medground.tools import Anatomy, measure

TESTS = Path(__file__).parents[1] / "tests" / "judges"
CORES = 2


def told(what: str, seconds: float, limit: float) -> None:
    print(f"\n{what}: {seconds:.2f} s of one core, {seconds / limit:.2f} of the limit")


@pytest.fixture(scope="module")
def replies():
    """The labelled replies with their queries: every one worded differently, so that nothing is had from a memory."""
    sys.path.insert(0, str(TESTS))
    import evidence_cases

    return [(query, row["reply"]) for row, query, _ in (*evidence_cases.golden(), *evidence_cases.hand())]


def test_judging(benchmark, replies):
    judge = Evidence()

    def judged():
        return [judge.judge(query, reply) for query, reply in replies]

    judged()
    started = time.process_time()
    benchmark.pedantic(judged, rounds=1)
    seconds = (time.process_time() - started) * 100_000 / len(replies)
    told("100,000 turns judged", seconds, 60 * CORES)


def test_twelve_tools(benchmark):
    size = 2_048
    small = Phantoms(size=size // 4).anatomy("phantom-0-00003")
    masks = {name: np.kron(mask, np.ones((4, 4), dtype=bool)) for name, mask in small.masks.items()}
    scaled = json.loads(json.dumps({k: np.asarray(v).tolist() for k, v in small.landmarks.items()}), parse_int=float)
    anatomy = Anatomy(size, size, small.view, masks, {k: (np.asarray(v) * 4).tolist() for k, v in scaled.items()})
    started = time.process_time()
    benchmark.pedantic(lambda: measure(anatomy), rounds=5)
    told("twelve tools at 2,048 pixels", (time.process_time() - started) / 5, 0.5)


def test_building(benchmark):
    cases, world = 100, Phantoms(seed=1)
    started = time.process_time()
    built = benchmark.pedantic(lambda: list(Builder(seed=1).build(world.cases(cases))), rounds=1)
    seconds = (time.process_time() - started) * 2_000 / len(built)
    told("2,000 dialogues measured and built", seconds, 60)
