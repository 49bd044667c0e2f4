"""The lexicon that ships: 953 concepts over all fifteen types, written for this project.

Its identifiers (MC:0001) are local, no CUIs; nothing in it was taken from a licensed terminology.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

from medground.benchmarks.medical_checklist.terminologies import tsv
from medground.benchmarks.medical_checklist.terminologies.base import Terminology

LICENCE = "Apache-2.0, as this package"


@cache
def read() -> Terminology:
    """Return the shipped lexicon with its synonyms, ``is_a`` and ``part_of``."""
    with as_file(files(__package__) / "lexicon") as folder:
        return replace(tsv.read(folder / "terms.tsv"), licence=LICENCE)
