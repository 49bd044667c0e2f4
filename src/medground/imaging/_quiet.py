"""Silence for pydicom's warnings while files are decoded in several threads.

``warnings.catch_warnings`` swaps a list that all threads share and must not be used in threads. Here one filter, for
pydicom alone, is put in place when the first thread enters and taken away when the last one leaves.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

_lock = threading.Lock()
_inside = 0
_entry: Any = None


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what pydicom warns of: values that break the standard are checked, and refused, by medground itself."""
    global _inside, _entry  # noqa: PLW0603  one count for the whole process is the point
    with _lock:
        if _inside == 0:
            warnings.filterwarnings("ignore", module=r"pydicom|medground\.imaging")
            _entry = warnings.filters[0]
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            filters = cast("list[Any]", warnings.filters)
            if _inside == 0 and _entry in filters:
                filters.remove(_entry)
