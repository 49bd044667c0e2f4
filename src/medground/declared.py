"""What a run file declares of a model: read here, held against the data by the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medground.benchmarks.base import Declared, Entry
from medground.errors import ConfigError
from medground.registry import rooted
from medground.tables.ids import plain_id
from medground.tables.reader import decoded, read_bytes, read_table

COLUMN = "patient_id"


def read_declared(given: Mapping[str, Any], base: Path | None, where: str) -> tuple[Declared, dict[str, Any]]:
    """Return a declaration, and what the resolved run file says of it.

    Args:
        given: ``kind``, ``seen``, ``exclude_patients``, ``findings``.
        base: folder that relative paths start from.
        where: the place in the run file, for messages.

    Raises:
        ConfigError: a list of patients cannot be read, or is empty.
    """
    lists = given.get("exclude_patients") or {}
    named = {"": lists} if isinstance(lists, str) else lists
    paths = {dataset: rooted(Path(name), base) for dataset, name in named.items()}
    declared = Declared(
        given.get("kind"),
        dict(given.get("seen", {})),
        {dataset: read_patients(path, f"{where}.exclude_patients") for dataset, path in paths.items()},
        {dataset: path.name for dataset, path in paths.items()},
        dict(given.get("findings", {})),
    )
    resolved = dict(given)
    if paths:
        resolved["exclude_patients"] = str(paths[""]) if "" in paths else {d: str(p) for d, p in paths.items()}
    return declared, resolved


def read_patients(path: Path, where: str) -> frozenset[str]:
    """Return the patients of a list, their ids written one way: one a line, or a table with ``patient_id``.

    Raises:
        ConfigError: the file is absent, no text, or names nobody.
    """
    if not path.is_file():
        raise ConfigError("a list of patients is not there", where=where, got=path)
    text, _ = decoded(read_bytes(path, ConfigError), path, ConfigError)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and any(mark in lines[0] for mark in ",;\t"):
        table = read_table(path, [COLUMN], (), error=ConfigError)
        lines = [name for name in table.frame[COLUMN] if name]
    named = frozenset(plain_id(line) for line in lines if line.casefold() != COLUMN)
    if not named:
        raise ConfigError(
            "a list of patients names nobody", where=path, expected=f"one id a line, or a column {COLUMN}"
        )
    return named


def refuse_idle(benchmark: type[Any], models: Sequence[Entry]) -> None:
    """Raise ConfigError for a declaration that a benchmark would not heed.

    A benchmark lists what it heeds beside ``kind`` and ``seen``, which every report shows, as ``heeds``.
    """
    heeds: frozenset[str] = getattr(benchmark, "heeds", frozenset())
    for entry in models:
        given = {"exclude_patients": entry.declared.excluded, "findings": entry.declared.findings}
        for name, value in given.items():
            if value and name not in heeds:
                raise ConfigError(
                    f"{benchmark.name} does not heed {name}",
                    where=f"models ({entry.label})",
                    fix="leave it out, or leave these cases out of the dataset",
                )
