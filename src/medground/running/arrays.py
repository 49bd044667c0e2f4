"""Arrays of many items in one ``.npz``: the same bytes for the same arrays, and nothing pickled.

The name of a member is ``item/name``, both escaped, so ``numpy.load(file)["00000013_005.png/saliency"]`` works too.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from medground.running.names import escape

Arrays = Mapping[str, NDArray[np.generic]]
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: the clock stays out of the bytes


def pack_arrays(items: Iterable[tuple[str, Arrays]]) -> bytes | None:
    """Return an npz of ``(item id, name -> array)`` in the order given, or None where there is no array at all.

    Raises:
        ValueError: an array holds Python objects.
    """
    buffer, members = io.BytesIO(), 0
    # Stored, not deflated: saliency hardly shrinks, and the bytes depend on no zlib.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for item_id, arrays in items:
            for name, array in arrays.items():
                member = zipfile.ZipInfo(f"{escape(item_id)}/{escape(name)}.npy", _EPOCH)
                member.create_system = 3
                archive.writestr(member, _npy(array))
                members += 1
    return buffer.getvalue() if members else None


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()


def unpack_arrays(
    data: io.BufferedIOBase, only: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Yield ``(item id, name -> array)`` in the order packed; of the items in ``only``, where it is given."""
    with zipfile.ZipFile(data) as archive:
        members: dict[str, list[str]] = {}
        for member in archive.namelist():
            members.setdefault(unquote(member.split("/", 1)[0]), []).append(member)
        for item_id, names in members.items():
            if only is None or item_id in only:
                yield item_id, {_array_name(name): _read(archive, name) for name in names}


def _array_name(member: str) -> str:
    return unquote(member.split("/", 1)[1].removesuffix(".npy"))


def _read(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
    return array
