"""Decoded pictures as few bytes, and back to the same bits.

A picture of up to 16 bit has at most 65,536 different greys, whatever rescale, window and inversion made them. They are
kept as a table, and every pixel as its number in that table: one or two bytes in place of four, and nothing rounded.
What a model makes of a picture before its network has mostly fewer, one table a channel.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from medground.imaging._display import Displayed

_MOST = 1 << 16  # greys that a table may have
_SLOTS = 1 << 18  # of the hash table; a quarter of them filled at the most
_CODES = {"uint8", "uint16", "float32"}


def pack(shown: Displayed) -> list[bytes]:
    """Return a picture as parts to be written one after another."""
    pixels = np.ascontiguousarray(shown.pixels, dtype=np.float32)
    greys, codes = np.empty(_MOST, dtype=np.uint32), np.empty(pixels.size, dtype=np.uint16)
    count = number(pixels.view(np.uint32).ravel(), greys, codes)
    kept: NDArray[Any]
    if count < 0:  # too many greys for a table
        count, kept = 0, pixels.ravel()
    else:
        kept = codes.astype(np.uint8) if count <= 1 << 8 else codes
    about = {
        "size": pixels.shape,
        "greys": count,
        "codes": kept.dtype.name,
        "range": shown.value_range,
        "steps": shown.steps,
    }
    head = json.dumps(about).encode()
    head += b" " * (-len(head) % 4)  # numbers lie where a processor likes to read them
    return [struct.pack("<I", len(head)), head, greys[:count].tobytes(), kept.tobytes()]


def unpack(data: memoryview) -> Displayed:
    """Return the picture that was packed.

    Raises:
        ValueError: these are not the bytes of one.
    """
    try:
        start = 4 + struct.unpack_from("<I", data)[0]
        about: dict[str, Any] = json.loads(bytes(data[4:start]))
        (height, width), count, kind = about["size"], about["greys"], about["codes"]
        if kind not in _CODES:
            raise ValueError(f"codes of type {kind}")
        greys = np.frombuffer(data, np.float32, count, start)
        codes = np.frombuffer(data, kind, -1, start + 4 * count)
        pixels = (_looked_up(greys, codes) if count else codes.astype(np.float32)).reshape(height, width)
        low, high = about["range"]
        return Displayed(pixels, (float(low), float(high)), tuple(about["steps"]))
    except (struct.error, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def _looked_up(greys: NDArray[np.float32], codes: NDArray[Any]) -> NDArray[np.float32]:
    if codes.size and codes.max() >= greys.size:
        raise ValueError("a grey beyond the table")
    pixels = np.empty(codes.size, dtype=np.float32)
    look_up(greys, codes, pixels)
    return pixels


def pack_array(array: NDArray[Any], about: Any) -> list[bytes]:
    """Return an array and JSON-like facts as parts to be written one after another, nothing rounded.

    Planes of float32 with at most 256 different values are kept as a table and one byte a value; a plane whose bytes
    are those of the plane before it (three equal channels, scaled each in its own way) as its table alone.
    """
    array = np.ascontiguousarray(array)
    planes = _as_codes(array)
    tables = [] if planes is None else [table for table, _ in planes]
    kept = [array] if planes is None else [codes for i, (_, codes) in enumerate(planes) if not _repeats(planes, i)]
    head = {
        "shape": array.shape,
        "dtype": array.dtype.str,
        "greys": [len(table) for table in tables],
        "repeats": [] if planes is None else [_repeats(planes, i) for i in range(len(planes))],
        "about": about,
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    return [struct.pack("<I", len(text)), text, *(t.tobytes() for t in tables), *(k.tobytes() for k in kept)]


def unpack_array(data: memoryview) -> tuple[NDArray[Any], Any]:
    """Return the array and the facts that were packed.

    Raises:
        ValueError: these are not the bytes of one.
    """
    try:
        at = 4 + struct.unpack_from("<I", data)[0]
        head: dict[str, Any] = json.loads(bytes(data[4:at]))
        shape, dtype = tuple(head["shape"]), np.dtype(head["dtype"])
        if not head["greys"]:
            return np.frombuffer(data, dtype, -1, at).reshape(shape).copy(), head["about"]
        size, after, codes = math.prod(shape[1:]), at + 4 * sum(head["greys"]), np.empty(0, np.uint8)
        if len(data) != after + size * head["repeats"].count(False) or shape[0] != len(head["greys"]):
            raise ValueError("the length does not fit the shape")
        planes = np.empty((shape[0], size), np.float32)
        for plane, count, repeats in zip(planes, head["greys"], head["repeats"], strict=True):
            if not repeats:
                codes = np.frombuffer(data, np.uint8, size, after)
                after += size
            plane[:] = _looked_up(np.frombuffer(data, np.float32, count, at), codes)
            at += 4 * count
        return planes.reshape(shape), head["about"]
    except (struct.error, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(str(error)) from error


def _as_codes(array: NDArray[Any]) -> list[tuple[NDArray[np.uint32], NDArray[np.uint8]]] | None:
    """Return a table and one code a value for every plane along the first axis; None where 256 are too few."""
    if array.dtype != np.float32 or array.ndim != 3 or not array.size:
        return None
    planes = []
    for plane in array:
        greys, codes = np.empty(1 << 8, dtype=np.uint32), np.empty(plane.size, dtype=np.uint16)
        count = number(plane.view(np.uint32).ravel(), greys, codes)
        if count < 0:
            return None
        planes.append((greys[:count], codes.astype(np.uint8)))
    return planes


def _repeats(planes: Sequence[tuple[NDArray[np.uint32], NDArray[np.uint8]]], i: int) -> bool:
    return i > 0 and np.array_equal(planes[i][1], planes[i - 1][1])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def number(bits: NDArray[np.uint32], greys: NDArray[np.uint32], codes: NDArray[np.uint16]) -> int:
    """Number different values in the order they are met: the table into ``greys``, each pixel's number into ``codes``.

    Returns:
        How many there are; -1 where there are more than ``greys`` has room for.
    """
    # A hash table with open addressing and a multiplicative hash (Knuth, The Art of Computer Programming 3, 6.4).
    slots = np.full(_SLOTS, -1, dtype=np.int32)
    count = 0
    for i in range(bits.size):
        slot = np.int64(np.uint64(bits[i]) * np.uint64(2654435769) >> np.uint64(14)) & (_SLOTS - 1)
        while slots[slot] >= 0 and greys[slots[slot]] != bits[i]:
            slot = (slot + 1) & (_SLOTS - 1)
        if slots[slot] < 0:
            if count == greys.size:
                return -1
            greys[count] = bits[i]
            slots[slot] = count
            count += 1
        codes[i] = slots[slot]
    return count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def look_up(greys: NDArray[np.float32], codes: NDArray[np.integer[Any]], pixels: NDArray[np.float32]) -> None:
    """Write the grey of every code, each of which must be in the table; faster than indexing by an array."""
    for i in range(codes.size):
        pixels[i] = greys[codes[i]]
