"""Heat maps out of the pickles that CheXlocalize's scripts write, read without running anything in them.

A pickle is a program, and these hold tensors of PyTorch or arrays of numpy. The same inert reader that opens
checkpoints walks it: names lead nowhere, arrays become records of shape, type and bytes, and ``map`` alone becomes
numbers.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError

_CODES = {"f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"}
MAX_PIXELS = 80_000_000
_MAGIC = 0x1950A86A20F9469CFC6C
_TORCH = {"DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "LongStorage": "i8", "IntStorage": "i4"}
_TORCH |= {"ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "b1"}


@dataclass(frozen=True)
class _Flat:
    """Numbers of one storage."""

    code: str
    content: bytes


@dataclass(frozen=True)
class _View:
    """A tensor: numbers of a storage from an offset on, with shape and strides in elements."""

    flat: _Flat
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class _Type:
    """A type of numpy, as a pickle states it: code first, order of bytes by its state."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code, self.order = str(code), "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else "<"
        self.order = order if order in ("<", ">", "=", "|") else "<"


class _Array:
    """An array of numpy, as a pickle states it."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, tuple) else ()


def map_of_pickle(data: bytes) -> NDArray[Any]:
    """Return the entry ``map`` of a pickled dictionary, or the one array that was pickled.

    Args:
        data: the whole file.

    Raises:
        ImageError: no pickle, or none with such a map.
    """
    tree = _tree(data)
    if isinstance(tree, dict):
        if "map" not in tree:
            raise ImageError("a pickle holds no map", expected="an entry 'map'", got=", ".join(map(str, tree))[:120])
        tree = tree["map"]
    if isinstance(tree, _View):
        return _of_view(tree)
    if isinstance(tree, _Array):
        return _of_array(tree)
    raise ImageError("a pickle's map is no array", expected="a tensor or an array", got="something else")


def _tree(data: bytes) -> Any:
    from medground.models.common.archive import InertReader, check_program

    class Reader(InertReader):
        """Takes arrays as records; everything else stays inert."""

        def find_class(self, module: str, name: str) -> Any:
            if module == "torch._utils" and name.startswith("_rebuild_tensor"):
                return _view
            place = module.replace("numpy._core", "numpy.core"), name
            if place in _RECORDS:
                return _RECORDS[place]
            return super().find_class(module, name)

    try:
        check_program(data)
        return Reader(io.BytesIO(data), encoding="latin-1").load()
    except ImageError:
        raise
    except Exception as error:  # a hostile pickle can make the unpickler itself fail in any way
        raise ImageError("a pickle cannot be read", got=f"{type(error).__name__}: {error}"[:120]) from error


def _flat(content: Any) -> _Flat:
    """Return the numbers of a storage that was pickled in PyTorch's older format: five pickles, then bytes."""
    from medground.models.common.archive import InertReader

    class Reader(InertReader):
        def find_class(self, module: str, name: str) -> Any:
            return name if module == "torch" and name in _TORCH else super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return _TORCH.get(pid[1]) if isinstance(pid, tuple) and len(pid) > 1 and isinstance(pid[1], str) else None

    stream = io.BytesIO(content)
    magic, *_, code, keys = (Reader(stream).load() for _ in range(5))
    if magic != _MAGIC or not isinstance(code, str) or not isinstance(keys, list) or len(keys) != 1:
        raise ImageError("a tensor's storage is not read", expected="one storage, as torch.save writes it")
    (count,) = struct.unpack("<q", stream.read(8))
    size = int(code[1])
    numbers = stream.read(count * size) if 0 <= count <= MAX_PIXELS else b""
    if len(numbers) != count * size:
        raise ImageError("a tensor's storage is too short", expected=f"{count} numbers", got=f"{len(numbers)} bytes")
    return _Flat(code, numbers)


def _encoded(text: Any, *_: object) -> bytes:
    """Return bytes that older protocols write as text."""
    return text.encode("latin-1") if isinstance(text, str) else b""


def _of_buffer(content: Any, kind: Any, shape: Any, order: Any = "C", *_: object) -> _Array:
    """Return an array as protocol 5 writes it."""
    array = _Array()
    array.state = (1, shape, kind, order == "F", bytes(content) if isinstance(content, (bytes, bytearray)) else b"")
    return array


def _view(flat: Any, offset: Any = 0, shape: Any = (), stride: Any = (), *_: object) -> _View:
    if not isinstance(flat, _Flat):
        raise ImageError("a tensor has no storage")
    return _View(flat, int(offset), tuple(map(int, shape)), tuple(map(int, stride)))


def _of_view(view: _View) -> NDArray[Any]:
    flat = np.frombuffer(view.flat.content, dtype=f"<{view.flat.code}" if view.flat.code != "b1" else "?")
    last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.stride, strict=True))
    if min((view.offset, *view.shape, *view.stride), default=0) < 0 or last >= flat.size or 0 in view.shape:
        raise ImageError("a tensor reaches outside its storage", got=f"shape {view.shape}")
    if math.prod(view.shape) > MAX_PIXELS:
        raise ImageError("a map is too large", expected=f"at most {MAX_PIXELS} values", got=f"shape {view.shape}")
    strides = [s * flat.itemsize for s in view.stride]
    return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, strides, writeable=False).copy()


def _of_array(array: _Array) -> NDArray[Any]:
    try:
        _, shape, kind, fortran, content = array.state
        size = tuple(map(int, shape))
    except (TypeError, ValueError) as error:
        raise ImageError("an array of a pickle is malformed") from error
    code = kind.code if isinstance(kind, _Type) else ""
    data = content.encode("latin-1") if isinstance(content, str) else content
    if code not in _CODES or not isinstance(data, bytes) or len(data) != math.prod(size) * int(code[1]):
        expected = ", ".join(sorted(_CODES))
        raise ImageError("an array of a pickle is not one of numbers", expected=expected, got=code[:20])
    dtype = np.dtype(kind.order + code if code not in ("u1", "i1", "b1") else code)
    return np.frombuffer(data, dtype=dtype).reshape(size, order="F" if fortran else "C").copy()


def is_pickle(data: bytes) -> bool:
    """Return whether bytes are a pickle of protocol 2 or later, or of a protocol of letters."""
    return data[:1] == pickle.PROTO or data[:2] in (b"(d", b"}q")


_RECORDS = {
    ("torch.storage", "_load_from_bytes"): _flat,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _of_buffer,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encoded,
}
"""What a pickle of arrays names -> what stands in its place."""
