"""Radiographs from PNG, JPEG and DICOM files, as grey values between 0 and 1 with their history.

The kind of a file is told by its first bytes, never by its name. Values are scaled by the depth that the header
states, never by the picture's own maximum, so that two pictures of a study stay comparable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError
from medground.imaging import _raster
from medground.imaging._display import Displayed, Size
from medground.imaging._files import MAX_PIXELS, contents, named

_HEAD = 1 << 16  # bytes in which most headers lie


@dataclass(frozen=True, eq=False)
class Radiograph:
    """A decoded picture: dark where the detector saw much radiation (lungs), bright where it saw little (bone).

    Attributes:
        pixels: ``(height, width)`` float32 in [0, 1].
        case_id: of the case that it belongs to.
        patient_id: who was imaged; None: unknown.
        source: name of the file, without its folder.
        value_range: the values (stored, after a DICOM's rescale) that were mapped to 0 and 1.
        steps: how it was decoded, in words, in order.
        colour: ``(height, width, 3)`` whole levels, where colours were asked for (``imaging.colour``) and are there.
    """

    pixels: NDArray[np.float32]
    case_id: str = ""
    patient_id: str | None = None
    source: str = ""
    value_range: tuple[float, float] = (0.0, 1.0)
    steps: tuple[str, ...] = ()
    colour: NDArray[np.uint8] | None = None

    @property
    def size(self) -> Size:
        """``(width, height)``."""
        return self.pixels.shape[1], self.pixels.shape[0]

    def with_ids(self, case_id: str, patient_id: str | None) -> Radiograph:
        """Return the same picture, named."""
        return replace(self, case_id=case_id, patient_id=patient_id)


def read_radiograph(
    path: str | Path, *, case_id: str = "", patient_id: str | None = None, max_pixels: int = MAX_PIXELS
) -> Radiograph:
    """Decode a file.

    PNG: 1 to 16 bit, grey, RGB or palette, with or without alpha (ignored); animated ones are refused. JPEG: 8 bit,
    grey or colour; CMYK is refused, an EXIF rotation is not applied. DICOM: one frame; modality LUT or rescale, then
    VOI LUT or the first window (a LUT goes before a window, as in pydicom), then one inversion for MONOCHROME1;
    without a window the full range of the stored bits. Colour becomes luma (ITU-R 601).

    Args:
        path: the file.
        case_id: put into the result.
        patient_id: put into the result.
        max_pixels: larger pictures are refused before they are decoded.

    Raises:
        ImageError: the file cannot be decoded; the message says why and never shows a patient's data.
    """
    file = Path(path)
    data = contents(file)
    try:
        shown = decode(data, max_pixels)
    except ImageError as error:
        raise named(error, file) from error.__cause__
    shown.pixels.flags.writeable = False
    return Radiograph(shown.pixels, case_id, patient_id, file.name, shown.value_range, shown.steps)


def image_size(path: str | Path) -> Size:
    """Return ``(width, height)`` of a file from its header alone.

    Raises:
        ImageError: the file is no PNG, JPEG or DICOM, or its header cannot be read.
    """
    file = Path(path)
    try:
        try:
            return _header_size(contents(file, _HEAD))
        except ImageError:  # the header may be longer than the first bytes
            return _header_size(contents(file))
    except ImageError as error:
        raise named(error, file) from error.__cause__


def decode(data: bytes, max_pixels: int = MAX_PIXELS) -> Displayed:
    """Decode the bytes of a file; see :func:`read_radiograph`.

    Raises:
        ImageError: they cannot be decoded.
    """
    if data.startswith(_raster.PNG_MARK):
        return _raster.read_png(data, max_pixels)
    if data.startswith(_raster.JPEG_MARK):
        return _raster.read_jpeg(data, max_pixels)
    _must_be_dicom(data)
    from medground.imaging import _dicom

    return _dicom.read_dicom(data, max_pixels)


def _header_size(data: bytes) -> Size:
    if data.startswith(_raster.PNG_MARK):
        return _raster.png_size(data)
    if data.startswith(_raster.JPEG_MARK):
        return _raster.jpeg_header(data).size
    _must_be_dicom(data)
    from medground.imaging import _dicom

    return _dicom.dicom_size(data)


def _must_be_dicom(data: bytes) -> None:
    if data[128:132] != b"DICM":
        raise ImageError(
            "a file is neither PNG, JPEG nor DICOM" if data else "a file is empty",
            expected="PNG, JPEG, or DICOM with its mark DICM at byte 128",
            got=f"first bytes {data[:8].hex(' ')}" if data else "0 bytes",
        )
