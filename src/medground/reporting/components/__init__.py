"""What a report shows of a benchmark: one file a benchmark, and a plain one for those that have none.

A component is a module with ``compose(runs, images) -> Composition``. It draws its parts with templates of its own (in
``reporting/templates``) or with those that are there.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def component(benchmark: str) -> ModuleType:
    """Return the module that composes the report of a benchmark."""
    name = f"{__name__}.{benchmark}"
    found = benchmark.isidentifier() and find_spec(name) is not None
    return import_module(name if found else f"{__name__}.plain")
