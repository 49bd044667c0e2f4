"""An object store behind an address (``s3://``, ``gs://``, ``az://``), by way of ``obstore``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from medground.errors import ConfigError
from medground.storage.base import Safety, Stored

SCHEMES = ("s3", "gs", "az")


class AddressStorage:
    """Values as objects below an address.

    Keys and places of servers come from the environment, as each provider names them (``AWS_ACCESS_KEY_ID``,
    ``AWS_ENDPOINT_URL``, ``GOOGLE_SERVICE_ACCOUNT``, ``AZURE_STORAGE_ACCOUNT_KEY``, ...): none stands in a run file.

    Args:
        address: ``s3://bucket/prefix``, ``gs://bucket/prefix`` or ``az://container/prefix``.

    Raises:
        ConfigError: ``obstore`` is not installed, or the address is not understood.
    """

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            raise ConfigError(
                "runs behind an address need a package that is not installed",
                where=address,
                expected="obstore",
                fix="pip install 'medground[cloud]'",
            ) from error
        self._obstore = obstore
        options: Any = {"allow_http": True} if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:") else None
        try:
            self._store: Any = from_url(self._address, client_options=options)
        except Exception as error:
            raise ConfigError(
                "the address of an object store is not understood",
                where=address,
                expected=", ".join(f"{scheme}://bucket/prefix" for scheme in SCHEMES),
                got=error,
            ) from error

    @property
    def where(self) -> str:
        """The address."""
        return self._address

    def put(self, key: str, data: bytes, *, safe: Safety = "name") -> None:  # noqa: ARG002  (always the safest)
        """See :class:`~medground.storage.base.Storage`."""
        with self._as_os_errors(key):
            self._store.put(key, data)

    def create(self, key: str, data: bytes) -> bool:
        """See :class:`~medground.storage.base.Storage`."""
        try:
            with self._as_os_errors(key):
                self._store.put(key, data, mode="create")
        except FileExistsError:
            return False
        return True

    def get(self, key: str) -> bytes:
        """See :class:`~medground.storage.base.Storage`."""
        with self._as_os_errors(key):
            return bytes(self._store.get(key).bytes())

    def exists(self, key: str) -> bool:
        """See :class:`~medground.storage.base.Storage`."""
        try:
            with self._as_os_errors(key):
                self._store.head(key)
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """See :class:`~medground.storage.base.Storage`."""
        with self._as_os_errors(prefix):
            metas: list[Mapping[str, Any]] = [m for some in self._store.list(prefix.rstrip("/") or None) for m in some]
        yield from sorted((Stored(str(m["path"]), int(m["size"])) for m in metas), key=lambda stored: stored.key)

    def delete(self, key: str) -> None:
        """See :class:`~medground.storage.base.Storage`."""
        keys = [stored.key for stored in self.list(f"{key}/")]
        if self.exists(key):
            keys.append(key)
        if keys:
            with self._as_os_errors(key):
                self._store.delete(keys)

    @contextmanager
    def _as_os_errors(self, key: str) -> Iterator[None]:
        """Raise what goes wrong as Python does for files."""
        place, exceptions = f"{self._address}/{key}", self._obstore.exceptions
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, _first_line(error), place) from error
        except (FileExistsError, exceptions.AlreadyExistsError) as error:
            raise FileExistsError(errno.EEXIST, "it is there already", place) from error
        except (OSError, exceptions.BaseError) as error:
            raise OSError(errno.EIO, _first_line(error), place) from error


def _first_line(error: Exception) -> str:
    """Return the sentence of a message without the server's answer and the library's own state behind it."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].partition(" - Server returned")[0]
