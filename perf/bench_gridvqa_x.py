"""Speed of GridVQA-X: scenes with pictures, and one explanation beside the way the published code makes it.

``make bench`` prints how long 10,000 scenes take, and for MultiSHAP on one scene of the trained pair: seconds and model
calls of the crossed sampler, and of the published sampler (every pair of a cell and a word on its own), which is timed
on some pairs and scaled to all. On a game of 12 merged players, whose exact index is known, both are given the same
number of calls and their errors are compared.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from medground.explainers.base import Asker, Example, Pool
from medground.explainers.multishap import MultiShap, _difference, crossed, pairwise
from medground.models.answerers.gridvqa_pure import PureNet
from medground.worlds.gridvqa.build import Plan, build, picture_of
from medground.worlds.gridvqa.generate import scenes
from medground.worlds.gridvqa.world import buckets

PAIRS_TIMED = 6


@pytest.fixture(scope="module")
def pool() -> Pool:
    torch.set_num_threads(1)
    (bucket,) = [b for b in buckets([0.7]) if b.key == "D2-M-count-d07"]
    examples = [
        Example(s.scene_id, (picture_of(s, 16) / np.float32(255)).astype(np.float32), s.question.text)
        for s in scenes("pure", [bucket], 2, seed=11)
    ]
    return Pool(examples, Asker(PureNet()), 5)


def test_ten_thousand_scenes(benchmark, tmp_path):
    plan = Plan(per_bucket=264, densities=(0.3, 0.7))
    started = time.perf_counter()
    benchmark.pedantic(build, (tmp_path / "set", plan), {"workers": 2}, rounds=1)
    print(f"\n{len(plan)} scenes with pictures, two workers: {time.perf_counter() - started:.1f} s")


def test_multishap_beside_the_published_sampler(benchmark, pool):
    method, example = MultiShap(), pool.examples[0]
    cells, words = 25, len(example.words)
    ours = benchmark.pedantic(method.explain, (pool, 0), rounds=3)
    seconds = benchmark.stats.stats.min
    value = method._values(pool, 0, pool.predicted(0))
    rng, before, started = np.random.default_rng(0), pool.asker.calls, time.perf_counter()
    for i in range(PAIRS_TIMED):
        others = [q for q in range(cells + words) if q not in (i, cells)]
        on = np.zeros((128, cells + words), bool)
        for row in on:
            row[rng.permutation(others)[: rng.integers(0, len(others) + 1)]] = True
        _difference(value, on, i, 0, cells)
    scale = cells * words / PAIRS_TIMED
    theirs, calls = (time.perf_counter() - started) * scale, (pool.asker.calls - before) * scale
    print(
        f"\nMultiSHAP, {cells} cells and {words} words: crossed {seconds:.2f} s ({ours.calls} calls), "
        f"published sampler {theirs:.0f} s ({calls:.0f} calls): {theirs / seconds:.0f} times faster"
    )
    assert ours.calls < calls / 50


def test_errors_against_the_exact_index(benchmark, pool):
    method, example = MultiShap(), pool.examples[0]
    cell_groups = np.array_split(np.random.default_rng(0).permutation(25), 7)
    word_groups = np.array_split(np.arange(len(example.words)), 5)
    exact = method.exact(pool, 0, [g.tolist() for g in cell_groups], [g.tolist() for g in word_groups])
    inner = method._values(pool, 0, pool.predicted(0))

    def value(shown, spoken, pairs):
        on = np.zeros((len(shown), 25), bool)
        said = np.zeros((len(spoken), len(example.words)), bool)
        for k, group in enumerate(cell_groups):
            on[:, group] = shown[:, [k]]
        for k, group in enumerate(word_groups):
            said[:, group] = spoken[:, [k]]
        return inner(on, said, pairs)

    size = np.sqrt((exact**2).mean())
    print(f"\nerror in units of the exact index (root mean square {size:.3f}), 7 by 5 merged players:")
    for budget in (1275, 5000):
        runs = [crossed(value, 7, 5, budget, 3, np.random.default_rng(s))[0] for s in range(3)]
        ours = np.mean([np.sqrt(((run - exact) ** 2).mean()) for run in runs]) / size
        draws = budget // (4 * 35)
        theirs = pairwise(value, 7, 5, draws, np.random.default_rng(0))
        other = np.sqrt(((theirs - exact) ** 2).mean()) / size
        print(f"  about {budget} calls: crossed {ours:.2f}, pairwise {other:.2f}")
    benchmark.pedantic(method.exact, (pool, 0, [[*range(25)]], [[*range(len(example.words))]]), rounds=1)
