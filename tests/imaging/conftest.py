"""What the tests of imaging share: a time limit that does not count compiling, and DICOM files made to order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

settings.register_profile("imaging", deadline=None)  # the first call of a kernel compiles it
settings.load_profile("imaging")


@pytest.fixture
def dicom(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a DICOM file with given pixels and attributes, and returns its path."""

    def write(
        stored: Any, *, bits: int | None = None, syntax: str = ExplicitVRLittleEndian, name: str = "x.dcm", **tags: Any
    ) -> Path:
        pixels = np.asarray(stored)
        header = Dataset()
        header.file_meta = FileMetaDataset()
        header.file_meta.TransferSyntaxUID = syntax
        header.SOPClassUID, header.SOPInstanceUID = SecondaryCaptureImageStorage, generate_uid()
        header.PatientName, header.PatientID = "Secret^Person", "SECRET-ID"
        header.Rows, header.Columns = pixels.shape[:2]
        header.SamplesPerPixel = 3 if pixels.ndim == 3 else 1
        header.PhotometricInterpretation = "RGB" if pixels.ndim == 3 else "MONOCHROME2"
        if pixels.ndim == 3:
            header.PlanarConfiguration = 0
        header.BitsAllocated = 8 * pixels.dtype.itemsize
        header.BitsStored = bits or header.BitsAllocated
        header.HighBit = header.BitsStored - 1
        header.PixelRepresentation = int(pixels.dtype.kind == "i")
        header.PixelData = pixels.tobytes() + b"\0" * (pixels.nbytes % 2)
        header["PixelData"].VR = "OB" if pixels.dtype.itemsize == 1 else "OW"
        for keyword, value in tags.items():
            if value is None:
                delattr(header, keyword)
            else:
                setattr(header, keyword, value)
        path = tmp_path / name
        header.save_as(path, enforce_file_format=True)
        return path

    return write
