"""Pictures in the forms that archives have: decoded to the right grey, remarked, or refused with the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydicom.dataset import Dataset

from medground.errors import ImageError
from medground.imaging.reading import read_radiograph

STORED = (np.arange(48 * 64).reshape(48, 64) % 4096).astype(np.uint16)
GREY = STORED / 4095
EIGHT = (STORED % 256).astype(np.uint8)


def table(entries: Any, first: int = 0, bits: int = 16, *, listed: int | None = None) -> Dataset:
    """Return a lookup table."""
    lut = Dataset()
    lut.LUTDescriptor = [len(entries) if listed is None else listed, first, bits]
    lut.LUTData = np.asarray(entries).astype("<u2" if bits > 8 else "u1").tobytes()
    lut["LUTData"].VR, lut["LUTDescriptor"].VR = "OW", "US"
    return lut


def window(values: Any, centre: float, width: float) -> Any:
    """PS3.3 C.11.2.1.2.1, written out."""
    return np.clip((values - (centre - 0.5)) / (width - 1) + 0.5, 0, 1)


DICOM: dict[str, tuple[dict[str, Any], Any, str]] = {
    "MONOCHROME2": ({}, GREY, ""),
    "MONOCHROME1": ({"PhotometricInterpretation": "MONOCHROME1"}, 1 - GREY, "inverted"),
    "rescale": ({"RescaleSlope": 2, "RescaleIntercept": -1000}, GREY, "slope 2"),
    "falling rescale": ({"RescaleSlope": -1, "RescaleIntercept": 4095}, 1 - GREY, "slope -1"),
    "window": ({"WindowCenter": 2048, "WindowWidth": 1000}, window(STORED, 2048, 1000), "window centre 2048"),
    "two windows": ({"WindowCenter": [2048, 9], "WindowWidth": [1000, 5]}, window(STORED, 2048, 1000), "2048"),
    "window after rescale": (
        {"RescaleSlope": 2, "RescaleIntercept": -1000, "WindowCenter": 500, "WindowWidth": 400},
        window(2.0 * STORED - 1000, 500, 400),
        "centre 500",
    ),
    "window of no width": ({"WindowCenter": 2048, "WindowWidth": 0}, GREY, "ignored"),
    "sigmoid": (
        {"WindowCenter": 2048, "WindowWidth": 1000, "VOILUTFunction": "SIGMOID"},
        1 / (1 + np.exp(-4 * (STORED - 2048.0) / 1000)),
        "SIGMOID",
    ),
    "exact window": (
        {"WindowCenter": 2048, "WindowWidth": 1000, "VOILUTFunction": "LINEAR_EXACT"},
        np.clip((STORED - 2048.0) / 1000 + 0.5, 0, 1),
        "LINEAR_EXACT",
    ),
    "table of 16 bit": ({"VOILUTSequence": [table(np.arange(4096) * 16)]}, STORED * 16 / 65535, "VOI LUT"),
    "padding value": ({"PixelPaddingValue": 0}, GREY, "padding value"),
    "inverse shape": ({"PresentationLUTShape": "INVERSE"}, GREY, "presentation LUT not applied"),
}


@pytest.mark.parametrize(("tags", "expected", "words"), DICOM.values(), ids=DICOM)
def test_grey_of_dicom(tags: dict[str, Any], expected: Any, words: str, dicom: Callable[..., Path]) -> None:
    image = read_radiograph(dicom(STORED, bits=12, **tags))
    np.testing.assert_allclose(image.pixels, expected, atol=2e-6)
    assert words in "; ".join(image.steps)


def test_signed_big_endian_implicit_and_shifted_pixels_are_the_same_picture(dicom: Callable[..., Path]) -> None:
    signed = (STORED.astype(np.int32) - 2048).astype(np.int16)
    np.testing.assert_allclose(read_radiograph(dicom(signed, bits=12)).pixels, GREY, atol=2e-6)
    shifted = read_radiograph(dicom(STORED << 4, bits=12, HighBit=15))
    np.testing.assert_allclose(shifted.pixels, GREY, atol=2e-6)
    assert not any("bits outside" in step for step in shifted.steps)


@pytest.mark.parametrize(
    ("pixels", "bits"), [(STORED | 0xF000, 12), (STORED, 10)], ids=["overlay in spare bits", "wrong depth"]
)
def test_bits_that_the_header_does_not_know_are_remarked(pixels: Any, bits: int, dicom: Callable[..., Path]) -> None:
    assert "bits outside those stored are set, and not read" in read_radiograph(dicom(pixels, bits=bits)).steps


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "palette": ({"PhotometricInterpretation": "PALETTE COLOR"}, "kind of picture"),
    "unknown kind": ({"PhotometricInterpretation": "MONOCHROME3"}, "kind of picture"),
    "no kind": ({"PhotometricInterpretation": None}, "kind of picture"),
    "several frames": ({"NumberOfFrames": 2}, "several frames"),
    "no pixels": ({"PixelData": None}, "no pixels"),
    "surplus pixels": ({"Rows": 10}, "more pixels"),
    "too few pixels": ({"Rows": 100}, "cannot be decoded"),
    "no rows": ({"Rows": 0}, "no pixels"),
    "no bits": ({"BitsStored": 0}, "bits"),
    "more bits than room": ({"BitsStored": 20}, "bits"),
    "slope of 0": ({"RescaleSlope": 0, "RescaleIntercept": 0}, "slope is 0"),
    "unknown function": ({"WindowCenter": 9, "WindowWidth": 9, "VOILUTFunction": "CUBIC"}, "unknown"),
    "short table": ({"VOILUTSequence": [table(np.arange(10), listed=4096)]}, "malformed"),
}


@pytest.mark.parametrize(("tags", "words"), REFUSED.values(), ids=REFUSED)
def test_dicom_that_is_refused(tags: dict[str, Any], words: str, dicom: Callable[..., Path]) -> None:
    with pytest.raises(ImageError) as caught:
        read_radiograph(dicom(STORED, bits=12, **tags))
    assert words in str(caught.value)
    assert "Secret" not in str(caught.value)


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("ending", ["png", "jpg"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_turn_that_nothing_applies_is_said(ending: str, orientation: int, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    Image.fromarray(EIGHT).save(path, exif=turned(orientation))
    steps = read_radiograph(path).steps
    assert (f"EXIF orientation {orientation} not applied" in steps) == (orientation != 1)


PNG: dict[str, tuple[Image.Image, Any]] = {
    "8 bit": (Image.fromarray(EIGHT), EIGHT / 255),
    "16 bit": (Image.fromarray(STORED * 16), STORED * 16 / 65535),
    "1 bit": (Image.fromarray(EIGHT > 99), EIGHT > 99),
    "grey with alpha": (Image.fromarray(EIGHT).convert("LA"), EIGHT / 255),
    "RGB": (Image.fromarray(EIGHT).convert("RGB"), EIGHT / 255),
    "RGBA": (Image.fromarray(EIGHT).convert("RGBA"), EIGHT / 255),
}


@pytest.mark.parametrize(("picture", "expected"), PNG.values(), ids=PNG)
def test_grey_of_png(picture: Image.Image, expected: Any, tmp_path: Path) -> None:
    picture.save(tmp_path / "a.png")
    np.testing.assert_allclose(read_radiograph(tmp_path / "a.png").pixels, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["TIFF", "BMP", "GIF", "WEBP"])
def test_other_kinds_are_refused(kind: str, tmp_path: Path) -> None:
    Image.fromarray(EIGHT).save(tmp_path / "a.png", kind)
    with pytest.raises(ImageError, match="neither PNG, JPEG nor DICOM"):
        read_radiograph(tmp_path / "a.png")


def test_jpegs_of_four_channels_and_cut_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(EIGHT).convert("CMYK").save(path)
    with pytest.raises(ImageError, match="CMYK"):
        read_radiograph(path)
    for progressive in (False, True):
        Image.fromarray(EIGHT).save(path, progressive=progressive)
        whole = path.read_bytes()
        assert read_radiograph(path).size == (64, 48)
        path.write_bytes(whole[: len(whole) // 2] + b"\xff\xd9")  # cut in half and closed
        with pytest.raises(ImageError):
            read_radiograph(path)
