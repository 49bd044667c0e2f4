"""From one storage to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from medground.storage.base import Storage

_THREADS = 16
_LAST = ".json"


def copy_missing(source: Storage, target: Storage, prefixes: Sequence[str]) -> int:
    """Copy values that the target lacks, or that belong to a ``.json`` which it has otherwise.

    Values whose keys differ in their last suffix alone belong together. Their ``.json``, a receipt, is copied last, so
    that a copy which is broken off never looks complete.

    Args:
        source: where from.
        target: where to.
        prefixes: keys, and prefixes that end at a ``/``.

    Returns:
        How many values were copied.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for prefix in prefixes:
        for key in _keys(source, prefix):
            folder, _, name = key.rpartition("/")
            groups[f"{folder}/{name.rpartition('.')[0] or name}"].append(key)
    there = {key for prefix in prefixes for key in _keys(target, prefix)}

    def copy(keys: Sequence[str]) -> int:
        values = {key: source.get(key) for key in keys if key.endswith(_LAST)}
        stands = all(key in there and target.get(key) == value for key, value in values.items())
        missing = [key for key in keys if key not in there or not (values and stands)]
        for key in sorted(missing, key=lambda key: key.endswith(_LAST)):
            target.put(key, values[key] if key in values else source.get(key), safe="content")
        return len(missing)

    with ThreadPoolExecutor(_THREADS) as pool:
        return sum(pool.map(copy, groups.values()))


def _keys(storage: Storage, prefix: str) -> list[str]:
    if prefix.endswith("/"):
        return [stored.key for stored in storage.list(prefix)]
    return [prefix] if storage.exists(prefix) else []
