"""Reads the zip container of ``torch.save`` and of TorchScript without building or calling anything it names.

A pickle is a program: it may name any callable and call it. Here every name resolves to one of three harmless things:
a builder of :class:`TensorRecord` (numbers that say where a tensor's bytes lie), an ``OrderedDict``, or an *inert
stand-in*, an empty class made for this file that swallows arguments and state. Bytes are read afterwards, for the
tensors that are wanted, inside the bounds that the container itself states.

``torch.load(weights_only=True)`` is the everyday road; this one serves the two kinds of file that it refuses:
TorchScript archives, and training files with a configuration object beside the weights.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medground.errors import CheckpointError

STORAGES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
    "UntypedStorage": torch.uint8,
}
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in STORAGES.values()}


class _Sealed(type):
    """Classes that a pickle cannot add attributes to; ``origin`` is what the file called them."""

    origin: str

    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"the file sets {name!r} on a class")


class Inert(metaclass=_Sealed):
    """Stands where a file names a class or a function: takes any argument, item and state, and does nothing."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Inert:
        """Make an empty instance, whatever the file passes."""
        return object.__new__(cls)

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        """Ignore whatever the file passes."""

    def __call__(self, *_args: object, **_kwargs: object) -> Inert:
        """Be called as if the file had named a function that makes functions."""
        return self

    def __setstate__(*args: object) -> None:  # a file can call it on the class, without self
        """Keep the attributes of a state that has names (TorchScript's modules); ignore any other."""
        own, states = args[0], args[1:]
        for state in states[0] if states and isinstance(states[0], tuple) else states:
            if isinstance(own, Inert) and isinstance(state, dict):
                vars(own).update({key: value for key, value in state.items() if isinstance(key, str)})

    def __setitem__(self, _key: object, _value: object) -> None:
        """Ignore an item."""

    def append(self, _item: object) -> None:
        """Ignore an item."""

    def extend(self, _items: object) -> None:
        """Ignore items."""

    def add(self, _item: object) -> None:
        """Ignore an item."""


@dataclass(frozen=True)
class StoredNumbers:
    """Which storage a tensor's numbers lie in, their type, and how many there are."""

    key: str
    dtype: torch.dtype
    numel: int


@dataclass(frozen=True)
class TensorRecord:
    """Where a tensor's numbers lie: storage, first element, shape and strides in elements."""

    storage: StoredNumbers
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


def check_program(program: bytes) -> None:
    """Refuse a pickle whose numbers make the interpreter itself allocate without bound.

    The standard unpickler keeps a table as long as the largest number that an operation names, before anything else.

    Raises:
        pickle.UnpicklingError: it names a place beyond its own length.
    """
    try:
        for operation, argument, _ in pickletools.genops(program):
            if operation.name in _PLACES and isinstance(argument, int) and argument > len(program):
                raise pickle.UnpicklingError(f"{operation.name} names place {argument}")
    except ValueError as error:
        raise pickle.UnpicklingError(f"no pickle: {error}"[:120]) from error


_PLACES = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "GET", "LONG_BINGET"})


class InertReader(pickle.Unpickler):
    """An unpickler whose names lead nowhere.

    The builders are bound methods: unlike functions and classes, they take no new attribute from the file.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return a builder of records, a type of numbers, or an inert stand-in."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        builders = {
            "_rebuild_tensor": self._tensor,
            "_rebuild_tensor_v2": self._tensor,
            "_rebuild_tensor_v3": self._tensor_v3,
            "_rebuild_parameter": self._parameter,
        }
        if module == "torch._utils" and name in builders:
            return builders[name]
        return _Sealed("Inert", (Inert,), {"origin": f"{module}.{name}"})

    def persistent_load(self, pid: Any) -> Any:
        """Return which storage is meant."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], torch.dtype):
            raise pickle.UnpicklingError("an unknown storage")
        _kind, dtype, key, _location, numel = pid[:5]
        return StoredNumbers(str(key), dtype, int(numel))

    def _tensor(self, storage: Any, offset: Any, shape: Any, stride: Any, *_rest: object) -> TensorRecord:
        return self._tensor_v3(storage, offset, shape, stride, None, None, None)

    def _tensor_v3(
        self,
        storage: Any,
        offset: Any,
        shape: Any,
        stride: Any,
        _grad: Any,
        _hooks: Any,
        dtype: Any,
        *_: object,
    ) -> TensorRecord:
        if not isinstance(storage, StoredNumbers):
            raise pickle.UnpicklingError("a tensor without a storage")
        shape, stride = tuple(map(int, shape)), tuple(map(int, stride))
        return TensorRecord(storage, int(offset), shape, stride, dtype or storage.dtype)

    def _parameter(self, data: Any, *_rest: object) -> Any:
        return data


def check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse a container that unpacks to more than it has: torch stores its tensors as they are.

    Raises:
        CheckpointError: a packed container, which can be a bomb.
    """
    held, unpacked = path.stat().st_size, sum(entry.file_size for entry in archive.infolist())
    if unpacked > 2 * held + (1 << 20):
        raise CheckpointError(
            "a checkpoint unpacks to more than it holds, which can be an attack (a decompression bomb)",
            where=path,
            expected=f"about {held:,} bytes, as torch.save writes them",
            got=f"{unpacked:,} bytes unpacked",
            fix="save the weights anew: torch.save, or safetensors",
        )


_BLOCK = 1 << 22


def check_sums(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse a container in which an entry does not have its own check sum: torch reads such numbers without a word.

    Files that were written without sums (``torch.serialization.set_crc32_options(False)``) pass.

    Raises:
        CheckpointError: the file is damaged.
    """
    entries = [entry for entry in archive.infolist() if entry.file_size]
    if all(entry.CRC == 0 for entry in entries):
        return
    for entry in entries:
        try:
            with archive.open(entry) as content:
                while content.read(_BLOCK):
                    pass
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise CheckpointError(
                "a checkpoint is damaged: an entry does not have its own check sum",
                where=path,
                got=f"{entry.filename[:80]}: {type(error).__name__}",
                fix="obtain the file again, and compare its size and hash with the publisher's",
            ) from error


class Archive:
    """An opened container: ``tree`` is what was pickled, with records for tensors and stand-ins for objects.

    Raises:
        pickle.UnpicklingError: the container or its pickle is malformed.
    """

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        check_sizes(self._zip, path)
        names = [n for n in self._zip.namelist() if n.endswith("/data.pkl")]
        if len(names) != 1:
            raise pickle.UnpicklingError("not a torch file: the zip holds no single data.pkl")
        self._last = "", bytearray()
        self._root = names[0].removesuffix("data.pkl")
        if self._read_optional("byteorder") not in (None, b"little"):
            raise pickle.UnpicklingError("weights in big-endian byte order")
        self.is_torchscript = any(n.startswith(f"{self._root}code/") for n in self._zip.namelist())
        try:
            program = self._zip.read(names[0])
            check_program(program)
            self.tree: Any = InertReader(io.BytesIO(program), encoding="utf-8").load()
        except pickle.UnpicklingError:
            raise
        except Exception as error:  # a hostile pickle can make the unpickler itself fail in any way
            raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error

    def _read_optional(self, name: str) -> bytes | None:
        return self._zip.read(self._root + name) if self._root + name in self._zip.namelist() else None

    def tensor(self, record: TensorRecord) -> Tensor:
        """Read one tensor's numbers.

        Raises:
            pickle.UnpicklingError: the record reaches outside its storage.
        """
        storage, name = record.storage, f"{self._root}data/{record.storage.key}"
        size = storage.numel * storage.dtype.itemsize
        if name not in self._zip.namelist() or self._zip.getinfo(name).file_size < size:
            raise pickle.UnpicklingError(f"storage {storage.key} is missing or too short")
        if size == 0:
            return torch.zeros(record.shape, dtype=record.dtype)
        flat = torch.frombuffer(self._bytes(name)[:size], dtype=record.dtype)
        last = record.offset + sum((n - 1) * s for n, s in zip(record.shape, record.stride, strict=True))
        if min((record.offset, *record.shape, *record.stride)) < 0 or last >= len(flat):
            raise pickle.UnpicklingError(f"a tensor reaches outside storage {storage.key}")
        return flat.as_strided(record.shape, record.stride, record.offset).clone()

    def _bytes(self, name: str) -> bytearray:
        # Tensors that are views of one storage follow one another, so the last one read is enough to keep.
        if self._last[0] != name:
            self._last = name, bytearray(self._zip.read(name))
        return self._last[1]

    def resolve(self, node: Any) -> Any:
        """Return a part of ``tree`` with its records read."""
        if isinstance(node, TensorRecord):
            return self.tensor(node)
        if isinstance(node, Mapping):
            return {key: self.resolve(value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(self.resolve(value) for value in node)
        return node


def stand_ins(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield (place, what the file called it) of every stand-in in a tree, depth first."""
    waiting, seen = [("", tree)], set()
    while waiting:
        place, node = waiting.pop()
        if isinstance(node, Inert):
            yield place, type(node).origin
        elif isinstance(node, _Sealed):
            yield place, node.origin
        elif isinstance(node, (Mapping, list, tuple, set, frozenset)) and id(node) not in seen:
            seen.add(id(node))  # a pickle can hold itself
            waiting += _children(place, node)


def _children(place: str, node: Any) -> list[tuple[str, Any]]:
    if not isinstance(node, Mapping):
        return [(f"{place}[{i}]", value) for i, value in enumerate(node)]
    dot = f"{place}." if place else ""
    named = [(dot + key if isinstance(key, str) else f"{place}[?]", value) for key, value in node.items()]
    return named + [(f"{place}[?]", key) for key in node if not isinstance(key, str)]


def module_tensors(module: Any) -> dict[str, TensorRecord]:
    """Return dotted name -> record of the tensors of a TorchScript module: its attributes, and its children's."""
    found: dict[str, TensorRecord] = {}
    waiting, seen = [("", module)], set()
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, TensorRecord):
            found[prefix.removesuffix(".")] = node
        elif isinstance(node, Inert) and id(node) not in seen:
            seen.add(id(node))
            waiting += [(f"{prefix}{name}.", value) for name, value in vars(node).items()]
    return found
