"""Nothing that opens a door is written into a run folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "(redacted)"
_SECRET_KEY = re.compile(
    r"(^|[_.\- ])(api_?key|access_?key|secret_?key|private_?key|token|password|passwd|passphrase|secret|credentials?|"
    r"authorization|bearer)$"
)
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")


def redact(value: Any) -> Any:
    """Return ``value`` with the text under keys such as ``api_key`` replaced, and logins taken out of addresses.

    Only text is replaced: ``max_tokens: 512`` and ``pad_token: 0`` are settings, not secrets.
    """
    if isinstance(value, Mapping):
        return {
            key: REDACTED if _is_secret(str(key)) and isinstance(item, str) else redact(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return _LOGIN_IN_URL.sub(f"{REDACTED}@", value) if isinstance(value, str) else value


def _is_secret(key: str) -> bool:
    # apiKey and API-KEY are api_key.
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()
    return bool(_SECRET_KEY.search(snake))
