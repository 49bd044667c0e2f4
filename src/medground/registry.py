"""From a component's name to its class, and from a run file's parameters to an instance.

A component is a file: ``models/carzero.py`` holds one class with ``name: ClassVar[str] = "carzero"``. Files are found
by that line and listed without being imported. A model that differs from another by parameters alone is a YAML file in
``models/presets``. Other people's components come by entry point (``medground.models``,
``medground.datasets``, ``medground.explainers``, ``medground.benchmarks``) or as ``"package.module:Class"``.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from medground.errors import ConfigError, RegistryError, did_you_mean, nearest
from medground.identity import component_identity

Kind = str
KINDS: tuple[Kind, ...] = (
    *("model", "dataset", "benchmark", "explainer", "reader", "judge", "simulator", "segmenter", "tool", "metric"),
)
"""Kinds that medground knows; components of a kind lie in the folder of its plural. A plug-in may bring others."""


@dataclass(frozen=True)
class Parameter:
    """One keyword of a component's constructor."""

    name: str
    annotation: str
    default: Any
    required: bool
    meaning: str = ""


_DECLARED = re.compile(r'^[ \t]+name(?:: ClassVar\[str\])? = "(\w+)"$', re.MULTILINE)


@cache
def builtin(kind: Kind) -> dict[str, str]:
    """Return name -> module of the components that ship with medground, without importing any of them."""
    package = Path(__file__).parent
    folder, components = package / f"{kind}s", {}
    for path in sorted(folder.rglob("*.py")):
        module = path.parent if path.name == "__init__.py" else path.with_suffix("")
        if module.name in _DECLARED.findall(path.read_text(encoding="utf-8")):
            components[module.name] = ".".join(("medground", *module.relative_to(package).parts))
    return dict(sorted(components.items()))


def names(kind: Kind) -> list[str]:
    """Return the names of all components of a kind: those that ship with medground, then plug-ins."""
    plugins = {e.name for e in entry_points(group=f"medground.{kind}s")}
    shipped = sorted([*builtin(kind), *presets(kind)])
    return [*shipped, *sorted(plugins - set(shipped))]


def presets(kind: Kind) -> list[str]:
    """Return the names of what ships as parameters for another component."""
    return sorted(path.stem for path in (Path(__file__).parent / f"{kind}s" / "presets").glob("*.yaml"))


def load(kind: Kind, name: str) -> type[Any]:
    """Return the class of a component; that of a benchmark is checked for its contract.

    Raises:
        RegistryError: no component has that name, its module cannot be imported, or it is no benchmark.
    """
    cls = _loaded(kind, name)
    if kind == "benchmark":
        from medground.benchmarks.doors import check_benchmark

        check_benchmark(cls)
    return cls


def _loaded(kind: Kind, name: str) -> type[Any]:
    if ":" in name:
        return _from_path(kind, name)
    if name in builtin(kind):
        return _named_class(import_module(builtin(kind)[name]), name)
    if name in presets(kind):
        return typing.cast("type[Any]", getattr(import_module(f"medground.{kind}s.presets"), name))
    for entry in entry_points(group=f"medground.{kind}s", name=name):
        return typing.cast("type[Any]", entry.load())
    raise RegistryError(
        f"there is no {kind} named {name!r}",
        expected=", ".join(names(kind)) + ", or 'package.module:Class'",
        fix=did_you_mean(name, names(kind)) or f"medground list {kind}s",
    )


def door(cls: Any, name: str) -> Any:
    """Return what a component offers beside its contract: its ``doors`` name module and function, imported now.

    Raises:
        RegistryError: it does not offer that.
    """
    doors: Mapping[str, str] = cls.doors
    if name not in doors:
        raise RegistryError(f"{cls.name} cannot do this", got=name, expected=", ".join(doors) or "nothing further")
    module, _, function = doors[name].partition(":")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"the door {name!r} of {cls.name} cannot be opened",
            where=doors[name],
            got=f"{type(error).__name__}: {error}",
        ) from error


def offering(name: str) -> list[str]:
    """Return the benchmarks that have a door; all are imported."""
    return [benchmark for benchmark in names("benchmark") if name in load("benchmark", benchmark).doors]


def kind_of(name: str) -> Kind:
    """Return the kind of a component that is named without it, as in ``medground describe NAME``.

    Raises:
        RegistryError: no component has that name.
    """
    for kind in KINDS:
        if name in names(kind):
            return kind
    everything = [n for kind in KINDS for n in names(kind)]
    raise RegistryError(f"there is no component named {name!r}", fix=did_you_mean(name, everything) or "medground list")


def _from_path(kind: Kind, name: str) -> type[Any]:
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise RegistryError(f"{name!r} names no class", expected="package.module:Class")
    # A class in the folder that the command runs in is the usual case, and a console script does not search there.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        cls = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"the {kind} {name!r} cannot be imported",
            where=module,
            expected="package.module:Class, importable from here",
            got=f"{type(error).__name__}: {error}",
            fix="run the command in the folder that holds the module, or install it as a package",
        ) from error
    if not inspect.isclass(cls):
        raise RegistryError(f"{name!r} is not a class", got=type(cls).__name__, expected=f"a {kind} class")
    return cls


def _named_class(module: Any, name: str) -> type[Any]:
    for value in vars(module).values():
        if inspect.isclass(value) and vars(value).get("name") == name:
            return value
    raise RegistryError(f"{module.__name__} holds no class named {name!r}", expected=f'name = "{name}"')


def parameters(cls: type[Any]) -> list[Parameter]:
    """Return the keywords of a component's constructor, in order; a dataclass's own go before those it inherits."""
    signature = inspect.signature(cls.__init__)
    keywords = [p for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
    if is_dataclass(cls):
        keywords.sort(key=lambda p: (p.default is not p.empty, _generations(cls, p.name)))
    meanings = {name: text for base in reversed(cls.__mro__) for name, text in documented(base).items()}
    return [
        Parameter(
            p.name,
            _type_name(p.annotation),
            None if p.default is p.empty else p.default,
            p.default is p.empty,
            meanings.get(p.name, ""),
        )
        for p in keywords
    ]


def _generations(cls: type[Any], keyword: str) -> int:
    """Return how far up its bases a dataclass finds a field: 0 for its own."""
    return next(i for i, base in enumerate(cls.__mro__) if keyword in vars(base).get("__annotations__", {}))


def _type_name(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return "Any"
    return short_type(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def short_type(text: str) -> str:
    """Return a type as it is written, without the modules of the standard library."""
    short = re.sub(r"\b(?:typing|pathlib|collections\.abc)\.", "", text)
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", short)


def documented(thing: Any) -> dict[str, str]:
    """Return parameter -> its sentence in the ``Args:`` of the Google-style docstring of a class or function."""
    return documented_text(inspect.cleandoc(thing.__doc__ or ""))


def documented_text(docstring: str) -> dict[str, str]:
    """Return parameter -> its sentence in the ``Args:`` of a docstring without its indentation."""
    section = re.search(r"^Args:\n((?: {4}.*\n?|\n)*)", docstring + "\n", re.MULTILINE)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).replace("``", "") for name, text in entries}


def check(cls: type[Any], given: Mapping[str, Any], *, where: str, base: Path | None = None) -> dict[str, Any]:
    """Return a component's parameters with their declared types, ready to be passed on.

    Args:
        cls: the component's class.
        given: what the run file says.
        where: the place in the run file, for messages.
        base: folder that relative paths start from (the run file's); the working directory comes second.

    Raises:
        ConfigError: a parameter is unknown, missing or of a wrong type; the nearest right name is given.
    """
    from pydantic import ConfigDict, ValidationError, create_model

    known = parameters(cls)
    # A field's type is written in the module of the class that declares it.
    hints = typing.get_type_hints(cls if is_dataclass(cls) else cls.__init__, include_extras=True)
    unknown = [key for key in given if key not in {p.name for p in known}]
    if unknown:
        near = nearest(unknown[0], [p.name for p in known])
        raise ConfigError(
            f"{cls.__name__} has no parameter {unknown[0]!r}",
            where=where,
            expected=", ".join(p.name for p in known) or "no parameters",
            fix=f"did you mean {near!r}?" if near else None,
        )
    fields: dict[str, Any] = {p.name: (hints.get(p.name, Any), ... if p.required else p.default) for p in known}
    model = create_model(
        cls.__name__,
        __config__=ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=()),
        **fields,
    )
    try:
        checked = model(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{cls.__name__}: {first['msg'].lower()}",
            where=".".join([where, *map(str, first["loc"])]),
            got=None if first["type"] == "missing" else repr(first["input"]),
            expected=", ".join(f"{p.name}: {p.annotation}" for p in known if p.name == first["loc"][0]) or None,
        ) from error
    parts: Mapping[str, Kind] = getattr(cls, "parts", {})
    return {
        key: part(parts[key], getattr(checked, key), where=f"{where}.{key}", base=base)
        if key in parts
        else rooted(getattr(checked, key), base)
        for key in given
    }


@dataclass(frozen=True)
class Part:
    """A component that is a parameter of another, as ``of: {name: ...}``: checked at once, built when it is needed.

    Attributes:
        name: of the component.
        cls: its class.
        parameters: of its constructor, checked.
    """

    name: str
    cls: type[Any]
    parameters: Mapping[str, Any]

    def build(self) -> Any:
        """Make the instance."""
        return self.cls(**self.parameters)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return what results depend on, for identities: the files that parameters name count by their content."""
        return {"name": self.name, "identity": component_identity(self.cls, self.parameters)}


def part(kind: Kind, given: Any, *, where: str, base: Path | None = None) -> Part:
    """Return a component that a parameter names.

    Raises:
        ConfigError: the parameter is no mapping with a name.
    """
    if isinstance(given, Part):
        return given
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise ConfigError(f"this parameter is a {kind}", where=where, expected="{name: ..., ...}", got=repr(given)[:80])
    cls = load(kind, given["name"])
    own = {key: value for key, value in given.items() if key not in ("name", "label")}
    return Part(given["name"], cls, check(cls, own, where=where, base=base))


def create(
    kind: Kind, name: str, given: Mapping[str, Any], *, where: str | None = None, base: Path | None = None
) -> Any:
    """Return an instance of a component; see :func:`check` for the arguments and errors."""
    cls = load(kind, name)
    return cls(**check(cls, given, where=where or f"{kind} {name}", base=base))


def rooted(value: Any, base: Path | None) -> Any:
    """Make relative paths absolute: from the run file's folder, or the working directory if only it has the file."""
    if isinstance(value, Path):
        path = value.expanduser()
        if path.is_absolute():
            return path
        beside = (base or Path.cwd()) / path
        return beside if beside.exists() or not path.exists() else Path.cwd() / path
    if isinstance(value, (list, tuple)):
        return type(value)(rooted(v, base) for v in value)
    return value
