"""Heat maps made elsewhere: one file, one map."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError

SUFFIXES = (".npy", ".npz", ".png")


def read_map(path: Path) -> tuple[NDArray[np.floating[Any]], str]:
    """Read one heat map and the SHA-256 of its file.

    ``.npy`` and ``.npz`` (one array, or the one named ``map``) keep their values; a grey ``.png`` is divided by the
    largest value of its depth (255 or 65,535). Integers become float64. Pickled arrays are refused.

    Returns:
        the map ``(h, w)`` and the hash in hexadecimal.

    Raises:
        ImageError: the file is absent, of another kind, not two-dimensional or not a number.
    """
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        array = _read_png(path) if path.suffix.lower() == ".png" else _read_numpy(path)
    except ImageError:
        raise
    except Exception as error:  # a damaged file can raise anything in the decoders
        raise ImageError(
            "a heat map cannot be read", where=path.name, got=f"{type(error).__name__}: {error}"
        ) from error
    array = np.squeeze(array)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "fiub":
        raise ImageError(
            "a heat map is not a picture of numbers",
            where=path.name,
            expected="one array (h, w) of floats or integers",
            got=f"shape {array.shape}, type {array.dtype}",
        )
    return (array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)), digest


def _read_numpy(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        keys = list(loaded.keys())
        if "map" not in keys and len(keys) != 1:
            raise ImageError(
                "a heat map's archive holds several arrays",
                where=path.name,
                expected="one, or one named 'map'",
                got=keys,
            )
        found: NDArray[Any] = loaded["map" if "map" in keys else keys[0]]
        return found


def _read_png(path: Path) -> NDArray[Any]:
    from PIL import Image

    with Image.open(path) as picture:
        depth = {"L": 255, "I;16": 65535, "I": 65535}.get(picture.mode)
        if depth is None:
            raise ImageError(
                "a heat map's PNG is not grey", where=path.name, expected="8 or 16 bit grey", got=picture.mode
            )
        return np.asarray(picture, dtype=np.float64) / depth
