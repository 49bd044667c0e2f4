"""What the engine costs above a bare loop that decodes and runs the same model, and how fast medground starts.

``make bench`` prints both. 880 JPEG pictures of 512 x 512 are drawn; the model is a small convolutional network that
takes about as long as decoding. The bare loop decodes and predicts, batch after batch, and measures nothing; the
engine also measures every region, keeps every map and writes every chunk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medground import Geometry, Prediction, read_radiograph
from medground.benchmarks.base import Entry, Setting
from medground.benchmarks.xbench import XBench
from medground.datasets.manifest import Manifest
from medground.imaging.geometry import apply
from medground.models.base import ModelInfo
from medground.running.local import run_local
from medground.running.options import Options
from medground.running.plan import make_plan
from medground.running.store import Store

IMAGES = 880
BATCH = 8


class Convolutions:
    """A network of the size of a small radiograph encoder."""

    name = "convolutions"
    info = ModelInfo("Convolutions")

    def __init__(self) -> None:
        torch.manual_seed(0)
        widths = [1, 16, 32, 64, 64]
        layers = [torch.nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths)]
        self.network = torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.ReLU())])

    @torch.no_grad()
    def predict(self, images, findings):
        geometry = [Geometry.squash(image.size, (224, 224)) for image in images]
        pixels = np.stack([apply(g, x.pixels, "bilinear") for g, x in zip(geometry, images, strict=True)])
        maps = self.network(torch.from_numpy(pixels)[:, None])[:, : len(findings)].numpy()
        scores = maps.mean(axis=(2, 3))
        return Prediction(scores, 1 / (1 + np.exp(-scores)), maps, geometry)

    def fingerprint(self):
        return "convolutions"


@pytest.fixture(scope="module")
def manifest(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    base = np.asarray(Image.fromarray(rng.integers(0, 255, (32, 32), dtype=np.uint8)).resize((512, 512)))
    lines = []
    for i in range(IMAGES):
        Image.fromarray(np.roll(base, i, axis=1)).save(root / f"{i}.jpg", quality=85)
        box = [[200, 300, 500, 700]]
        lines.append(json.dumps({"image": f"{i}.jpg", "frame": [1024, 1024], "boxes": {"Mass": box}}))
    (root / "manifest.jsonl").write_text("\n".join(lines))
    return root


def bare_loop(cases, model) -> None:
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        model.predict([read_radiograph(case.image) for case in batch], ["Mass"])


def engine(root: Path, folder: Path, model) -> None:
    benchmark = XBench()
    entries = [Entry("m", "m", model.info, lambda: model)], [Entry("d", "d", Manifest.info, lambda: Manifest(root))]
    benchmark.bind(Setting(*entries, batch_size=BATCH))
    options = Options(workers=2)
    with Store(folder, {"benchmark": {"name": "xbench"}}) as store:
        plan = make_plan(benchmark.tasks(), chunk_size=options.chunk, settings={})
        run_local([(task, list(task.chunks)) for task in plan.tasks], store, options)


def test_engine_overhead(benchmark, manifest: Path, tmp_path: Path) -> None:
    model, cases = Convolutions(), Manifest(manifest).cases()
    torch.set_num_threads(2)
    engine(manifest, tmp_path / "warm", model)
    times = {"bare": [], "engine": []}
    for i in range(3):
        started = time.perf_counter()
        bare_loop(cases, model)
        times["bare"].append(time.perf_counter() - started)
        started = time.perf_counter()
        engine(manifest, tmp_path / f"run{i}", model)
        times["engine"].append(time.perf_counter() - started)
    bare, ours = (float(np.median(t)) for t in times.values())
    print(f"\n{IMAGES} pictures: bare loop {bare:.2f} s, engine {ours:.2f} s, ratio {ours / bare:.2f}")
    benchmark.extra_info["ratio"] = ours / bare
    benchmark.pedantic(lambda: None, rounds=1)


def test_start(benchmark) -> None:
    for what, code in {
        "import medground": [sys.executable, "-c", "import medground"],
        "medground --help": [sys.executable, "-m", "medground", "--help"],
        "medground list": [sys.executable, "-m", "medground", "list"],
        "python": [sys.executable, "-c", "pass"],
    }.items():
        spent = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(code, check=True, stdout=subprocess.DEVNULL)
            spent.append(time.perf_counter() - started)
        print(f"\n{what}: {min(spent):.3f} s")
    benchmark.pedantic(lambda: None, rounds=1)
