"""What a picture costs in the model's thread: prepared by a worker, beside prepared by ``predict`` as it was before.

``make bench`` prints, for pictures of 1024 x 1024 and of 2544 x 3056 pixels and an input of 224, the processor time a
picture of the thread of the model (the network and a transfer to a device excluded), both ways in one run, alternating;
then what equalising by table saves, and what a worker saves that takes the prepared picture from the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from medground.imaging.cache import DecodeCache
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.base import ModelInfo
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess, equalise_histogram
from medground.models.common.preparing import load
from medground.models.common.text import Prompts

BATCH, ROUNDS = 8, 5


@dataclass(kw_only=True, eq=False, repr=False)
class Passes(Adapter):
    """The shell of the published models around no network."""

    equalise: bool = False

    name = "passes"
    info = ModelInfo("Passes")

    def assemble(self):
        rule = Preprocess("squash", 224, "bilinear", IMAGENET_MEAN, IMAGENET_STD, equalise=self.equalise)
        none = SimpleNamespace(sha256="", describe=dict)
        return Parts(torch.nn.Identity(), none, rule, Prompts("{label}"), none)

    def encode_texts(self, findings):
        return torch.zeros(len(findings))

    def ground(self, pixels, texts):
        answers = torch.zeros(len(pixels), len(texts))
        return answers, answers, None


def radiograph(width: int, height: int, seed: int) -> Radiograph:
    rng = np.random.default_rng(seed)
    levels = rng.binomial(255, 0.4, (height, width)).astype(np.uint8)
    return Radiograph(levels.astype(np.float32) / 255, case_id=str(seed))


def spent(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of this thread."""
    started = time.thread_time()
    work()
    return 1000 * (time.thread_time() - started)


@pytest.mark.parametrize(("width", "height"), [(1024, 1024), (2544, 3056)])
@pytest.mark.parametrize("equalise", [False, True])
def test_the_thread_of_the_model(benchmark, width: int, height: int, equalise: bool) -> None:
    torch.set_num_threads(1)
    model = Passes(equalise=equalise)
    images = [radiograph(width, height, seed) for seed in range(BATCH)]
    prepared = [model.prepare(image) for image in images]
    times: dict[str, list[float]] = {"before": [], "now": []}
    for _ in range(ROUNDS):
        times["before"].append(spent(lambda: model.inputs(images)) / BATCH)
        times["now"].append(spent(lambda: model.inputs(prepared)) / BATCH)
    before, now = (float(np.median(t)) for t in times.values())
    print(
        f"\n{width} x {height}{', equalised' if equalise else ''}: {before:.2f} ms a picture in predict, "
        f"{now:.3f} ms where a worker prepared it: {before / now:.0f} times less"
    )
    benchmark.extra_info["ratio"] = before / now
    benchmark.pedantic(lambda: None, rounds=1)


def pixel_by_pixel(levels: np.ndarray) -> np.ndarray:
    values = levels.astype(np.float64) / 255
    counts, edges = np.histogram(values, bins=256)
    shares = np.cumsum(counts) / counts.sum()
    return (np.interp(values, (edges[:-1] + edges[1:]) / 2, shares) * 255).astype(np.uint8)


def test_equalising(benchmark) -> None:
    levels = np.rint(radiograph(2544, 3056, 0).pixels * 255).astype(np.uint8)
    assert np.array_equal(equalise_histogram(levels), pixel_by_pixel(levels))
    times: dict[str, list[float]] = {"pixel by pixel": [], "by table": []}
    for _ in range(ROUNDS):
        for what, way in zip(times, (pixel_by_pixel, equalise_histogram), strict=True):
            times[what].append(spent(lambda way=way: way(levels)))
    before, now = (float(np.median(t)) for t in times.values())
    print(f"\nequalising 2544 x 3056: pixel by pixel {before:.0f} ms, by table {now:.1f} ms: {before / now:.0f} times")
    benchmark.extra_info["ratio"] = before / now
    benchmark.pedantic(lambda: None, rounds=1)


def test_a_worker_with_a_cache(benchmark, tmp_path: Path) -> None:
    model, file = Passes(), tmp_path / "picture.png"
    Image.fromarray(np.rint(radiograph(1024, 1024, 0).pixels * 255).astype(np.uint8)).save(file)
    cache = DecodeCache(tmp_path / "cache")
    ways: dict[str, Callable[[], object]] = {
        "decoded and prepared": lambda: model.prepare(read_radiograph(file)),
        "decoded picture kept": lambda: model.prepare(cache.read(file)),
        "prepared picture kept": lambda: load(model, file, cache),
    }
    times: dict[str, list[float]] = {what: [] for what in ways}
    for way in ways.values():
        way()
    for _ in range(ROUNDS):
        for what, way in ways.items():
            times[what].append(spent(way))
    shown = ", ".join(f"{what} {np.median(spent):.1f} ms" for what, spent in times.items())
    print(f"\na worker, PNG of 1024 x 1024 to an input of 224: {shown}")
    benchmark.extra_info["ratio"] = float(
        np.median(times["decoded and prepared"]) / np.median(times["prepared picture kept"])
    )
    benchmark.pedantic(lambda: None, rounds=1)
