"""Published models that are another model's file with parameters of their own: a YAML file each.

``of`` names the model by its place in :mod:`medground.models`, ``info`` is the card, ``parameters`` are defaults, which
a run file may change like any other. Each preset is a class here: ``medground.models.presets.chexzero`` is CheXzero.
"""

from __future__ import annotations

import inspect
import typing
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read(name: str) -> dict[str, Any]:
    """Return the content of a preset: ``of``, ``info``, ``parameters``."""
    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


@cache
def preset(name: str) -> type[Any]:
    """Return the class of a preset: its model's, with another card and other defaults."""
    from medground.models.base import ModelInfo

    content = read(name)
    base = _class_in(content["of"])
    defaults: dict[str, Any] = content["parameters"]
    own = inspect.signature(base.__init__)
    changed = [p.replace(default=defaults[k]) if k in defaults else p for k, p in own.parameters.items()]
    if unknown := set(defaults) - set(own.parameters):
        raise TypeError(f"{name}.yaml: {base.name} has no parameter {', '.join(sorted(unknown))}")

    def initialise(self: Any, **given: Any) -> None:
        base.__init__(self, **(defaults | given))

    initialise.__signature__ = own.replace(parameters=changed)  # type: ignore[attr-defined]
    if not is_dataclass(base):  # whose fields have their types on the class
        initialise.__annotations__ = typing.get_type_hints(base.__init__, include_extras=True)
    return type(
        name,
        (base,),
        {
            "__init__": initialise,
            "__module__": __name__,
            "__doc__": f"{content['info']['title']}: {base.name} with parameters of its own.",
            "name": name,
            "info": ModelInfo(**content["info"]),
        },
    )


def _class_in(place: str) -> Any:
    """Return the component's class in a module of models."""
    module = import_module(f"medground.models.{place}")
    name = place.rpartition(".")[2]
    return next(value for value in vars(module).values() if inspect.isclass(value) and vars(value).get("name") == name)


def __getattr__(name: str) -> Any:
    """A preset by its name, so that its class is found where it says that it is, by ``pickle`` too."""
    if name in names():
        return preset(name)
    raise AttributeError(name)
