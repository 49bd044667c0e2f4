"""What makes a result what it is: short hashes of plain values, of files, and of components that are not built.

The hash of a file is remembered by its path, size and times, so that planning a run does not read a checkpoint twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import medground
from medground.errors import ConfigError

_BLOCK = 1 << 20


def fingerprint_of(*parts: Any) -> str:
    """Return a short hash (16 hex digits) of JSON-like ``parts``; dataclasses and paths are written out by ``repr``."""
    text = json.dumps(parts, sort_keys=True, default=repr, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, remembered while its size and times stay what they are.

    Raises:
        OSError: the file cannot be read.
    """
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    remembered = _recall(key)
    if remembered is not None:
        return remembered
    digest = hash_content(path)
    # A file that was written a moment ago may change again within one tick of the clock.
    _remember(key, digest)
    return digest


def hash_content(path: Path) -> str:
    """Return the SHA-256 of a file's content, read now.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def content_of(value: Any) -> Any:
    """Return a parameter as plain data in which every path stands for the content of what it names.

    A file becomes its hash, a folder the hashes of its files by name, and a path that leads nowhere its last part:
    where a folder lies changes nothing. Objects without a plain form are refused.

    Raises:
        TypeError: the value has no stable form.
    """
    if isinstance(value, Path):
        return _path_content(value)
    if isinstance(value, Mapping):
        return {str(key): content_of(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [content_of(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((content_of(inner) for inner in value), key=repr)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "model_dump"):
        return content_of(value.model_dump(mode="json"))
    raise TypeError(f"{type(value).__name__} has no stable form")


def _path_content(path: Path) -> Any:
    if path.is_file():
        return {"sha256": file_hash(path)}
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        return {"folder": fingerprint_of([(p.relative_to(path).as_posix(), file_hash(p)) for p in files])}
    return {"absent": path.name}


def component_identity(cls: type[Any], parameters: Mapping[str, Any]) -> str:
    """Return a hash of a component that is not built: its class, its parameters, and the files that they name.

    A class that ships with medground is known by the version and the files that it lists as ``shipped``, any other by
    the content of the file that defines it. Defaults count as if they had been given.

    Raises:
        ConfigError: a parameter has no stable form.
    """
    bound = inspect.signature(cls).bind_partial(**parameters)
    bound.apply_defaults()
    shipped = [file_hash(path) for path in getattr(cls, "shipped", ())]
    try:
        content = content_of(bound.arguments)
    except TypeError as error:
        raise ConfigError(
            f"a parameter of {cls.__name__} cannot be part of a result's identity",
            expected="plain values, paths, or objects with model_dump()",
            got=error,
        ) from error
    return fingerprint_of(cls.__module__, cls.__qualname__, _code_of(cls), shipped, content)


def written_out(cls: type[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a component's parameters, defaults too, in a form that fits a manifest."""
    bound = inspect.signature(cls).bind_partial(**parameters)
    bound.apply_defaults()
    return {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in bound.arguments.items()
    }


def _code_of(cls: type[Any]) -> str:
    if cls.__module__.partition(".")[0] == medground.__name__:
        return medground.__version__
    try:
        return file_hash(Path(inspect.getfile(cls)))
    except (OSError, TypeError):
        return "no source"


@cache
def _memory() -> sqlite3.Connection | None:
    """Return the table of remembered hashes; None where no folder can be written, and nothing is remembered."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medground"
    try:
        base.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(base / "hashes.sqlite", timeout=5, check_same_thread=False, isolation_level=None)
        connection.execute("create table if not exists hashes (key text primary key, sha256 text not null)")
    except (OSError, sqlite3.Error):
        return None
    return connection


def _recall(key: tuple[str, int, int, int]) -> str | None:
    connection = _memory()
    if connection is None:
        return None
    try:
        row = connection.execute("select sha256 from hashes where key = ?", (repr(key),)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _remember(key: tuple[str, int, int, int], digest: str) -> None:
    connection = _memory()
    if connection is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("insert or replace into hashes values (?, ?)", (repr(key), digest))
