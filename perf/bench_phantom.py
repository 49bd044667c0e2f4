"""Speed of drawing one phantom on one core: the bounds are 15 ms at 224 pixels and 50 ms at 512.

Scene and pixels are timed together, over cases with none to three findings; the eight anatomy masks are included.
"""

from __future__ import annotations

from itertools import count

import pytest

from medground.datasets.phantom import draw, make_scene
from medground.worlds.phantom.facts import facts


@pytest.mark.parametrize("population", ["default", "tasks"])
@pytest.mark.parametrize("size", [128, 224, 512])
@pytest.mark.benchmark(group="one phantom")
def test_draw(benchmark, size, population):
    number = count()

    def one():
        return draw(make_scene(0, next(number) % 64, population=population), size).masks

    one()  # the kernels are compiled, or read from their cache, outside the timing
    benchmark.pedantic(one, rounds=64, iterations=1)


@pytest.mark.benchmark(group="facts of one phantom")
def test_facts(benchmark):
    number = count()

    def one():
        told = facts(make_scene(0, next(number) % 64, population="tasks"))
        return told.findings, told.tasks

    one()
    benchmark.pedantic(one, rounds=64, iterations=1)
