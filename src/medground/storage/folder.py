"""A folder of this machine, or of a file system that several machines share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from medground.storage.base import Safety, Stored
from medground.storage.files import create_atomic, is_leftover, write_atomic


class FolderStorage:
    """Values as files below a folder.

    Args:
        root: the folder; made with the first value.

    Example:
        >>> import tempfile
        >>> storage = FolderStorage(Path(tempfile.mkdtemp()))
        >>> storage.put("rows/a", b"1")
        >>> storage.get("rows/a"), [stored.key for stored in storage.list("rows/")]
        (b'1', ['rows/a'])
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.root)

    def path(self, key: str) -> Path:
        """Return where a value lies.

        Raises:
            ValueError: the key leads out of the folder.
        """
        if ".." in PurePosixPath(key).parts or key.startswith("/"):
            raise ValueError(f"{key!r} is no key below a folder")
        return self.root / key

    def put(self, key: str, data: bytes, *, safe: Safety = "name") -> None:
        """See :class:`~medground.storage.base.Storage`."""
        write_atomic(self.path(key), data, safe=safe)

    def create(self, key: str, data: bytes) -> bool:
        """See :class:`~medground.storage.base.Storage`."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        return create_atomic(path, data)

    def get(self, key: str) -> bytes:
        """See :class:`~medground.storage.base.Storage`."""
        return self.path(key).read_bytes()

    def exists(self, key: str) -> bool:
        """See :class:`~medground.storage.base.Storage`."""
        return self.path(key).is_file()

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """See :class:`~medground.storage.base.Storage`."""
        paths = (Path(folder) / name for folder, _, names in os.walk(self.path(prefix)) for name in names)
        found = [Stored(p.relative_to(self.root).as_posix(), p.stat().st_size) for p in paths if not is_leftover(p)]
        yield from sorted(found, key=lambda stored: stored.key)

    def delete(self, key: str) -> None:
        """See :class:`~medground.storage.base.Storage`; follows no link."""
        path = self.path(key)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
