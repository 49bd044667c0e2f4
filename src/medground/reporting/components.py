"""What a report shows of a benchmark: a folder a benchmark, and a plain component for those that have none.

A component is a package beside this module, named as its benchmark, with ``compose(runs, images) -> Composition``. It
draws its sections with templates of its own (``templates/`` in its folder, named ``<benchmark>/<file>``) or with the
shared ones. Nothing else here knows a benchmark by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.resources import files

from medground.reporting.composition import Composition
from medground.reporting.runs import Run
from medground.reporting.sources import Images

Compose = Callable[[Sequence[Run], Images], Composition]

PACKAGE = "medground.reporting"
MARK = "component.py"
"""A folder that has this file holds the report of the benchmark that it is named after."""


def component(benchmark: str) -> Compose:
    """Return what composes the report of a benchmark: its own, or the plain one."""
    own = benchmark.isidentifier() and files(PACKAGE).joinpath(benchmark, MARK).is_file()
    compose: Compose = import_module(f"{PACKAGE}.{benchmark}.component" if own else f"{PACKAGE}.plain").compose
    return compose
