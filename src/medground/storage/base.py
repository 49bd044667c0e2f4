"""The contract of a storage: whole values by key, and nothing that only a disk can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Safety = Literal["process", "content", "name"]
"""What a value outlives once it is put: the end of the process; a power cut, if its name has reached the disk (as it
does within seconds); a power cut at any time."""


@dataclass(frozen=True)
class Stored:
    """What is stored under a key: its size in bytes."""

    key: str
    size: int


class Storage(Protocol):
    """Values by key. A key is a relative path with ``/``; a reader sees a whole value or none.

    Every method raises an ``OSError`` where the storage cannot be reached or written.

    Attributes:
        where: what a message calls it: the folder, or the address.
    """

    @property
    def where(self) -> str:
        """The folder, or the address."""

    def put(self, key: str, data: bytes, *, safe: Safety = "name") -> None:
        """Store a value, in place of an older one.

        Args:
            key: under which it is found.
            data: the value.
            safe: what to wait for.
        """

    def create(self, key: str, data: bytes) -> bool:
        """Store a value where there is none; return whether this call stored it."""

    def get(self, key: str) -> bytes:
        """Return a value.

        Raises:
            FileNotFoundError: there is none.
        """

    def exists(self, key: str) -> bool:
        """Return whether there is a value."""

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Yield what lies below a prefix that ends at a ``/`` (or is empty), in the order of the keys."""

    def delete(self, key: str) -> None:
        """Remove a value and everything below it; nothing there is no error."""
