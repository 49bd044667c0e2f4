"""What the decode cache saves: a second model's reading beside decoding again, on one thread.

``make bench`` prints for three kinds of radiograph (as VinDr-CXR, RSNA and NIH ChestX-ray14 are distributed) the median
time to decode one, to decode and store it, and to take it from the cache, alternating in one run. Every time includes
reading the file, whose pages the operating system holds; both ways give the same bits, which is checked first.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import JPEG2000Lossless, JPEGBaseline8Bit, SecondaryCaptureImageStorage, generate_uid

from medground.imaging.cache import DecodeCache
from medground.imaging.reading import read_radiograph

PICTURES, ROUNDS = 2, 3


def radiograph(width: int, height: int, bits: int, seed: int) -> np.ndarray:
    """Broad shades, edges and a detector's noise: what a codec finds in a radiograph."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / max(width, height)
    shade = 0.5 + 0.3 * np.sin(5 * x + seed) * np.cos(4 * y) + 0.08 * (np.sin(60 * y + 8 * x) > 0.7)
    noisy = shade + rng.normal(0, 0.004, shade.shape)
    return np.clip(noisy * (1 << bits), 0, (1 << bits) - 1).astype(np.uint16)


def write_dicom(path: Path, pixels: np.ndarray, bits: int, syntax: str) -> None:
    header = Dataset()
    header.file_meta = FileMetaDataset()
    header.SOPClassUID, header.SOPInstanceUID = SecondaryCaptureImageStorage, generate_uid()
    header.Rows, header.Columns = pixels.shape
    header.SamplesPerPixel, header.PhotometricInterpretation, header.PixelRepresentation = 1, "MONOCHROME2", 0
    header.BitsAllocated, header.BitsStored, header.HighBit = 16 if bits > 8 else 8, bits, bits - 1
    if syntax == JPEGBaseline8Bit:  # pydicom encodes no baseline JPEG: Pillow does
        stream = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(stream, "JPEG", quality=90)
        header.file_meta.TransferSyntaxUID = syntax
        header.PixelData = encapsulate([stream.getvalue()])
        header["PixelData"].VR = "OB"
        header["PixelData"].is_undefined_length = True
    else:
        header.WindowCenter, header.WindowWidth = "2000", "3500"
        header.compress(syntax, pixels, encoding_plugin="pylibjpeg")
    header.save_as(path, enforce_file_format=True)


def jpeg_2000(path: Path, seed: int) -> None:
    pytest.importorskip("openjpeg", reason="pylibjpeg-openjpeg writes and reads JPEG 2000")
    write_dicom(path, radiograph(2304, 2880, 12, seed), 12, JPEG2000Lossless)


def jpeg_baseline(path: Path, seed: int) -> None:
    write_dicom(path, radiograph(1024, 1024, 8, seed), 8, JPEGBaseline8Bit)


def png(path: Path, seed: int) -> None:
    Image.fromarray(radiograph(1024, 1024, 8, seed).astype(np.uint8)).save(path, "PNG")


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        ("DICOM, JPEG 2000, 12 bit, 2304 x 2880", jpeg_2000),
        ("DICOM, JPEG baseline, 8 bit, 1024 x 1024", jpeg_baseline),
        ("PNG, 8 bit, 1024 x 1024", png),
    ],
)
def test_a_second_reading(benchmark, tmp_path: Path, kind: str, write: Callable[[Path, int], None]) -> None:
    files = [tmp_path / f"{i}.file" for i in range(PICTURES)]
    for i, file in enumerate(files):
        write(file, i)
    warm = DecodeCache(tmp_path / "warm")
    for file in files:
        expected = read_radiograph(file)
        for _ in range(2):  # decoded, then from the cache
            got = warm.read(file)
            assert np.array_equal(got.pixels.view(np.uint32), expected.pixels.view(np.uint32))
            assert (got.steps, got.value_range) == (expected.steps, expected.value_range)
    times: dict[str, list[float]] = {"decode": [], "decode and store": [], "from the cache": []}
    for i in range(ROUNDS):
        cold = DecodeCache(tmp_path / f"cold{i}")
        for file in files:
            for what, read in zip(times, (read_radiograph, cold.read, warm.read), strict=True):
                started = time.perf_counter()
                read(file)
                times[what].append(1000 * (time.perf_counter() - started))
    decode, store, cached = (float(np.median(t)) for t in times.values())
    kept = sum(path.stat().st_size for path in (tmp_path / "warm").glob("*.radiograph")) / PICTURES
    print(
        f"\n{kind}: decode {decode:.1f} ms, decode and store {store:.1f} ms, from the cache {cached:.1f} ms: "
        f"{decode / cached:.1f} times faster; file {files[0].stat().st_size / 1e6:.2f} MB, entry {kept / 1e6:.2f} MB"
    )
    benchmark.extra_info["ratio"] = decode / cached
    benchmark.pedantic(lambda: None, rounds=1)
