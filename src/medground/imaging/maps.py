"""Heat maps made elsewhere: one file, one map."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from medground.errors import ImageError
from medground.imaging._files import MAX_PIXELS, contents
from medground.imaging._raster import PNG_MARK, grey_values

SUFFIXES = (".npy", ".npz", ".png")


def read_map(path: Path) -> tuple[NDArray[np.floating[Any]], str]:
    """Read one heat map and the SHA-256 of its file.

    ``.npy`` and ``.npz`` (one array, or the one named ``map``) keep their values; a grey ``.png`` is divided by the
    largest value of its depth (255 or 65,535). The kind is told by the file's first bytes. Integers become float64.
    Pickled arrays are refused.

    Returns:
        the map ``(h, w)`` and the hash in hexadecimal.

    Raises:
        ImageError: the file is absent, damaged, too large, of another kind, not two-dimensional or not a number.
    """
    data = contents(path)
    try:
        array = _array(data)
        while array.ndim > 2 and array.shape[0] == 1:  # leading axes of one; a map of one row or column stays a map
            array = array[0]
    except Exception as error:  # a damaged file can raise anything in the decoders
        cause = error if isinstance(error, ImageError) else ImageError(f"{type(error).__name__}: {error}")
        raise ImageError(
            f"a heat map cannot be read: {cause.what}", where=path.name, expected=cause.expected, got=cause.got
        ) from error
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "fiub":
        raise ImageError(
            "a heat map is not a picture of numbers",
            where=path.name,
            expected="one array (h, w) of floats or integers",
            got=f"shape {array.shape}, type {array.dtype}",
        )
    kept = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    return kept, hashlib.sha256(data).hexdigest()


def _array(data: bytes) -> NDArray[Any]:
    if data.startswith(PNG_MARK):
        values, white = grey_values(data, MAX_PIXELS)
        return values.astype(np.float64) / white
    if data.startswith(npy.MAGIC_PREFIX):
        return _checked_npy(io.BytesIO(data))
    if data.startswith(b"PK"):
        return _member(data)
    raise ImageError("it is of another kind", expected=", ".join(SUFFIXES), got=f"first bytes {data[:8].hex(' ')}")


def _member(data: bytes) -> NDArray[Any]:
    """Return the map of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if "map.npy" not in names and len(names) != 1:
            raise ImageError("the archive holds several arrays", expected="one, or one named 'map'", got=sorted(names))
        with archive.open("map.npy" if "map.npy" in names else names[0]) as stream:
            return _checked_npy(stream)


def _checked_npy(stream: IO[bytes]) -> NDArray[Any]:
    """Return an array whose header states no objects and not too many values, before any of them is read."""
    start = stream.tell()
    version = npy.read_magic(stream)
    shape, _, kind = npy.read_array_header_1_0(stream) if version == (1, 0) else npy.read_array_header_2_0(stream)
    if kind.hasobject:
        raise ImageError("it holds pickled objects", expected="floats or integers", got=f"type {kind}")
    if math.prod(shape) > MAX_PIXELS:
        raise ImageError("it is too large", expected=f"at most {MAX_PIXELS} values", got=f"shape {shape}")
    stream.seek(start)
    array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array
