"""``medground build``: the items of a benchmark, or drawn pictures, in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from medground.commands.offers import Offers


class Builds(Offers):
    """What can be built: drawn radiographs, and what benchmarks build."""

    own: ClassVar[Mapping[str, str]] = {"phantom": "medground.worlds.phantom.build:build"}
    door: ClassVar[str] = "build"
