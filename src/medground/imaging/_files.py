"""Files as bytes, within bounds, and errors that name them."""

from __future__ import annotations

import stat
from pathlib import Path

from medground.errors import ImageError

MAX_PIXELS = 80_000_000
"""Pictures of more pixels are refused before they are decoded; the largest radiographs have about 25 million."""

MAX_BYTES = 1 << 30


def contents(file: Path, most: int | None = None) -> bytes:
    """Return a file's bytes, or its first ones.

    Raises:
        ImageError: it cannot be read, is no file, or has more than :data:`MAX_BYTES`.
    """
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait for ever
            raise ImageError("a path is no file", where=str(file))
        if most is None and about.st_size > MAX_BYTES:
            raise ImageError(
                "a file is too large", where=file.name, expected=f"at most {MAX_BYTES} bytes", got=about.st_size
            )
        with file.open("rb") as stream:
            return stream.read(about.st_size if most is None else most)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise ImageError("a file cannot be read", where=str(file), got=str(error)) from error


def named(error: ImageError, file: Path) -> ImageError:
    """Return the error with the file's name in it."""
    where = file.name if error.where is None else f"{file.name}, {error.where}"
    return ImageError(error.what, where=where, expected=error.expected, got=error.got, fix=error.fix)
