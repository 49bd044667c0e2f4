"""Where the pictures of a dataset lie: found by stem, so that resized and re-encoded copies serve as well."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from medground.datasets.report import shorten
from medground.errors import DatasetError
from medground.paths import is_file, resolve_inside

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".dcm", ".dicom"})
DICOM_SUFFIXES = frozenset({".dcm", ".dicom"})


class Pictures:
    """An index of the pictures below some folders of a dataset.

    Folders are listed once, no picture is opened, and only links are resolved: 112,120 files take about a second.

    Args:
        root: the dataset's folder.
        folders: glob patterns below the root, searched with all that is in them.
        image_dir: the only folder to search, as the user named it; it may lie outside the root.
        allowed: further folders that links may lead into.
        key: what a picture is looked up by.

    Raises:
        DatasetError: ``image_dir`` is no folder, or a linked folder leads outside.
    """

    def __init__(
        self,
        root: Path,
        folders: Sequence[str],
        *,
        image_dir: str | None = None,
        allowed: Sequence[Path] = (),
        key: Callable[[Path], str],
    ) -> None:
        self.root, self._allowed = root, list(allowed)
        self.searched = [image_dir] if image_dir is not None else list(folders)
        self._places: dict[str, list[Path]] = {}
        self._links: set[Path] = set()
        seen: set[Path] = set()
        for folder in self._tops(folders, image_dir):
            for path in self._walk(folder, self._home(folder), seen):
                self._places.setdefault(key(path), []).append(path)

    def keys(self) -> set[str]:
        """Every key that a picture was found under."""
        return set(self._places)

    def locate(self, key: str) -> Path | None:
        """Return the picture of a key, or None where there is none.

        Raises:
            DatasetError: two pictures have that key, or it is a link that leads outside.
        """
        places = self._places.get(key)
        if places is None:
            return None
        if len(places) > 1:
            raise self._ambiguous(key, places)
        return self._home(places[0]) if places[0] in self._links else places[0]

    def _home(self, path: Path) -> Path:
        """Return where a path really lies, if that is inside the root or an allowed folder."""
        return resolve_inside(path.parent, path.name, [self.root, *self._allowed])

    def _tops(self, patterns: Sequence[str], image_dir: str | None) -> list[Path]:
        if image_dir is None:
            return sorted(p for pattern in patterns for p in self.root.glob(pattern) if p.is_dir())
        folder = self.root / image_dir
        if not folder.is_dir():
            there = sorted(p.name for p in self.root.iterdir() if p.is_dir()) if self.root.is_dir() else []
            raise DatasetError(
                "image_dir names no folder", where=folder, expected="a folder of pictures", got=", ".join(there)
            )
        # Naming a folder in the run file is the permission that a table's path would need.
        self._allowed.append(folder.resolve())
        return [folder]

    def _walk(self, folder: Path, home: Path, seen: set[Path]) -> Iterator[Path]:
        """Yield pictures below a folder that really lies at ``home``; each folder once, so that links may not loop."""
        if home in seen:
            return
        seen.add(home)
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            raise DatasetError("a folder of pictures cannot be listed", where=folder, got=str(error)) from error
        for entry in listed:
            if entry.name.startswith((".", "__MACOSX")):
                continue
            path, linked = Path(entry.path), entry.is_symlink()
            # A link may lead in a circle: Path asks again, and takes it for no folder.
            if path.is_dir() if linked else entry.is_dir():
                yield from self._walk(path, self._home(path) if linked else home / entry.name, seen)
            elif path.suffix.lower() in SUFFIXES:
                if linked:
                    self._links.add(path)
                yield path

    def _ambiguous(self, key: str, places: Sequence[Path]) -> DatasetError:
        folders = {
            str(p.parent.relative_to(self.root)) if p.is_relative_to(self.root) else str(p.parent) for p in places
        }
        fix = f"name the folder to use: image_dir: {min(folders)}" if len(folders) > 1 else "remove all copies but one"
        return DatasetError(
            f"a picture is there {len(places)} times",
            where=key,
            got=shorten([str(p) for p in places]),
            expected="one file a picture",
            fix=fix,
        )


class NamedPictures:
    """Pictures whose very paths a table gives; they are looked up one by one."""

    searched: ClassVar[list[str]] = ["."]

    def keys(self) -> set[str]:
        """No picture is known beyond those that the table names."""
        return set()

    def locate(self, key: str) -> Path | None:
        """Return the picture at a path, or None where there is none."""
        path = Path(key)
        return path if is_file(path) else None
