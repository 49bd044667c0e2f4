"""DICOM files as displayed grey values.

Order of the transforms (DICOM PS3.3 C.11 and C.7.6.3): stored bits -> modality LUT or rescale -> VOI LUT or window ->
one inversion for MONOCHROME1. They act on the table of all values that the stored bits can take, and the picture is
looked up in it, so that the depth comes from the header and every pixel of a value gets the same grey.

Only the attributes listed here are read; nothing about a person leaves or even enters this module.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset
from pydicom.encaps import get_frame
from pydicom.filereader import read_dataset
from pydicom.pixels.decoders.base import Decoder, get_decoder
from pydicom.tag import BaseTag

from medground.errors import ImageError
from medground.imaging import _grey
from medground.imaging._attributes import whole
from medground.imaging._display import Displayed, Size, checked_frame
from medground.imaging._entropy import check_scans
from medground.imaging._lossless import SYNTAXES, read_lossless
from medground.imaging._quiet import quiet
from medground.imaging._raster import checked_end, jpeg_header

_DEFLATED, _IMPLICIT, _BIG = "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2", "1.2.840.10008.1.2.2"
_ROWS, _COLUMNS, _PIXELS = 0x00280010, 0x00280011, 0x7FE00010
_PADDING = 0x00280120
_TAGS = [
    0x00280002,  # Samples per Pixel
    0x00280004,  # Photometric Interpretation
    0x00280006,  # Planar Configuration
    0x00280008,  # Number of Frames
    _ROWS,
    _COLUMNS,
    0x00280100,  # Bits Allocated
    0x00280101,  # Bits Stored
    0x00280102,  # High Bit
    0x00280103,  # Pixel Representation
    0x00281050,  # Window Center
    0x00281051,  # Window Width
    0x00281052,  # Rescale Intercept
    0x00281053,  # Rescale Slope
    0x00281056,  # VOI LUT Function
    0x00283000,  # Modality LUT Sequence
    0x00283010,  # VOI LUT Sequence
    _PADDING,  # Pixel Padding Value
    0x20500010,  # Presentation LUT Sequence
    0x20500020,  # Presentation LUT Shape
    _PIXELS,
]
"""The attributes that are read."""

_ROOM = 1 << 20  # bytes that a header may take beside the pixels

_HINTS = {
    "1.2.840.10008.1.2.4.51": "8 bit is read; for 12 bit: pip install pylibjpeg pylibjpeg-libjpeg (under the GPL)",
}
"""What to do where the decoders that are installed read a part of a transfer syntax only."""

_PLUGINS = ("pydicom", "pillow", "pyjpegls", "pylibjpeg")
"""pydicom's decoding plug-ins in the order they are tried. GDCM, which pydicom would prefer, is not among them: it ends
the whole process on some damaged files."""


def dicom_size(data: bytes) -> Size:
    """Return ``(width, height)`` of a DICOM file's frame, from its first bytes if they hold it."""
    return _size(_dataset(data, [_ROWS, _COLUMNS], last=_COLUMNS))


def read_dicom(data: bytes, max_pixels: int) -> Displayed:
    """Return a DICOM file's displayed values.

    Raises:
        ImageError: damaged, truncated, without pixels, too large, several frames, a palette, or compressed in a way
            that no installed decoder reads.
    """
    header = _dataset(data, _TAGS, most=4 * max_pixels + _ROOM)
    if _PIXELS not in header or not header.PixelData:
        raise ImageError("a DICOM file has no pixels", expected="Pixel Data (7FE0,0010)", got="none")
    checked_frame(_size(header), max_pixels)
    kind = _checked_kind(header)
    syntax = _syntax(data)[0]
    decoder = _decoder(syntax)
    depth = _grey.Depth.of(header, decoder.is_encapsulated)
    with quiet():
        frame = _checked_frame(header) if decoder.is_encapsulated else _checked_length(header)
        stored, interpretation = (read_lossless(frame), kind) if syntax in SYNTAXES else _stored(header, decoder)
    if stored.ndim == 2:
        return _remarked(_grey.displayed(stored, depth, header, kind), header)
    if interpretation.startswith("YBR_FULL"):
        stored = stored[..., :1]  # Y is the luma
    return _remarked(_grey.colour(stored, depth, kind), header)


def _remarked(shown: Displayed, header: Dataset) -> Displayed:
    """Return displayed values with a word on what the header states and nothing here applies."""
    remarks = []
    if _PADDING in header:
        remarks.append("padding value shown as any other")
    shape = str(header.get("PresentationLUTShape", "")).strip()
    if shape == "INVERSE" or "PresentationLUTSequence" in header:
        remarks.append("presentation LUT not applied")
    return shown._replace(steps=(*shown.steps, *remarks)) if remarks else shown


def _checked_kind(header: Dataset) -> str:
    """Return the photometric interpretation, if it and the frames are ones to read."""
    frames = whole(header, "NumberOfFrames", 1)
    if frames > 1:
        raise ImageError("a DICOM file holds several frames", expected="1", got=frames)
    kind = str(header.get("PhotometricInterpretation", "")).strip()
    samples = whole(header, "SamplesPerPixel", 1)
    grey = kind in {"MONOCHROME1", "MONOCHROME2"} and samples == 1
    if not grey and not (samples == 3 and kind in _grey.COLOURS):
        raise ImageError(
            "a DICOM file's kind of picture is not read",
            where="Photometric Interpretation (0028,0004)",
            expected="MONOCHROME1 or MONOCHROME2 with 1 sample, or RGB or YBR with 3",
            got=f"{kind[:20]!r} with {samples}",
        )
    return kind


def _decoder(syntax: str) -> Decoder:
    """Return what decodes a transfer syntax.

    Raises:
        ImageError: the transfer syntax is unknown, or nothing that is installed decodes it.
    """
    try:
        with quiet():
            decoder = get_decoder(syntax)
    except NotImplementedError:
        raise ImageError("a DICOM file's transfer syntax is unknown", where="(0002,0010)", got=repr(syntax)) from None
    if syntax not in SYNTAXES and not _plugins(decoder):
        raise ImageError(
            f"no decoder for this DICOM file's compression is installed: {decoder.UID.name}",
            where="Transfer Syntax UID (0002,0010)",
            got=syntax,
            fix="pip install 'medground[dicom]'",
        )
    return decoder


def _plugins(decoder: Decoder) -> list[str]:
    """Return the plug-ins to try, in order; uncompressed pixels need none."""
    return [name for name in _PLUGINS if name in decoder.available_plugins] if decoder.is_encapsulated else [""]


def _stored(header: Dataset, decoder: Decoder) -> tuple[NDArray[Any], str]:
    """Return the stored values, ``(h, w)`` or ``(h, w, 3)``, and the photometric interpretation they have now."""
    causes: list[Exception] = []
    for plugin in _plugins(decoder):
        try:
            stored, header_read = decoder.as_array(
                header, index=0, raw=True, decoding_plugin=plugin, correct_unused_bits=False
            )
            return np.asarray(stored), str(header_read["photometric_interpretation"])
        except Exception as error:
            causes.append(error)
    raise ImageError(
        "a DICOM file's pixels cannot be decoded",
        where=f"Pixel Data (7FE0,0010), {decoder.UID.name}",
        expected="{} x {} pixels".format(*_size(header)),
        got=_told(causes[0]),
        fix=_HINTS.get(decoder.UID),
    ) from causes[0]


def _told(cause: Exception) -> str:
    """Return an error in one line, without addresses of objects: they would differ from run to run."""
    text = re.sub(r"<\S+ object at 0x[0-9a-f]+>", "the frame", f"{type(cause).__name__}: {cause}")
    return " ".join(text.split())[:300]


def _checked_length(header: Dataset) -> bytes:
    """Refuse uncompressed pixels of which the header describes a part only; too few are left to the decoder."""
    width, height = _size(header)
    bits = whole(header, "SamplesPerPixel", 1) * whole(header, "BitsAllocated", 0)
    expected = (width * height * bits + 7) // 8
    surplus = header.PixelData[expected:]
    if len(set(surplus)) > 1:  # padding is one value over and over
        raise ImageError(
            "a DICOM file holds more pixels than its header says",
            where="Rows (0028,0010), Columns (0028,0011), Pixel Data (7FE0,0010)",
            expected=f"{expected} bytes for {width} x {height} pixels",
            got=f"{len(header.PixelData)} bytes",
        )
    return b""


def _checked_frame(header: Dataset) -> bytes:
    """Return the compressed frame, if its own header states the right size; decoders allocate what that says."""
    try:
        frame: bytes = get_frame(header.PixelData, 0, number_of_frames=1)
    except Exception as error:  # damage shows as many kinds of error
        raise ImageError(
            "a DICOM file's compressed frame cannot be found", where="Pixel Data (7FE0,0010)", got=type(error).__name__
        ) from error
    start = frame.find(b"\xff\x4f\xff\x51", 0, 512)
    if 0 <= start <= len(frame) - 24:  # JPEG 2000
        x1, y1, x0, y0 = struct.unpack_from(">IIII", frame, start + 8)
        size = x1 - x0, y1 - y0
    elif frame.startswith(b"\xff\xd8"):  # the other JPEGs
        jpeg = jpeg_header(frame)
        checked_end(frame, jpeg)
        check_scans(frame)
        if jpeg.channels != whole(header, "SamplesPerPixel", 1):
            raise ImageError("a DICOM file's compressed frame has other channels than its header", got=jpeg.channels)
        size = jpeg.size
    else:  # RLE, whose frames have no size of their own
        return frame
    if size != _size(header):
        raise ImageError(
            "a DICOM file's compressed frame has another size than its header",
            expected="{} x {}".format(*_size(header)),
            got=f"{size[0]} x {size[1]}",
        )
    return frame


def _dataset(data: bytes, tags: list[int], *, last: int | None = None, most: int = _ROOM) -> Dataset:
    """Return the listed attributes: of the whole file, or up to the tag ``last``, which may be all that is there."""
    syntax, start = _syntax(data)
    body = data[start:]
    if syntax == _DEFLATED:
        body = _inflated(body, most, whole=last is None)

    def beyond(tag: BaseTag, *_: object) -> bool:
        return last is not None and tag > last

    try:
        with quiet():
            header = read_dataset(
                io.BytesIO(body), syntax == _IMPLICIT, syntax != _BIG, stop_when=beyond, specific_tags=tags
            )
            for tag in tags:  # turns raw bytes into values, where bad ones show
                header.get(tag)
    except Exception as error:  # damage shows as many kinds of error; their text could quote the file
        raise ImageError(
            "a DICOM file is damaged or truncated", where="its data elements", got=type(error).__name__
        ) from None
    return header


def _inflated(body: bytes, most: int, whole: bool) -> bytes:
    """Return a deflated data set, all of it or its beginning."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        inflated = stream.decompress(body, most)
    except zlib.error as error:
        raise ImageError("a deflated DICOM file is damaged", got=error) from error
    if whole and stream.unconsumed_tail:
        raise ImageError(
            "a deflated DICOM file is too large, which can be an attack (a decompression bomb)",
            expected=f"at most {most} bytes inflated",
        )
    if whole and not stream.eof:
        raise ImageError("a deflated DICOM file is truncated", got=f"{len(inflated)} bytes inflated")
    return inflated


def _syntax(data: bytes) -> tuple[str, int]:
    """Return the transfer syntax, and where the data set begins: after group 2, which is explicit little endian."""
    place, syntax = 132, ""
    while place + 8 <= len(data) and data[place : place + 2] == b"\x02\x00":
        element, kind, length = struct.unpack_from("<H2sH", data, place + 2)
        place += 8
        if kind in {b"OB", b"OW", b"UN", b"UT", b"SQ"}:
            if place + 4 > len(data):
                break
            length = struct.unpack_from("<I", data, place)[0]
            place += 4
        if element == 0x0010:
            # 64 characters are the most that the standard allows
            syntax = data[place : place + min(length, 64)].decode("ascii", "replace").strip("\0 ")
        place += length
    if not syntax:
        raise ImageError("a DICOM file names no transfer syntax", where="(0002,0010)")
    return syntax, place


def _size(header: Dataset) -> Size:
    return whole(header, "Columns"), whole(header, "Rows")
