"""File names that come from tables and run files are untrusted: they are resolved here, inside named folders only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medground.errors import DatasetError


def resolve_inside(root: Path, name: str, allowed: Sequence[Path] = ()) -> Path:
    """Return ``root / name`` with links followed, if it lies inside ``root`` or an allowed folder.

    Raises:
        DatasetError: the table names a file outside, by ``..``, an absolute path or a link.
    """
    path = (root / name).resolve()
    homes = [root.resolve(), *(folder.resolve() for folder in allowed)]
    if not any(path.is_relative_to(home) for home in homes):
        raise DatasetError(
            "a table names a file outside its dataset's folder",
            where=name,
            expected=f"a path inside {root}",
            got=str(path),
            fix="correct the table, or allow that folder by name: allow_outside: [FOLDER] in the run file",
        )
    return path
