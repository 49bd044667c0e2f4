"""Decoded and prepared pictures on disk, so that nobody decodes or prepares the same file a second time.

An entry is a decoded picture, for any model, or what one kind of preparation made of it. It is named by a hash of the
file's bytes and of everything else that it depends on: decoders, preparation. A changed file, another version of a
decoder or of medground is therefore another entry, and an old one is never taken for it. The whole file is hashed,
since name, size and time can stay the same while the content changes; reading and hashing it takes a small part of the
time that decoding does.

Each entry carries a check sum over its name and its content. One that is damaged, cut or in another's place is decoded
again and replaced, so nothing has to be synced to the disk.

The folder's size is bounded. To make room, entries go that have not been used since the cache was opened, least
recently used first; where there are none left, new pictures are not stored. Models go over the same pictures one after
another, and putting out the least recently used of *these* would lose each of them just before it is needed again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from PIL import features

from medground.errors import ConfigError, ImageError
from medground.imaging._compact import pack, pack_array, unpack, unpack_array
from medground.imaging._files import contents, named
from medground.imaging.reading import Radiograph, decode

T = TypeVar("T")
_SUFFIX, _PARTIAL, _ACCOUNT = ".radiograph", ".partial", ".account"
_DIGITS = 20
_PACKAGES = (
    *("medground", "numpy", "numba", "pillow", "pydicom", "pyjpegls"),
    *("pylibjpeg", "pylibjpeg-libjpeg", "pylibjpeg-openjpeg", "pylibjpeg-rle"),
)


class DecodeCache:
    """A folder of decoded and prepared pictures, for any number of threads and processes at once.

    Args:
        folder: made where it does not exist; other files in it are left alone.
        max_bytes: that its entries may take.

    Raises:
        ConfigError: the folder cannot be written or locked.
    """

    def __init__(self, folder: Path, max_bytes: int = 20 * 10**9) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _Account(folder) as account:
                self._unused = deque((path, used) for used, path, _ in sorted(account.recount()))
                self._makes_room(account, 0)  # the bound may be smaller than it was
        except OSError as error:
            raise ConfigError(
                "the folder of the decode cache cannot be used",
                where=folder,
                expected="a folder that can be written, on a file system with locks",
                got=error.strerror or error,
            ) from error

    def read(self, path: str | Path, *, case_id: str = "", patient_id: str | None = None) -> Radiograph:
        """Return what :func:`medground.imaging.reading.read_radiograph` returns, to the last bit.

        Raises:
            ImageError: the file cannot be decoded.
        """
        file = Path(path)
        data = contents(file)
        entry = self.folder / f"{_key(data)}{_SUFFIX}"
        shown = _held(entry, unpack)
        if shown is None:
            try:
                shown = decode(data)
            except ImageError as error:
                raise named(error, file) from error.__cause__
            self._store(entry, pack(shown))
        shown.pixels.flags.writeable = False
        return Radiograph(shown.pixels, case_id, patient_id, file.name, shown.value_range, shown.steps)

    def prepared(
        self,
        path: str | Path,
        preparation: str,
        prepare: Callable[[Radiograph], tuple[NDArray[Any], Any]],
    ) -> tuple[NDArray[Any], Any]:
        """Return what a preparation makes of a picture, an array and JSON-like facts, to the last bit.

        Args:
            path: the file.
            preparation: names the preparation: its rule, its numbers, its code.
            prepare: does it; must depend on the pixels alone.

        Raises:
            ImageError: the file cannot be decoded.
        """
        entry = self.folder / f"{_key(contents(Path(path)), preparation)}{_SUFFIX}"
        held = _held(entry, unpack_array)
        if held is None:
            held = prepare(self.read(path))
            self._store(entry, pack_array(*held))
        return held

    def _store(self, entry: Path, parts: Sequence[bytes]) -> None:
        """Write an entry if there is room; a disk that is full or gone costs time, and no picture."""
        sealed = [struct.pack("<I", _check_sum(entry.name, parts)), *parts]
        size = sum(len(part) for part in sealed)
        with contextlib.suppress(OSError), _Account(self.folder) as account:
            account.total -= _removed(entry)  # a damaged one, or the same from another thread
            if size > self.max_bytes or not self._makes_room(account, size):
                return
            # Counted before it is there: after a kill the account is too high, never too low.
            account.total += size
            partial = self.folder / _PARTIAL
            try:
                with partial.open("wb") as stream:
                    stream.writelines(sealed)
                partial.replace(entry)
            except OSError:
                account.total -= size
                partial.unlink(missing_ok=True)

    def _makes_room(self, account: _Account, size: int) -> bool:
        while account.total + size > self.max_bytes and self._unused:
            entry, used = self._unused.popleft()
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_mtime_ns == used:
                    account.total -= _removed(entry)
        return account.total + size <= self.max_bytes


class _Account:
    """How many bytes a folder's entries take, kept in a file that one thread of one process holds at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> _Account:
        self._handle = os.open(self._folder / _ACCOUNT, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError:
            os.close(self._handle)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    @property
    def total(self) -> int:
        written = os.pread(self._handle, _DIGITS + 1, 0)
        whole = len(written) == _DIGITS and written.isdigit()
        return int(written) if whole else sum(size for *_, size in self.recount())

    @total.setter
    def total(self, value: int) -> None:
        # In place: some file systems bring a file that was cut before it is written to the disk at once.
        os.pwrite(self._handle, b"%0*d" % (_DIGITS, max(value, 0)), 0)

    def recount(self) -> list[tuple[int, Path, int]]:
        """Set the total to what is there; return when each entry was last used (ns), its path and its size."""
        entries = list(_entries(self._folder))
        os.ftruncate(self._handle, _DIGITS)
        self.total = sum(size for *_, size in entries)
        return entries


def _entries(folder: Path) -> Iterator[tuple[int, Path, int]]:
    for path in folder.glob(f"*{_SUFFIX}"):
        if re.fullmatch(r"[0-9a-f]{64}", path.stem):
            with contextlib.suppress(FileNotFoundError):
                about = path.stat()
                yield about.st_mtime_ns, path, about.st_size


def _removed(entry: Path) -> int:
    """Remove an entry; return how many bytes that freed."""
    try:
        size = entry.stat().st_size
        entry.unlink()
    except FileNotFoundError:
        return 0
    return size


def _held(entry: Path, unpack: Callable[[memoryview], T]) -> T | None:
    """Return what an entry holds and mark it as used; None where there is none, or none that is whole."""
    try:
        data = memoryview(entry.read_bytes())
        if len(data) < 4 or struct.unpack_from("<I", data)[0] != _check_sum(entry.name, [data[4:]]):
            return None
        held = unpack(data[4:])
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):  # put out meanwhile, or another user's
        os.utime(entry)
    return held


def _check_sum(name: str, parts: Sequence[bytes | memoryview]) -> int:
    total = zlib.crc32(name.encode())
    for part in parts:
        total = zlib.crc32(part, total)
    return total


def _key(data: bytes, preparation: str = "") -> str:
    digest = hashlib.sha256(_decoders())
    if preparation:
        digest.update(hashlib.sha256(preparation.encode()).digest())
    digest.update(data)
    return digest.hexdigest()


@cache
def _decoders() -> bytes:
    """Return a fingerprint of what decoding depends on beside the file: this package's source, libraries, machine."""
    sources = [(path.name, path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("*.py"))]
    versions = {name: _version(name) for name in _PACKAGES}
    codecs = {name: features.version(name) for name in ("jpg", "libjpeg_turbo", "jpg_2000")}
    return hashlib.sha256(json.dumps([sources, versions, codecs, platform.machine()]).encode()).digest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
