from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from medground import registry
from medground.errors import ConfigError, RegistryError


class Example:
    name: ClassVar[str] = "example"

    def __init__(
        self, root: Path, size: int = 3, mode: Literal["a", "b"] = "a", extra: list[Path] | None = None
    ) -> None:
        self.root, self.size, self.mode, self.extra = root, size, mode, extra


def test_components_are_found_without_being_imported() -> None:
    registry.builtin.cache_clear()
    before = set(sys.modules)
    names = registry.names("model")
    assert {"baseline_centre", "precomputed"} <= set(names)
    assert "base" not in names
    assert not [m for m in set(sys.modules) - before if m.startswith("medground.models")]


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_builtin_component_can_be_imported_and_carries_its_name(kind: registry.Kind) -> None:
    for name in registry.builtin(kind):
        cls = registry.load(kind, name)
        assert cls.name == name
        registry.parameters(cls)


def test_an_unknown_component_names_the_nearest() -> None:
    with pytest.raises(RegistryError, match="no model named 'baseline_center'") as caught:
        registry.load("model", "baseline_center")
    assert "did you mean 'baseline_centre'?" in str(caught.value)
    with pytest.raises(RegistryError, match="no component named"):
        registry.kind_of("baseline_center")
    assert registry.kind_of("baseline_centre") == "model"


def test_a_class_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_lab.py").write_text(
        "class Theirs:\n    name = 'theirs'\n    def __init__(self, a: int = 1): self.a = a\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert registry.create("model", "their_lab:Theirs", {"a": 4}).a == 4
    with pytest.raises(RegistryError, match="cannot be imported"):
        registry.load("model", "their_lab:Nobody")
    with pytest.raises(RegistryError, match="cannot be imported"):
        registry.load("model", "no_such_module:X")
    with pytest.raises(RegistryError, match="is not a class"):
        registry.load("model", "math:pi")
    for name in (":", "..:X", "math:", ":pi", "my-lab:X"):
        with pytest.raises(RegistryError, match="names no class"):
            registry.load("model", name)


def test_parameters_are_checked_and_typed(tmp_path: Path) -> None:
    checked = registry.check(Example, {"root": str(tmp_path), "size": 4}, where="x")
    assert checked == {"root": tmp_path, "size": 4}


def test_a_parameter_without_a_type_takes_anything() -> None:
    class Loose:
        def __init__(self, x): ...  # type: ignore[no-untyped-def]  # as users write it

    assert registry.check(Loose, {"x": [1]}, where="here") == {"x": [1]}
    with pytest.raises(ConfigError) as caught:
        registry.check(Loose, {}, where="here")
    assert caught.value.expected == "x: Any"


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no parameter 'sise'") as caught:
        registry.check(Example, {"root": "/", "sise": 4}, where="models.0")
    assert "did you mean 'size'?" in str(caught.value)
    assert "models.0" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "place"),
    [({}, "x.root"), ({"root": "/", "size": "many"}, "x.size"), ({"root": "/", "mode": "c"}, "x.mode")],
)
def test_a_wrong_value_says_where(given: dict[str, object], place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.check(Example, given, where="x")
    assert caught.value.where == place


def test_relative_paths_start_from_the_run_file_then_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, here = tmp_path / "base", tmp_path / "here"
    for folder in (base, here):
        folder.mkdir()
    (base / "both").touch()
    (here / "both").touch()
    (here / "only_here").touch()
    monkeypatch.chdir(here)
    given = {"root": "both", "extra": ["only_here", "nowhere"]}
    checked = registry.check(Example, given, where="x", base=base)
    assert checked["root"] == base / "both"
    assert checked["extra"] == [here / "only_here", base / "nowhere"]


def test_describe_lists_parameters() -> None:
    shown = [(p.name, p.default, p.required) for p in registry.parameters(Example)]
    assert shown == [("root", None, True), ("size", 3, False), ("mode", "a", False), ("extra", None, False)]
