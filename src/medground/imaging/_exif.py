"""The one thing of a picture's EXIF that matters here: whether a viewer would turn it."""

from __future__ import annotations

import struct

_ORIENTATION = 0x0112


def exif_turn(data: bytes) -> int:
    """Return the orientation that a JPEG's EXIF states: 1 upright, 2 to 8 turned or mirrored; 1 where it says nothing.

    Nothing but this number is read, and what is broken says nothing.
    """
    place = data.find(b"\xff\xe1", 0, 1 << 16)
    start = data.find(b"Exif\0\0", place, place + 10) + 6
    return 1 if place < 0 or start < 6 else stated_turn(data, start)


def stated_turn(data: bytes, start: int = 0) -> int:
    """Return the orientation of EXIF whose byte order stands at ``start``, as a PNG's chunk ``eXIf`` holds it."""
    try:
        order = {b"II": "<", b"MM": ">"}[data[start : start + 2]]
        (first,) = struct.unpack_from(f"{order}I", data, start + 4)
        (count,) = struct.unpack_from(f"{order}H", data, start + first)
        for i in range(min(count, 200)):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", data, start + first + 2 + 12 * i)
            if tag == _ORIENTATION and kind == 3:
                return value if 1 <= value <= 8 else 1
    except (struct.error, KeyError):
        pass
    return 1
