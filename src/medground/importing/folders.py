"""Folders: one a class, pictures in it; every picture has its folder's class and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from medground.errors import DataError
from medground.importing.lines import PICTURES, Line, Wishes, finished


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a folder of folders; a class mapped to nothing (``--map normal=``) is no finding.

    Raises:
        DataError: there are no folders, or one holds no picture.
    """
    folders = sorted(path for path in source.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise DataError("there is no folder of a class", where=source)
    findings = [finding for folder in folders if (finding := wishes.finding(folder.name))]
    yield from finished(_lines(folders, findings, wishes), findings, wishes)


def _lines(folders: list[Path], findings: list[str], wishes: Wishes) -> Iterator[Line]:
    for folder in folders:
        own = wishes.finding(folder.name)
        pictures = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and p.is_file())
        if not pictures:
            raise DataError("a folder holds no picture", where=folder, expected=", ".join(PICTURES))
        for picture in pictures:
            # Stems repeat between folders; the class tells them apart.
            yield Line(
                picture,
                case_id=f"{folder.name}/{picture.relative_to(folder).with_suffix('').as_posix()}",
                labels={finding: finding == own for finding in findings},
            )
