"""What makes a result what it is: short hashes of plain values, and of files, remembered while they do not change."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint_of(*parts: Any) -> str:
    """Return a short hash (16 hex digits) of JSON-like ``parts``; dataclasses and paths are written out by ``repr``."""
    text = json.dumps(parts, sort_keys=True, default=repr, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
