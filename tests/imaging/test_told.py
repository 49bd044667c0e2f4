"""Messages hold no address: a failure reads the same in every run."""

from __future__ import annotations

import io

from medground.imaging._dicom import _told


def test_an_error_is_told_without_addresses():
    stream = io.BytesIO(b"x")
    told = _told(ValueError(f"cannot identify image file {stream!r}\nin the end"))
    assert told == "ValueError: cannot identify image file the frame in the end"
