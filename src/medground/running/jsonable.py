"""JSON and YAML as the run folder holds them: sorted, stable to the byte, nothing that is not a number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import yaml

from medground.errors import RunError


def plain(value: Any, where: str = "") -> Any:
    """Return ``value`` made of dict, list, str, int, float, bool and None only.

    Args:
        value: mappings, sequences, numpy arrays and scalars, paths, sets, in one another.
        where: how to call the value in a message.

    Raises:
        RunError: a float is NaN or infinite (undefined is None, with a reason beside it), or a type has no JSON.
    """
    try:
        return _plain(value)
    except _NotPlainError as error:
        at = "".join(reversed(error.path))
        raise RunError(error.what, where=f"{where}{at}".strip("."), got=error.got) from None


class _NotPlainError(Exception):
    """A value has no JSON; its place is put together on the way out, since hardly any value needs one."""

    def __init__(self, what: str, got: object) -> None:
        self.what, self.got, self.path = what, got, list[str]()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotPlainError("undefined must be null, with a reason beside it", value)
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _inside(item, "." + str(key)) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        items = value if isinstance(value, Sequence) else sorted(value)
        return [_inside(item, index) for index, item in enumerate(items)]
    raise _NotPlainError("this cannot be written as JSON", type(value).__name__)


def _inside(item: Any, place: str | int) -> Any:
    try:
        return _plain(item)
    except _NotPlainError as error:
        error.path.append(place if isinstance(place, str) else f"[{place}]")
        raise


def to_json(value: Any, where: str = "") -> bytes:
    """Return ``value`` as JSON with sorted keys; floats in the shortest form that reads back the same."""
    text = json.dumps(plain(value, where), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def to_yaml(value: Any) -> bytes:
    """Return ``value`` as YAML, keys in their own order."""
    text: str = yaml.safe_dump(plain(value), sort_keys=False, allow_unicode=True)
    return text.encode()
