"""``medground export``: items of a benchmark as something to train on, the rest held out."""

from __future__ import annotations

from typing import ClassVar

from medground.commands.offers import Offers


class Exports(Offers):
    """What benchmarks export."""

    door: ClassVar[str] = "export"
