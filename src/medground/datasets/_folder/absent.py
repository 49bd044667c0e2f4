"""The message for a wrong root or a half-downloaded folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medground.datasets._folder.tables import find_file
from medground.datasets.base import DatasetInfo
from medground.datasets.report import shorten
from medground.errors import DatasetError

MOST_ENTRIES = 12


def absent(root: Path, names: Sequence[str], below: Sequence[str], info: DatasetInfo) -> DatasetError:
    """Return the error for a folder that lacks all of some tables.

    It says which files were looked for, which of the dataset's files are there, and where the dataset is obtained and
    under which licence; if a folder beside or below has the table, it names that as the root.
    """
    sought = " or ".join(str(Path(folder) / name) for name in names for folder in below)
    if not root.is_dir():
        what, got = f"the folder of {info.title} does not exist", f"nearest that exists: {_nearest_folder(root)}"
    else:
        what, got = f"this folder does not hold all of {info.title}", _inventory(root, info)
    hint = _likely_root(root, names, below)
    return DatasetError(
        what,
        where=root,
        expected=sought,
        got=got,
        fix=(f"did you mean root: {hint}? " if hint else "") + f"{info.obtain} Licence: {info.licence}.",
    )


def _inventory(root: Path, info: DatasetInfo) -> str:
    """Return which parts of the published layout are there, and what else."""
    patterns = [line.split(":")[0].strip() for line in info.layout]
    there = [p for p in patterns if any(any(root.glob(alternative.strip("/"))) for alternative in p.split(" or "))]
    entries = sorted(p.name + "/" * p.is_dir() for p in root.iterdir() if not p.name.startswith("."))
    parts = [f"of its files, there: {', '.join(there) or 'none'}"]
    parts += [f"not there: {', '.join(lacking)}"] if (lacking := [p for p in patterns if p not in there]) else []
    return "; ".join([*parts, f"the folder holds {shorten(entries, MOST_ENTRIES) or 'nothing'}"])


def _likely_root(root: Path, names: Sequence[str], below: Sequence[str]) -> Path | None:
    """Return a folder just below or above that has the table."""
    if not root.is_dir():
        return None
    near = [root.parent, *sorted(p for p in root.iterdir() if p.is_dir())[:50]]
    return next((p for p in near if find_file([p / folder for folder in below], names)), None)


def _nearest_folder(path: Path) -> Path:
    return next((p for p in path.absolute().parents if p.is_dir()), Path("/"))
