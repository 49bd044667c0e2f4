"""From what a user writes to a storage."""

from __future__ import annotations

from pathlib import Path

from medground.errors import ConfigError
from medground.storage.base import Storage
from medground.storage.folder import FolderStorage


def is_address(place: str | Path) -> bool:
    """Return whether a place lies behind an address (``s3://...``) rather than in a folder."""
    return isinstance(place, str) and "://" in place


def open_storage(place: str | Path) -> Storage:
    """Return the storage of a folder or an address.

    Raises:
        ConfigError: the address has a scheme that is not known, or what it needs is not installed.
    """
    if isinstance(place, Path) or "://" not in place:
        return FolderStorage(Path(place))
    from medground.storage.address import SCHEMES, AddressStorage

    scheme = place.partition("://")[0]
    if scheme not in SCHEMES:
        raise ConfigError(
            "an address that is not known",
            where=place,
            expected=f"a folder, or {', '.join(f'{s}://' for s in SCHEMES)}",
            got=f"{scheme}://",
        )
    return AddressStorage(place)


def joined(place: str | Path, name: str) -> str | Path:
    """Return the place ``name`` below a place."""
    return f"{place.rstrip('/')}/{name}" if isinstance(place, str) and is_address(place) else Path(place) / name
