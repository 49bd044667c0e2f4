"""Pictures with the colours that they were published in, for models that were trained on such.

Figures of papers hold histology and endoscopy, where colour is what is to be seen. A radiograph stays what it is: its
grey values are read as always, and colours are kept beside them only where the file has any.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.errors import ImageError
from medground.imaging._files import MAX_PIXELS, contents, named
from medground.imaging.reading import Radiograph, read_radiograph

_COLOURED = ("RGB", "RGBA", "P", "YCbCr")


def read_picture(
    path: str | Path, *, case_id: str = "", patient_id: str | None = None, max_pixels: int = MAX_PIXELS
) -> Radiograph:
    """Decode a file as :func:`read_radiograph` does, and keep its colours where it has any.

    Args:
        path: PNG, JPEG or DICOM.
        case_id: put into the result.
        patient_id: put into the result.
        max_pixels: larger pictures are refused before they are decoded.

    Returns:
        The picture; ``colour`` is ``(height, width, 3)`` of whole levels, or None where the three channels are equal.

    Raises:
        ImageError: the file cannot be decoded.
    """
    picture = read_radiograph(path, case_id=case_id, patient_id=patient_id, max_pixels=max_pixels)
    if not picture.steps or "colour" not in " ".join(picture.steps):
        return picture
    try:
        colour = _rgb(contents(Path(path)))
    except ImageError as error:
        raise named(error, Path(path)) from error.__cause__
    if colour is None or colour.shape[:2] != picture.pixels.shape:
        return picture
    colour.flags.writeable = False
    return replace(picture, colour=colour, steps=(*picture.steps, "colours kept beside"))


def _rgb(data: bytes) -> NDArray[np.uint8] | None:
    """Return the three channels at 8 bit, or None where they are equal."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
            if opened.mode not in _COLOURED:
                return None
            levels = np.array(opened.convert("RGB"), dtype=np.uint8)
    except Exception as error:  # damage shows as many kinds of error in Pillow
        raise ImageError("a picture's colours cannot be decoded", got=f"{type(error).__name__}: {error}") from error
    same = (levels[..., 0] == levels[..., 1]).all() and (levels[..., 1] == levels[..., 2]).all()
    return None if same else levels
