"""Commands made from functions that lie elsewhere, each imported when it is asked for.

The keywords of such a function become the options of its command, with the words of its docstring. A parameter
``dataset`` is a dataset (``--dataset NAME --option KEY=VALUE``), ``benchmark`` the benchmark whose door it is
(``--set KEY=VALUE``); both are built from what a run file would say.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from typer.core import TyperCommand, TyperGroup

from medground import registry
from medground.errors import ConfigError
from medground.terminal import say


class Offers(TyperGroup):
    """A group of commands whose functions are named, not imported."""

    own: typing.ClassVar[Mapping[str, str]] = {}
    """Name of a command -> ``module:function``."""
    door: typing.ClassVar[str] = ""
    """The door of benchmarks that are commands too."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names; benchmarks are imported for it."""
        del ctx  # every call has the same commands
        return [*self.own, *(registry.offering(self.door) if self.door else ())]

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Return a command, made from its function."""
        del ctx
        if cmd_name in self.own:
            return command_of(cmd_name, _imported(self.own[cmd_name]))
        if not self.door or cmd_name not in registry.names("benchmark"):
            return None
        benchmark = registry.load("benchmark", cmd_name)
        return command_of(cmd_name, registry.door(benchmark, self.door), benchmark)


def _imported(path: str) -> Callable[..., object]:
    module, _, function = path.partition(":")
    return typing.cast("Callable[..., object]", getattr(import_module(module), function))


def command_of(name: str, function: Callable[..., object], benchmark: type[Any] | None = None) -> TyperCommand:
    """Return a command that calls a function and prints what it returns.

    Args:
        name: of the command.
        function: its parameters without a default are arguments, or required options where they are keywords alone.
        benchmark: the class that a parameter ``benchmark`` is an instance of.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    meanings = registry.documented(function)
    parameters = [
        parameter for p in inspect.signature(function).parameters.values() for parameter in _options(p, hints, meanings)
    ]

    several = [name for name, hint in hints.items() if typing.get_origin(hint) is tuple and name != "return"]

    def command(**given: Any) -> None:
        say(function(**_built(given | {name: tuple(given[name]) for name in several}, benchmark)))

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = (inspect.getdoc(function) or "").partition("\n\n")[0]
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name)(command)
    return typing.cast("TyperCommand", typer.main.get_command(app))


def _options(p: inspect.Parameter, hints: Mapping[str, Any], meanings: Mapping[str, str]) -> list[inspect.Parameter]:
    """Return what typer is told of a parameter."""
    text = meanings.get(p.name, "")
    if p.name == "dataset":
        more = typer.Option(metavar="KEY=VALUE", help="of the dataset, such as root=/data/nih")
        return [
            _keyword("dataset", str, typer.Option(help=f"{text} See `medground list datasets`."), "phantom"),
            _keyword("option", list[str], more, []),
        ]
    if p.name == "benchmark":
        changes = typer.Option("--set", metavar="KEY=VALUE", help=text)
        return [_keyword("changes", list[str], changes, [])]
    if p.kind is p.POSITIONAL_OR_KEYWORD:
        return [_keyword(p.name, hints[p.name], typer.Argument(metavar=_metavar(p.name), help=text))]
    if typing.get_origin(hints[p.name]) is tuple:  # to typer, a tuple is so many values at once
        several: Any = list
        several = several[typing.get_args(hints[p.name])[0]]
        return [_keyword(p.name, several, typer.Option(help=text), list(p.default))]
    least = (0 if p.default == 0 else 1) if hints[p.name] is int else None
    default = inspect.Parameter.empty if p.default is p.empty else p.default
    return [_keyword(p.name, hints[p.name], typer.Option(min=least, help=text), default)]


def _metavar(name: str) -> str:
    return "FOLDER" if name == "out" else name.upper()


def _keyword(name: str, kind: Any, told: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, told])


def _built(given: dict[str, Any], benchmark: type[Any] | None) -> dict[str, Any]:
    """Return arguments with the dataset and the benchmark in place of what names them."""
    base = Path.cwd()
    if "option" in given:
        name, options = given["dataset"], mapping(given.pop("option"))
        given["dataset"] = registry.create("dataset", name, options, where=f"--dataset {name}", base=base)
    if "changes" in given:
        assert benchmark is not None  # only a benchmark's door has such a parameter
        checked = registry.check(benchmark, mapping(given.pop("changes")), where="--set", base=base)
        given["benchmark"] = benchmark(**checked)
    return given


def mapping(pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``a.b=value`` texts as a nested mapping; values are read as YAML.

    Raises:
        ConfigError: a text without ``=``, or a value that is no YAML.
    """
    nested: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError("an option is no KEY=VALUE", got=pair, expected="such as masks.source=thirds")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError("a value is no YAML", where=key, got=text) from error
        *above, last = key.split(".")
        place = nested
        for name in above:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ConfigError("an option is given twice", where=key)
        place[last] = value
    return nested
