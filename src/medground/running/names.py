"""Names that come from a user, made fit for a file name: nothing escapes its folder, nothing collides by accident."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

_LONGEST = 100  # bytes; file systems allow 255, and people read these


def escape(text: str) -> str:
    """Return ``text`` percent-encoded so that it is one path component; ``urllib.parse.unquote`` undoes it.

    Separators, control characters and anything that is not ASCII are encoded, and so is a leading dot: neither
    ``..`` nor a hidden file can come out.
    """
    quoted = quote(text, safe=" ()+,=@")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def folder_name(text: str) -> str:
    """Return a folder's name for ``text``: escaped, and cut with a hash at the end where it is too long."""
    escaped = escape(text) or "%"
    if len(escaped) <= _LONGEST:
        return escaped
    return f"{escaped[: _LONGEST - 17]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
