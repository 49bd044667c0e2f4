"""What ``describe`` and ``doctor`` say, and that they say it without importing what takes seconds."""

from __future__ import annotations

import subprocess
import sys
import typing
from dataclasses import is_dataclass

import pytest

from medground import registry
from medground.commands import catalogue
from medground.commands.source_facts import NotPlainError, facts_of

COMPONENTS = [(kind, name) for kind in registry.KINDS for name in registry.builtin(kind)]


def untyped(facts: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Return facts with parameters by name alone: a source names a type, a class may hold the type itself."""
    parameters = [(key.partition(":")[0], text) for key, text in facts["parameters"].items()]
    return {**facts, "parameters": parameters}


@pytest.mark.parametrize(("kind", "name"), COMPONENTS, ids=[f"{k}-{n}" for k, n in COMPONENTS])
def test_the_source_says_what_the_class_says(kind: str, name: str) -> None:
    if registry.kind_of(name) != kind:
        pytest.skip("another kind has a component of this name, and describe shows that one")
    assert untyped(catalogue.describe(name)) == untyped(catalogue.from_class(name))
    assert facts_of(registry.builtin(kind)[name], name)  # read, not taken from the class after all


@pytest.mark.parametrize(("kind", "name"), COMPONENTS, ids=[f"{k}-{n}" for k, n in COMPONENTS])
def test_choices_of_a_parameter_are_written_out(kind: str, name: str) -> None:
    cls = registry.load(kind, name)
    hints = typing.get_type_hints(cls if is_dataclass(cls) else cls.__init__)
    said = {p.name: p.annotation for p in facts_of(registry.builtin(kind)[name], name)["parameters"]}
    for parameter, hint in hints.items():
        if typing.get_origin(hint) is typing.Literal and parameter in said:
            assert said[parameter] == f"Literal[{', '.join(repr(choice) for choice in typing.get_args(hint))}]"


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "carzero"),
        ("describe", "xbench"),
        ("describe", "loba"),
        ("describe", "nih_chestxray14"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_facts_need_no_heavy_library(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "from medground.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print('heavy:', sorted({'torch', 'numba', 'polars', 'transformers', 'pandas', 'scipy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_devices_are_asked_for_on_demand() -> None:
    assert "--devices" in catalogue.doctor()["devices"][0]
    assert any(device.startswith("cpu") for device in catalogue.doctor(devices=True)["devices"])


def test_what_a_source_does_not_say_plainly_is_left_to_the_class() -> None:
    with pytest.raises(NotPlainError):
        facts_of("medground.registry", "registry")
