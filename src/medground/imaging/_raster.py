"""PNG and JPEG pictures, as grey values with the depth that their headers state.

Both containers are walked here before a decoder sees them: sizes are known before anything is allocated, a damaged or
truncated file is refused whatever Pillow's settings are, and the chunks and segments that pixels do not need (texts,
profiles, EXIF) never reach a parser.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from medground.errors import ImageError
from medground.imaging._display import Displayed, Size, checked_frame
from medground.imaging._entropy import check_scans
from medground.imaging._exif import exif_turn, stated_turn

PNG_MARK = b"\x89PNG\r\n\x1a\n"
JPEG_MARK = b"\xff\xd8\xff"

_COLOUR = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGBA"}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


class _Png(NamedTuple):
    size: Size
    depth: int
    colour: int
    interlaced: int
    palette: bytes
    stream: bytes
    turn: int


def png_size(head: bytes) -> Size:
    """Return ``(width, height)`` from the first bytes of a PNG."""
    if len(head) < 33 or head[12:16] != b"IHDR":
        raise ImageError("a PNG has no header", expected="a chunk IHDR after the mark", got=f"{len(head)} bytes")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def read_png(data: bytes, max_pixels: int) -> Displayed:
    """Return a PNG's grey values; alpha is ignored, colour becomes luma (ITU-R 601), an EXIF rotation is not applied.

    Raises:
        ImageError: damaged, truncated, animated or too large.
    """
    png = _chunks(data)
    checked_frame(png.size, max_pixels)
    steps = [f"PNG {_COLOUR[png.colour]}, {png.depth} bit"]
    if png.colour in {4, 6}:
        steps.append("alpha ignored")
    if png.colour in {2, 3, 6}:
        steps.append("colour to luma (ITU-R 601)")
    if png.turn != 1:
        steps.append(f"EXIF orientation {png.turn} not applied")
    top = 255 if png.colour == 3 else (1 << png.depth) - 1
    grey = _colour_16(png) if png.depth == 16 and png.colour else _plain(png)
    return Displayed(_scaled(grey, _white(png)), (0.0, float(top)), tuple(steps))


def grey_values(data: bytes, max_pixels: int) -> tuple[NDArray[Any], int]:
    """Return a grey PNG's whole values, and the one that stands for white.

    Raises:
        ImageError: not grey, damaged, truncated, animated or too large.
    """
    png = _chunks(data)
    checked_frame(png.size, max_pixels)
    if png.colour != 0:
        raise ImageError("a PNG is not grey", expected="grey without alpha", got=_COLOUR[png.colour])
    return _plain(png), _white(png)


def _white(png: _Png) -> int:
    return 65535 if png.depth == 16 else 255  # Pillow stretches depths below 8 to 8


def _scaled(grey: NDArray[Any], white: int) -> NDArray[np.float32]:
    pixels = grey.astype(np.float32)
    pixels /= np.float32(white)
    return pixels


def _plain(png: _Png) -> NDArray[np.uint8 | np.uint16]:
    """Return grey values of any PNG but colour or alpha at 16 bit."""
    if png.colour == 3:
        name = "P" if png.depth == 8 else f"P;{png.depth}"
        picture = _inflated(png, "P", name)
        if len(png.palette) % 3 or not 3 <= len(png.palette) <= 768:
            raise ImageError("a PNG's palette is malformed", got=f"{len(png.palette)} bytes")
        if int(np.asarray(picture).max()) >= len(png.palette) // 3:
            raise ImageError("a PNG names a colour beyond its palette", expected=f"{len(png.palette) // 3} colours")
        picture.putpalette(png.palette)
        return np.asarray(picture.convert("RGB").convert("L"))
    if png.colour == 0:
        mode, name = ("I;16", "I;16B") if png.depth == 16 else ("L", "L" if png.depth == 8 else f"L;{png.depth}")
        mode, name = ("1", "1") if png.depth == 1 else (mode, name)
        picture = _inflated(png, mode, name)
        return np.asarray(picture.convert("L") if mode == "1" else picture)
    mode = {2: "RGB", 4: "LA", 6: "RGBA"}[png.colour]
    grey: NDArray[np.uint8] = np.asarray(_inflated(png, mode, mode).convert("L"))
    return grey


def _colour_16(png: _Png) -> NDArray[np.int64]:
    """Return grey values of a 16-bit PNG with colour or alpha, which Pillow gives at 8 bit only.

    It unpacks the upper or the lower bytes as asked, so both together are the whole values.
    """
    if png.colour == 4:  # two bytes of grey and two of alpha look like four channels of 8 bit
        quads: NDArray[np.int64] = np.asarray(_inflated(png, "RGBA", "RGBA"), dtype=np.int64)
        return quads[..., 0] << 8 | quads[..., 1]
    mode = "RGB" if png.colour == 2 else "RGBA"
    upper = np.asarray(_inflated(png, mode, f"{mode};16B"), dtype=np.int64)
    lower = np.asarray(_inflated(png, mode, f"{mode};16L"), dtype=np.int64)
    return luma(upper[..., :3] << 8 | lower[..., :3])


def luma(rgb: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return ITU-R 601 luma of whole numbers ``(..., 3)``, rounded as Pillow rounds; grey keeps its value."""
    weights = np.array([19595, 38470, 7471], dtype=np.int64)  # of 65536
    weighted: NDArray[np.int64] = rgb.astype(np.int64) @ weights
    return (weighted + 32768) >> 16


def _inflated(png: _Png, mode: str, name: str) -> Image.Image:
    try:
        return Image.frombytes(mode, png.size, png.stream, "zip", name, png.interlaced)
    except (ValueError, OSError, MemoryError) as error:
        raise ImageError("a PNG's pixels cannot be decoded", expected="a whole stream of pixels", got=error) from error


def _chunks(data: bytes) -> _Png:
    """Return what pixels need of a PNG."""
    header, palette, stream, turn = b"", b"", [], 1
    for kind, body in _walked(data):
        if (kind == b"IHDR") != (not header):
            raise ImageError("a PNG is malformed", where=f"chunk {kind!r}", expected="one IHDR, at the start")
        if kind == b"IHDR":
            header = bytes(body)
        elif kind == b"PLTE":
            palette = bytes(body)
        elif kind == b"IDAT":
            stream.append(body)
        elif kind == b"eXIf":
            turn = stated_turn(bytes(body))
        elif kind == b"acTL":
            raise ImageError("a PNG is animated", expected="one picture")
        elif not kind[0] & 0x20:  # a capital letter marks what a reader must understand
            raise ImageError("a PNG is of a kind that is not read", where=f"chunk {kind!r}")
    if len(header) != 13:
        raise ImageError("a PNG's header is malformed", expected="13 bytes", got=f"{len(header)} bytes")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(colour, ()):
        raise ImageError("a PNG's header is malformed", expected="a known kind and depth", got=f"{colour}, {depth}")
    if not stream:
        raise ImageError("a PNG has no pixels", expected="a chunk IDAT")
    return _Png((width, height), depth, colour, int(interlaced != 0), palette, b"".join(stream), turn)


def _walked(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kind and content of a PNG's chunks up to IEND, every check sum checked."""
    view, place = memoryview(data), len(PNG_MARK)
    while True:
        if place + 12 > len(data):
            raise ImageError("a PNG is truncated", expected="a chunk IEND at the end", got=f"{len(data)} bytes")
        length, kind = struct.unpack_from(">I4s", data, place)
        end = place + 12 + length
        if end > len(data):
            raise ImageError("a PNG is truncated", expected=f"{end} bytes or more", got=f"{len(data)} bytes")
        if zlib.crc32(view[place + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise ImageError("a PNG is damaged", where=f"chunk at byte {place}", expected="the chunk's own check sum")
        if kind == b"IEND":
            return
        yield kind, view[place + 8 : end - 4]
        place = end


class JpegHeader(NamedTuple):
    """What a JPEG's frame header says, and the segments that a decoder needs."""

    size: Size
    depth: int
    channels: int
    segments: bytes
    scan: int


def jpeg_header(data: bytes) -> JpegHeader:
    """Walk a JPEG's segments up to the first scan; applications' segments but JFIF's and Adobe's are left out.

    Raises:
        ImageError: truncated, or no JPEG.
    """
    place, kept, frame = 2, [data[:2]], None
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # fill
            place += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:  # markers that stand alone
            place += 2
            continue
        end = place + 2 + int(struct.unpack_from(">H", data, place + 2)[0])
        # C4, C8 and CC lie among the frame headers but are none; F7 is the frame header of JPEG-LS.
        if (0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}) or marker == 0xF7:
            if place + 10 > len(data):
                break
            depth, height, width, channels = struct.unpack_from(">BHHB", data, place + 4)
            frame = (width, height), depth, channels
        if marker == 0xDA and frame is not None:
            return JpegHeader(*frame, b"".join(kept), place)
        if not (0xE0 <= marker <= 0xEF or marker == 0xFE) or marker in {0xE0, 0xEE}:
            kept.append(data[place:end])
        place = end
    raise ImageError("a JPEG is truncated or damaged", expected="a frame header and a scan", got=f"{len(data)} bytes")


def checked_end(data: bytes, header: JpegHeader) -> None:
    """Refuse a JPEG without its end, which Pillow may have been told to fill with grey.

    Raises:
        ImageError: truncated.
    """
    # Inside a scan FF is never followed by D9, so this is the end of the picture itself.
    if data.find(b"\xff\xd9", header.scan) < 0:
        raise ImageError("a JPEG is truncated", expected="an end-of-image marker", got=f"{len(data)} bytes")


def read_jpeg(data: bytes, max_pixels: int) -> Displayed:
    """Return a JPEG's grey values; colour becomes luma (ITU-R 601), an EXIF rotation is not applied.

    Raises:
        ImageError: damaged, truncated, too large, CMYK or of another depth than 8 bit.
    """
    header = jpeg_header(data)
    checked_frame(header.size, max_pixels)
    if header.depth != 8 or header.channels not in {1, 3}:
        raise ImageError(
            "a JPEG is not a radiograph's",
            expected="8 bit, grey or colour",
            got=f"{header.depth} bit, {header.channels} channels" + (" (CMYK)" if header.channels == 4 else ""),
            fix="convert it to 8-bit grey, or to PNG",
        )
    checked_end(data, header)
    check_scans(data)
    try:
        with JpegImageFile(io.BytesIO(header.segments + data[header.scan :])) as picture:
            grey = np.asarray(picture if picture.mode == "L" else picture.convert("L"))
    except Exception as error:  # damage shows as many kinds of error in Pillow
        raise ImageError("a JPEG cannot be decoded", got=f"{type(error).__name__}: {error}") from error
    steps = ["JPEG grey, 8 bit"] if header.channels == 1 else ["JPEG colour, 8 bit", "colour to luma (ITU-R 601)"]
    if (turn := exif_turn(data)) != 1:
        steps.append(f"EXIF orientation {turn} not applied")
    return Displayed(_scaled(grey, 255), (0.0, 255.0), tuple(steps))
