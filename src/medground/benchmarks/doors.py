"""What a benchmark may offer beside its contract, and the check that its class is one.

A benchmark has what it declares in ``doors`` and nothing else: the name of a door, and ``module:function``, which is
imported when somebody goes through it. Commands ask for a door by its name and know no benchmark.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from medground.benchmarks.base import Role
from medground.errors import RegistryError, did_you_mean

DOORS: Mapping[str, str] = {
    "compare": "(benchmark) -> Comparable: how its runs are compared",
    "protocols": "() -> {name: facts}: the protocols that have a name",
    "run_file": "() -> [Section]: what its part of a run file may hold beside its parameters",
    "protocol": "(name or mapping) -> protocol: for score_files",
    "score_files": "(cases, maps, protocol) -> (items, summary): scores of files made elsewhere",
    "build": "(out, ...) -> text: makes its items in a folder; keywords become options of the command",
    "train": "(*, out, ...) -> text: trains the models that ship for it; keywords become options of the command",
    "export": "(file, out, ...) -> text: writes items as training conversations; keywords become options",
    "pictures": "(benchmark) -> read_radiograph: how its pictures are decoded, through a cache where it has one",
    "audit": "(file, reference, language_model, *, seed) -> Audit: what can be solved without the picture",
}
"""Name of a door -> what stands behind it."""

READINGS = ("protocol", "reader", "judge")
"""Options of ``medground score``, which a benchmark's ``readings`` map to a parameter or a role of its own."""

METHODS = ("bind", "notes", "withheld", "tasks", "summarise", "manifest")


@dataclass(frozen=True)
class RunFileSection:
    """A mapping of the run file, as its page shows it: a heading, a sentence and the type that checks it."""

    heading: str
    text: str
    model: type[BaseModel]


class Audit(Protocol):
    """What an audit found."""

    def data(self) -> Mapping[str, Any]:
        """Return it for machines."""

    def in_words(self) -> str:
        """Return it for people."""


def check_benchmark(cls: type[Any]) -> None:
    """Check that a class is a benchmark, when it is loaded.

    Raises:
        RegistryError: it lacks something, or declares something that there is not.
    """
    trouble = next(_troubles(cls), None)
    if trouble:
        what, expected = trouble
        raise RegistryError(f"{cls.__name__} is no benchmark: {what}", where=cls.__module__, expected=expected)


def _troubles(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a class, and what is expected."""
    held = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    if not isinstance(held.get("name"), str):
        yield "it has no name", 'name: ClassVar[str] = "ours"'
    for method in METHODS:
        if not callable(held.get(method)):
            yield f"it has no {method}()", "the methods of medground.benchmarks.base.Benchmark"
    if "reading" not in held:
        yield "it has no reading", "the reading in force, a name and what it consists of"
    missing = [name for name in ("roles", "readings", "doors") if not isinstance(held.get(name), Mapping)]
    for name in missing:
        yield f"it has no {name}", f"a mapping {name}, which may be empty"
    if not missing:
        yield from _declared(held["roles"], held["readings"], inspect.signature(cls).parameters)
        yield from _led_nowhere(held["doors"])


def _declared(
    roles: Mapping[str, Any], readings: Mapping[str, str], keywords: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for role, needed in roles.items():
        if not isinstance(needed, Role):
            yield f"the role {role!r} is no Role", "medground.benchmarks.base.Role"
    for option, place in readings.items():
        if option not in READINGS:
            yield f"there is no reading {option!r}{_near(option, READINGS)}", ", ".join(READINGS)
        if place not in keywords and place not in roles:
            yield f"the reading {option!r} sets {place!r}, which is neither a parameter nor a role", ", ".join(keywords)


def _led_nowhere(doors: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for door, path in doors.items():
        if door not in DOORS:
            yield f"there is no door {door!r}{_near(door, tuple(DOORS))}", ", ".join(DOORS)
        module, _, function = str(path).partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            yield f"the door {door!r} leads nowhere", "package.module:function"


def _near(name: str, known: tuple[str, ...]) -> str:
    near = did_you_mean(name, known)
    return f", {near}" if near else ""
