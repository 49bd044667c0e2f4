"""Pictures that may not be passed on do not leave the machine unless the run file says that they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from medground.errors import ConfigError


def is_here(base_url: str) -> bool:
    """Whether a server runs on this machine, so that nothing leaves it."""
    host = urlsplit(base_url).hostname or ""
    return host == "localhost" or host.startswith("127.") or host == "::1" or host.endswith(".localhost")


def sends_away(cls: type[Any], parameters: Mapping[str, Any]) -> str | None:
    """Return the server that a component sends pictures to without leave, or a component inside it; None: none.

    Args:
        cls: of the component.
        parameters: of its constructor; a component inside has ``cls`` and ``parameters`` itself.
    """
    if parameters.get("picture") in ("grey", "noise", "none"):
        return None  # a blind twin shows nothing of the case
    url = parameters.get("base_url")
    if getattr(cls, "remote", False) and url and parameters.get("images") != "ignored":
        return None if is_here(str(url)) or parameters.get("allow_upload") else str(url)
    inner = (value for value in parameters.values() if hasattr(value, "cls") and hasattr(value, "parameters"))
    return next(filter(None, (sends_away(part.cls, part.parameters) for part in inner)), None)


def asks_elsewhere(cls: type[Any], parameters: Mapping[str, Any]) -> str | None:
    """Return the server elsewhere that a component, or one inside it, asks: it may cost money. None: it asks none.

    Args:
        cls: of the component.
        parameters: of its constructor; a component inside has ``cls`` and ``parameters`` itself.
    """
    url = parameters.get("base_url")
    if getattr(cls, "remote", False) and url:
        return None if is_here(str(url)) else str(url)
    inner = (value for value in parameters.values() if hasattr(value, "cls") and hasattr(value, "parameters"))
    return next(filter(None, (asks_elsewhere(part.cls, part.parameters) for part in inner)), None)


def refuse_upload(models: Sequence[Any], withheld: Callable[[], Sequence[str]]) -> None:
    """Refuse a run that would send pictures to a server of others, where they may not be passed on.

    Args:
        models: entries of whoever is shown pictures: ``label``, ``cls``, ``parameters``.
        withheld: tells where pictures come from that may not be passed on (datasets, folders); asked only where
            somebody would send any.

    Raises:
        ConfigError: it would.
    """
    for entry in models:
        url = sends_away(entry.cls, entry.parameters)
        kept = withheld() if url is not None else ()
        if kept:
            raise ConfigError(
                f"{entry.label} would send pictures of {', '.join(kept)} to a server elsewhere",
                where=urlsplit(str(url)).hostname,
                expected="data that may be passed on, or a server on this machine",
                fix="if your agreement with the data's publisher allows it: allow_upload: true at the model",
            )
