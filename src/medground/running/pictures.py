"""Whether the pictures of a chunk are still those that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medground.benchmarks.base import Item
from medground.identity import hash_content
from medground.running.chunks import Picture, Receipt


def look_at(item: Item) -> list[Picture]:
    """Return the content of an item's files, read now; files that cannot be read are left to ``load`` to refuse."""
    pictures = []
    for position, path in enumerate(item.files):
        try:
            status = path.stat()
            digest = hash_content(path)
        except OSError:
            continue
        pictures.append(Picture(item.item_id, position, digest, status.st_size, status.st_mtime_ns))
    return pictures


def changed(receipt: Receipt, items: Sequence[Item]) -> str | None:
    """Return the first item whose files are not those of the receipt, or None.

    Size and time of change are compared; where they differ the content decides.
    """
    held = {(picture.item, picture.position): picture for picture in receipt.pictures}
    for item in items:
        for position, path in enumerate(item.files):
            picture = held.get((item.item_id, position))
            if not _same(path, picture):
                return item.item_id
    return None


def _same(path: Path, picture: Picture | None) -> bool:
    try:
        status = path.stat()
    except OSError:
        return picture is None
    if picture is None:
        return False
    if (status.st_size, status.st_mtime_ns) == (picture.size, picture.mtime_ns):
        return True
    return status.st_size == picture.size and hash_content(path) == picture.sha256
