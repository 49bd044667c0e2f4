"""JSON from elsewhere: bounded, and no key twice, since the later one would silently win."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medground.errors import DataError, MedgroundError

LARGEST = 1 << 30
"""Bytes of a document that is still read: the largest published annotations have a quarter of it."""


def read_json(path: Path, *, largest: int = LARGEST, error: type[MedgroundError] = DataError) -> Any:
    """Return the content of a JSON file.

    Args:
        path: the file.
        largest: bytes that it may have.
        error: what is raised.

    Raises:
        MedgroundError: of the given class; the file cannot be read, is too large, is not JSON, or names a key twice.
    """
    try:
        if (size := path.stat().st_size) > largest:
            raise error("a JSON file is larger than any of its kind", where=path, expected=f"{largest} bytes", got=size)
        content = path.read_bytes()
    except OSError as problem:
        raise error("a JSON file cannot be read", where=path, got=problem.strerror) from problem
    return parse_json(content, where=path, error=error)


def parse_json(content: bytes | str, *, where: object, error: type[MedgroundError] = DataError) -> Any:
    """Return the content of a JSON text; see :func:`read_json`.

    Example:
        >>> parse_json('{"a": 1}', where="text")
        {'a': 1}
    """
    try:
        text = content if isinstance(content, str) else content.decode(_encoding(content))
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:
        got = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)[:200]
        raise error("a file is not JSON as it should be", where=where, got=got) from problem


def _encoding(content: bytes) -> str:
    """Return UTF-16 or UTF-32 where the first bytes show it; else UTF-8, with or without a mark."""
    encoding = json.detect_encoding(content)
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object")
        document[key] = value
    return document
