"""Speed of reading, enlarging and drawing, beside the usual ways, on one thread.

``make bench`` prints each group as a table: a JPEG of 512 x 512 by ``read_radiograph`` and by Pillow alone, a 14 x 14
map enlarged by medground and by torch, a run-length code decoded by medground and by pycocotools, and a box drawn at
224 straight away and by way of its own 1024 pixels.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medground.imaging import rle
from medground.imaging._entropy import check_scans
from medground.imaging.geometry import upsample
from medground.imaging.reading import read_radiograph
from medground.imaging.regions import Region

GRID = np.random.default_rng(0).random((14, 14), dtype=np.float32)


@pytest.fixture(scope="module")
def jpeg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jpeg") / "x.jpg"
    Image.effect_mandelbrot((512, 512), (-2, -1.5, 1, 1.5), 60).save(path, quality=92)
    return path


@pytest.fixture(scope="module")
def large_jpeg() -> bytes:
    """2500 x 2500, 2.5 MB."""
    y, x = np.mgrid[:2500, :2500]
    noise = np.random.default_rng(0).normal(0, 15, (2500, 2500))
    levels = np.clip(128 + 60 * np.sin(x / 90) * np.cos(y / 70) + noise, 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(levels).save(out, "JPEG", quality=88)
    return out.getvalue()


@pytest.mark.benchmark(group="JPEG of 2.5 MB")  # walking its scans took 5.0 times as long as decoding; now 1.9
def test_every_bit_of_the_scans(benchmark, large_jpeg):
    benchmark(check_scans, large_jpeg)


@pytest.mark.benchmark(group="JPEG of 2.5 MB")
def test_pillow_alone_on_a_large_one(benchmark, large_jpeg):
    benchmark(lambda: Image.open(io.BytesIO(large_jpeg)).load())


@pytest.mark.benchmark(group="JPEG 512 x 512")
def test_read_radiograph(benchmark, jpeg):
    benchmark(read_radiograph, jpeg)


@pytest.mark.benchmark(group="JPEG 512 x 512")
def test_pillow_alone(benchmark, jpeg):
    def read():
        with Image.open(jpeg) as picture:
            return np.asarray(picture.convert("L"), dtype=np.float32) / np.float32(255)

    benchmark(read)


@pytest.mark.parametrize("side", [224, 1024])
@pytest.mark.benchmark(group="14 x 14 enlarged")
def test_upsample(benchmark, side):
    benchmark(upsample, GRID, (side, side))


@pytest.mark.parametrize("side", [224, 1024])
@pytest.mark.benchmark(group="14 x 14 enlarged")
def test_torch(benchmark, side):
    grid = torch.from_numpy(GRID.astype(np.float64))[None, None]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    benchmark(torch.nn.functional.interpolate, grid, size=(side, side), mode="bilinear")
    torch.set_num_threads(threads)


def ellipse() -> np.ndarray:
    y, x = np.mgrid[:2320, :2828]
    return ((x - 1400) / 900) ** 2 + ((y - 1200) / 600) ** 2 < 1


@pytest.mark.benchmark(group="run-length code 2828 x 2320 decoded")
def test_decode(benchmark):
    counts = rle.counts_from_mask(ellipse())
    text = rle.string_from_counts(counts)
    benchmark(lambda: rle.mask_from_counts(rle.counts_from_string(text), (2828, 2320)))


@pytest.mark.benchmark(group="run-length code 2828 x 2320 decoded")
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_pycocotools(benchmark):
    coco = pytest.importorskip("pycocotools.mask")
    benchmark(coco.decode, coco.encode(np.asfortranarray(ellipse().astype(np.uint8))))


@pytest.mark.benchmark(group="box at 224")
def test_straight(benchmark):
    region = Region.from_boxes((1024, 1024), [(180, 300, 520, 620)])
    benchmark(region.mask_at, (224, 224))


@pytest.mark.benchmark(group="box at 224")
def test_by_way_of_1024(benchmark):
    region, rows = Region.from_boxes((1024, 1024), [(180, 300, 520, 620)]), np.arange(224) * 1024 // 224
    benchmark(lambda: region.mask()[np.ix_(rows, rows)])
