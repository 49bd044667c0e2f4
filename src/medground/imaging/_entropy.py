"""Accounts for every bit of a JPEG's scans, since decoders fill what is damaged and say nothing.

The symbols of every scan (ITU-T T.81, baseline, extended and progressive, Huffman coded) are walked without making a
picture: codes that no table has, coefficients beyond the last of a block, values beyond what 8-bit pixels can give,
blocks too few or bits too many are errors. What stays unseen is a changed bit inside a number that leaves the length of
its code and its range as they were: only a check sum of the whole file (which every receipt holds) shows it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError
from medground.imaging._entropy_walk import FAULTS, steps_of, walk

_HUFFMAN = {0xC0, 0xC1, 0xC2}  # baseline, extended, progressive
_PROGRESSIVE = 0xC2
_JPEG_LS = 0xF7


class _Component(NamedTuple):
    """One channel: its blocks lie in a grid of whole minimal units, ``own`` of which show pixels."""

    name: int
    across: int
    down: int
    grid: tuple[int, int]
    own: tuple[int, int]
    start: int
    quantiser: int


@dataclass
class _Frame:
    """What the segments have said so far."""

    progressive: bool = False
    depth: int = 8
    units: tuple[int, int] = (0, 0)
    components: list[_Component] = field(default_factory=list)
    lengths: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((8, 1 << 16), np.uint8))
    symbols: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((8, 1 << 16), np.uint8))
    steps: NDArray[np.uint16] = field(default_factory=lambda: np.zeros((8, 1 << 16), np.uint16))
    first: dict[int, int] = field(default_factory=dict)  # quantiser of the mean, a table
    interval: int = 0
    told: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 64), np.int8))  # bits still to come
    nonzero: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 64), np.uint8))


def check_scans(data: bytes) -> None:
    """Refuse a JPEG whose scans do not hold exactly the blocks that its header states.

    Args:
        data: the whole file, its frame header already found sound.

    Raises:
        ImageError: damaged or cut. Arithmetic and lossless coding are left to others.
    """
    frame, scans = _Frame(), 0
    try:
        for marker, body, coded in _segments(data):
            if marker == 0xDB:
                _quantisers(body, frame)
            elif marker == 0xC4:
                _tables(body, frame)
            elif marker == 0xDD:
                frame.interval = struct.unpack(">H", body[:2])[0]
            elif marker in _HUFFMAN:
                _start(marker, body, frame)
            elif (0xC0 <= marker <= 0xCF and marker != 0xCC) or marker == _JPEG_LS:
                return
            elif marker == 0xDA:
                _scan(coded, body, frame)
                scans += 1
    except (struct.error, IndexError, ValueError, KeyError, StopIteration) as error:
        raise ImageError("a JPEG is damaged", where="its segments", got=f"{error}"[:120]) from error
    if not scans or (frame.told[:, 0] > 0).any() or (frame.progressive and (frame.told > 0).any()):
        expected = "scans of every channel, to the last bit"
        raise ImageError("a JPEG is truncated", expected=expected, got=f"{scans} scans")


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield marker, content, and what is coded behind it (of a scan), of every segment up to the picture's end."""
    place = 2
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            raise ValueError(f"byte {place} is no marker")
        marker = data[place + 1]
        if marker == 0xD9:
            return
        if marker in {0xFF, 0x01} or 0xD0 <= marker <= 0xD7:
            place += 1 if marker == 0xFF else 2
            continue
        end = place + 2 + int(struct.unpack_from(">H", data, place + 2)[0])
        stop = _scan_end(data, end) if marker == 0xDA else end
        yield marker, data[place + 4 : end], data[end:stop]
        place = stop


def _scan_end(data: bytes, start: int) -> int:
    """Return where the first marker stands that is no restart mark and no stuffing; the end of the data without one."""
    places, behind = _marked(data, start)
    ends = places[(behind != 0) & (behind != 0xFF) & ((behind < 0xD0) | (behind > 0xD7))]
    return int(ends[0]) if ends.size else len(data)


def _marked(data: bytes, start: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where a byte of ones stands, from a place on, and the byte behind each."""
    content = np.frombuffer(data, np.uint8)
    places = start + np.flatnonzero(content[start:-1] == 0xFF)
    return places, content[places + 1]


def _start(marker: int, body: bytes, frame: _Frame) -> None:
    depth, height, width, count = struct.unpack_from(">BHHB", body)
    if frame.components:
        raise ValueError("two frame headers")
    parts = [struct.unpack_from("BBB", body, 6 + 3 * i) for i in range(count)]
    most = [max(sides) for sides in zip(*((s >> 4, s & 15) for _, s, _ in parts), strict=True)]
    if min(min(s >> 4, s & 15) for _, s, _ in parts) < 1 or max(most) > 4:
        raise ValueError("sampling factors of 1 to 4")
    across, down = -(-width // (8 * most[0])), -(-height // (8 * most[1]))
    start = 0
    for name, sampling, table in parts:
        h, v = sampling >> 4, sampling & 15
        shown = (width * h + most[0] - 1) // most[0], (height * v + most[1] - 1) // most[1]
        own = (shown[0] + 7) // 8, (shown[1] + 7) // 8
        frame.components.append(_Component(name, h, v, (across * h, down * v), own, start, table))
        start += across * h * down * v
    frame.progressive, frame.depth, frame.units = marker == _PROGRESSIVE, depth, (across, down)
    frame.told = np.full((len(parts), 64), 127, np.int8)
    frame.nonzero = np.zeros((start if frame.progressive else 1, 64), np.uint8)


def _quantisers(body: bytes, frame: _Frame) -> None:
    while body:
        wide = body[0] >> 4
        frame.first[body[0] & 15] = struct.unpack_from(">H", body, 1)[0] if wide else body[1]
        body = body[1 + (128 if wide else 64) :]


def _tables(body: bytes, frame: _Frame) -> None:
    """Spread Huffman tables over all 16-bit patterns that begin with a code; those of coefficients come behind."""
    while body:
        table = (body[0] & 3) + 4 * (body[0] >> 4 & 1)
        counts = body[1:17]
        values = body[17 : 17 + sum(counts)]
        if len(counts) != 16 or len(values) != sum(counts):
            raise ValueError("a Huffman table is cut off")
        frame.lengths[table], frame.symbols[table], frame.steps[table] = _spread(counts, values)
        body = body[17 + len(values) :]


@lru_cache(maxsize=64)  # most pictures of a dataset share their tables
def _spread(counts: bytes, values: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint16]]:
    """Return what every 16-bit pattern begins with: the length of its code, its symbol, its step."""
    lengths, symbols = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    pattern, used = 0, 0
    for length, count in enumerate(counts, start=1):
        span = 1 << (16 - length)
        for value in values[used : used + count]:
            lengths[pattern : pattern + span] = length
            symbols[pattern : pattern + span] = value
            pattern += span
        used += count
    if pattern > 1 << 16:
        raise ValueError("a Huffman table with too many codes")
    return lengths, symbols, steps_of(lengths, symbols)


def _scan(coded: bytes, head: bytes, frame: _Frame) -> None:
    """Walk the symbols of one scan."""
    chosen = [
        (next(i for i, c in enumerate(frame.components) if c.name == head[1 + 2 * n]), head[2 + 2 * n])
        for n in range(head[0])
    ]
    first, last, bits = head[1 + 2 * head[0] : 4 + 2 * head[0]]
    high, low = bits >> 4, bits & 15
    if not frame.progressive:
        first, last, high, low = 0, 63, 0, 0
    elif last > 63 or first > last or (first == 0) != (last == 0) or (first and len(chosen) > 1):
        raise ValueError("a scan of coefficients that cannot be")
    _note_told(frame, [i for i, _ in chosen], first, last, high, low)
    places, owners = _order(frame, [i for i, _ in chosen])
    owned = [frame.components[i] for i, _ in chosen]
    unit = 1 if len(owned) == 1 else sum(c.across * c.down for c in owned)
    each = unit * frame.interval or len(places)
    pieces = _pieces(coded)
    bounds = list(pairwise([*range(0, len(places), each), len(places)]))
    if len(pieces) != len(bounds):
        raise ImageError(
            "a JPEG is truncated or damaged", where="its restart marks", expected=len(bounds), got=len(pieces)
        )
    tables = np.array([[t >> 4 & 3, 4 + (t & 3)] for _, t in chosen], dtype=np.int64)
    # A block of 8-bit pixels has a mean of at most 1024 before it is divided by its quantiser.
    limits = np.array([(4 << frame.depth) // max(frame.first.get(c.quantiser, 1), 1) + 1 for c in owned], np.int64)
    for (begin, end), piece in zip(bounds, pieces, strict=True):
        code = np.frombuffer(piece + b"\xff" * 8, dtype=np.uint8)
        fault, used = walk(
            *(code, 8 * len(piece), places[begin:end], owners[begin:end], tables, frame.lengths, frame.symbols),
            *(frame.steps, frame.nonzero, limits, (first, last), (high, low), frame.progressive, frame.depth + 3),
        )
        if fault:
            raise ImageError("a JPEG is truncated or damaged", where="a scan", got=FAULTS[fault])
        if 8 * len(piece) - used >= 8:
            raise ImageError("a JPEG is damaged", where="a scan", expected="no more bits than its blocks have")


def _note_told(frame: _Frame, components: Sequence[int], first: int, last: int, high: int, low: int) -> None:
    """Note which bits of which coefficients a scan brings; each comes once, the upper ones first."""
    for i in components:
        before = frame.told[i, first : last + 1]
        if (before != (high or 127)).any() or (high and low != high - 1):
            raise ValueError("scans out of order")
        frame.told[i, first : last + 1] = low


def _order(frame: _Frame, components: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each block of a scan lies, in the order of the scan, and whose it is."""
    if len(components) == 1:
        c = frame.components[components[0]]
        rows, columns = np.arange(c.own[1])[:, None], np.arange(c.own[0])
        places = (c.start + rows * c.grid[0] + columns).reshape(-1)
        return places.astype(np.int64), np.zeros(places.size, np.int64)
    parts, owners = [], []
    for owner, i in enumerate(components):
        c = frame.components[i]
        grid = c.start + np.arange(c.grid[0] * c.grid[1]).reshape(frame.units[1], c.down, frame.units[0], c.across)
        parts.append(grid.transpose(0, 2, 1, 3).reshape(-1, c.down * c.across))
        owners += [owner] * (c.down * c.across)
    places = np.concatenate(parts, axis=1)
    return places.reshape(-1).astype(np.int64), np.tile(np.array(owners, np.int64), len(places))


def _pieces(coded: bytes) -> list[bytes]:
    """Return a scan's bytes between restart marks, which count from 0 to 7 over and over, without their stuffing."""
    _, behind = _marked(coded, 0)
    if not ((behind >= 0xD0) & (behind <= 0xD7)).any():
        return [coded.replace(b"\xff\x00", b"\xff")]
    parts = re.split(rb"\xff+([\xd0-\xd7])", coded)
    marks = [mark[0] - 0xD0 for mark in parts[1::2]]
    if marks != [i % 8 for i in range(len(marks))]:
        raise ImageError("a JPEG is damaged", where="its restart marks", got="marks out of order")
    return [part.replace(b"\xff\x00", b"\xff") for part in parts[::2]]
