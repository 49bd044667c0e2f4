"""Decoded pictures as few bytes, and back to the same bits.

A picture of up to 16 bit has at most 65,536 different greys, whatever rescale, window and inversion made them. They are
kept as a table, and every pixel as its number in that table: one or two bytes in place of four, and nothing rounded.
"""

from __future__ import annotations

import json
import struct
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
