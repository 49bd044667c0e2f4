"""File names that come from tables and run files are untrusted: they are resolved here, inside named folders only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from medground.errors import DatasetError


def resolve_inside(root: Path, name: str, allowed: Sequence[Path] = (), *, shown: str | None = None) -> Path:
    """Return ``root / name`` with links followed, if it lies inside ``root`` or an allowed folder.

    Args:
        root: where names start.
        name: of a file or folder, which need not exist.
        allowed: other folders that it may lie in.
        shown: what a message calls it; by default the name.

    Raises:
        DatasetError: the table names a file outside, by ``..``, an absolute path or a link, or a link leads nowhere.
    """
    try:
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, and names that are none
        raise DatasetError("a table names no file", where=shown or name, got=str(error)) from error
    homes = [root.resolve(), *(folder.resolve() for folder in allowed)]
    if not any(path.is_relative_to(home) for home in homes):
        raise DatasetError(
            "a table names a file outside its dataset's folder",
            where=shown or name,
            expected=f"a path inside {root}",
            got=str(path),
            fix="correct the table, or allow that folder by name: allow_outside: [FOLDER] in the run file",
        )
    return path


def is_file(path: Path) -> bool:
    """Return whether there is a file; unlike ``Path.is_file``, no for a name too long for any."""
    return os.path.isfile(path)  # noqa: PTH113  see above
