"""A source by kind and path, as a command or a build asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from medground.benchmarks.medical_checklist.sources import medicat, roco, rocov2, table
from medground.benchmarks.medical_checklist.sources.base import Captioned

Kind = Literal["roco", "rocov2", "medicat", "table"]


def open_source(kind: Kind, path: Path) -> Iterator[Captioned]:
    """Return the captions of a source."""
    if kind == "roco":
        return roco.read(path)
    if kind == "rocov2":
        return rocov2.read(path)
    return medicat.read(path) if kind == "medicat" else table.read(path)
