"""Whether a folder's run is the one that is asked for, and what has changed in it since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from medground.errors import RunError
from medground.running.jsonable import plain
from medground.storage.opening import joined

_SHOWN = 8  # changes listed; more would hide the message


def refuse_another_run(
    stored: bytes, config: Mapping[str, Any], say: Callable[[str], None], *, where: object, strict: bool = False
) -> bool:
    """Compare the configuration in a folder with the one asked for.

    The name of the run and its benchmark must agree. Anything else may change between two sessions (a model more, a
    smaller batch): what it changes has another fingerprint, so its old rows are not used, and the change is announced.

    Args:
        stored: the ``run.yaml`` that is there.
        config: the configuration asked for.
        say: takes messages for the user.
        where: the folder, for messages.
        strict: whether anything but the engine must agree: a shard cannot change what the others do.

    Returns:
        Whether anything has changed.

    Raises:
        RunError: the folder belongs to another run, or its ``run.yaml`` cannot be read.
    """
    old, new = _flat(_load(stored, where)), _flat(plain(config))
    changes = [
        f"{key}: {old.get(key, 'nothing')} -> {new.get(key, 'nothing')}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    if any(old.get(key) != new.get(key) for key in ("name", "benchmark", "benchmark.name")):
        raise RunError(
            "the folder belongs to another run",
            where=where,
            got="; ".join(changes[:_SHOWN]),
            fix="choose another folder, or start afresh in this one, which removes the run in it",
        )
    other = [change for change in changes if not change.startswith("engine.")]
    if strict and other:
        raise RunError(
            "another shard of this run was begun with another run file",
            where=where,
            got="; ".join(other[:_SHOWN]),
            fix="give every shard the same run file, or another name (--set name=...) to this one",
        )
    if changes and not strict:
        rest = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        say(f"the configuration has changed since the last session: {'; '.join(changes[:_SHOWN])}{rest}")
    return bool(changes)


def _load(text: bytes, where: object) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(text.decode("utf-8"))
    # Beside its own errors, the parser lets through those of Python for dates, long numbers and deep nesting.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        config = error
    if not isinstance(config, dict):
        raise RunError(
            "the folder's run.yaml cannot be read",
            where=joined(where, "run.yaml") if isinstance(where, (str, Path)) else where,
            expected="a mapping",
            got=config,
            fix="restore it, or start afresh in this folder, which removes the run in it",
        )
    return config


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Return ``{"a.b[0].c": leaf}``."""
    return dict(_leaves(value, key))


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{key}[{index}]")
    else:
        yield key, value
