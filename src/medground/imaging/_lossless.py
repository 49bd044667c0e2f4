"""Lossless JPEG (ITU-T T.81 Annex H, DICOM's process 14), which radiographs are often stored in.

The libraries that decode it end the whole process on some damaged files; here a damaged file is an error.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from medground.errors import ImageError
from medground.imaging._display import checked_frame
from medground.imaging._files import MAX_PIXELS
from medground.imaging._raster import jpeg_header

SYNTAXES = frozenset({"1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"})
"""DICOM's transfer syntaxes of lossless JPEG: any predictor, and predictor 1."""

_LOSSLESS = 0xC3  # marker of a frame header: lossless, Huffman coded


class _Scan(NamedTuple):
    """What the segments before the pixels say."""

    tables: list[int]  # Huffman table of each channel
    predictor: int
    shift: int  # low bits that were dropped before coding
    interval: int  # pixels between restarts, 0 for none
    lengths: NDArray[np.uint8]  # (4, 65536) bits of the code that the next 16 bits begin with; 0 for none
    symbols: NDArray[np.uint8]  # (4, 65536) what it stands for


def read_lossless(stream: bytes) -> NDArray[np.uint16]:
    """Return the samples of a lossless JPEG, ``(h, w)`` or ``(h, w, channels)``.

    Raises:
        ImageError: damaged, truncated, or of another kind.
    """
    header = jpeg_header(stream)
    (width, height), channels = checked_frame(header.size, MAX_PIXELS), header.channels
    if not 2 <= header.depth <= 16:
        raise ImageError("a lossless JPEG's depth is not read", expected="2 to 16 bit", got=f"{header.depth} bit")
    try:
        scan, start = _segments(stream, channels, header.depth)
    except (struct.error, IndexError, ValueError) as error:
        raise ImageError("a lossless JPEG's segments are malformed", got=error) from error
    coded = re.split(rb"\xff[\xd0-\xd7]", stream[start : stream.rfind(b"\xff\xd9")])
    out = np.zeros((height, width, channels), dtype=np.int32)
    rows = scan.interval // width if scan.interval else height
    if rows < 1 or scan.interval % width or len(coded) != -(-height // rows):
        raise ImageError(
            "a lossless JPEG's restarts do not fit its rows", expected=f"{-(-height // max(rows, 1))}", got=len(coded)
        )
    tables = np.array(scan.tables, dtype=np.int64)
    first = 1 << (header.depth - scan.shift - 1)
    for part, bits in enumerate(coded):
        data = np.frombuffer(bits.replace(b"\xff\x00", b"\xff"), dtype=np.uint8)
        block = out[part * rows : (part + 1) * rows]
        if not decode(data, scan.lengths, scan.symbols, tables, scan.predictor, first, block):
            raise ImageError("a lossless JPEG is damaged or truncated", where=f"rows from {part * rows}")
    samples = (out << scan.shift).astype(np.uint16)
    return samples[..., 0] if channels == 1 else samples


def _segments(stream: bytes, channels: int, depth: int) -> tuple[_Scan, int]:
    """Read the segments up to the first scan; return them and where the coded pixels begin."""
    lengths, symbols = np.zeros((4, 1 << 16), np.uint8), np.zeros((4, 1 << 16), np.uint8)
    place, interval, names = 2, 0, b""
    while True:
        marker, size = stream[place + 1], struct.unpack_from(">H", stream, place + 2)[0]
        body = stream[place + 4 : place + 2 + size]
        place += 2 + size
        if marker == 0xC4:
            _add_tables(body, lengths, symbols)
        elif marker == 0xDD:
            interval = struct.unpack(">H", body)[0]
        elif marker == _LOSSLESS:
            names = body[6::3]
            if body[7::3] != b"\x11" * channels:
                raise ValueError("channels of different resolution")
        elif marker == 0xDA:
            break
    count = body[0]
    if count != channels or body[1 : 1 + 2 * count : 2] != names:
        raise ValueError("not all channels in one scan")
    tables = [byte >> 4 for byte in body[2 : 2 + 2 * count : 2]]
    predictor, _, shift = body[1 + 2 * count : 4 + 2 * count]
    if max(tables) > 3 or not 1 <= predictor <= 7 or not shift < depth:
        raise ValueError(f"tables {tables}, predictor {predictor}, shift {shift}")
    return _Scan(tables, predictor, shift, interval, lengths, symbols), place


def _add_tables(body: bytes, lengths: NDArray[np.uint8], symbols: NDArray[np.uint8]) -> None:
    """Spread Huffman tables over all 16-bit patterns that begin with a code."""
    while body:
        table, counts = body[0] & 3, body[1:17]
        values = body[17 : 17 + sum(counts)]
        if len(values) != sum(counts) or any(value > 16 for value in values):
            raise ValueError("a Huffman table with other symbols than 0 to 16")
        lengths[table] = 0
        pattern, used = 0, 0
        for length, count in enumerate(counts, start=1):
            for value in values[used : used + count]:
                span = 1 << (16 - length)
                if pattern + span > 1 << 16:
                    raise ValueError("a Huffman table with too many codes")
                lengths[table, pattern : pattern + span] = length
                symbols[table, pattern : pattern + span] = value
                pattern += span
            used += count
        body = body[17 + used :]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def decode(
    data: NDArray[np.uint8],
    lengths: NDArray[np.uint8],
    symbols: NDArray[np.uint8],
    tables: NDArray[np.int64],
    predictor: int,
    first: int,
    out: NDArray[np.int32],
) -> bool:
    """Decode one interval of rows into ``out`` ``(h, w, channels)``; return whether the bits sufficed."""
    store, held, place = 0, 0, 0
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for c in range(out.shape[2]):
                while held < 32 and place < data.size:
                    store = (store << 8) | int(data[place])
                    held, place = held + 8, place + 1
                ahead = (store >> (held - 16) if held >= 16 else store << (16 - held)) & 0xFFFF
                length, size = int(lengths[tables[c], ahead]), int(symbols[tables[c], ahead])
                extra = size if size < 16 else 0
                if length == 0 or length + extra > held:
                    return False
                held -= length + extra
                difference = (store >> held) & ((1 << extra) - 1)
                store &= (1 << held) - 1
                if size == 16:
                    difference = 32768
                elif size > 0 and difference < 1 << (size - 1):
                    difference -= (1 << size) - 1
                expected = first if i == 0 and j == 0 else _predicted(out, i, j, c, predictor)
                out[i, j, c] = (expected + difference) & 0xFFFF
    return True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _predicted(out: NDArray[np.int32], i: int, j: int, c: int, predictor: int) -> int:
    """Return what T.81 table H.1 expects: the first row from the left, the first column from above."""
    left = int(out[i, j - 1, c]) if j > 0 else 0
    above = int(out[i - 1, j, c]) if i > 0 else 0
    corner = int(out[i - 1, j - 1, c]) if i > 0 and j > 0 else 0
    if i == 0 or (j > 0 and predictor == 1):
        expected = left
    elif j == 0 or predictor == 2:
        expected = above
    elif predictor == 3:
        expected = corner
    elif predictor == 4:
        expected = left + above - corner
    elif predictor == 5:
        expected = left + ((above - corner) >> 1)
    elif predictor == 6:
        expected = above + ((left - corner) >> 1)
    else:
        expected = (left + above) >> 1
    return expected
