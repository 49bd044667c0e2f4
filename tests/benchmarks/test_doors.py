"""A class is checked for the contract of a benchmark when it is loaded, and has the doors that it declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from medground import registry
from medground.benchmarks.base import Role
from medground.benchmarks.doors import DOORS, check_benchmark
from medground.errors import RegistryError


class Whole:
    name: ClassVar[str] = "whole"
    roles: ClassVar[Mapping[str, Role]] = {"models": Role("model")}
    readings: ClassVar[Mapping[str, str]] = {"reader": "how"}
    doors: ClassVar[Mapping[str, str]] = {"compare": "somewhere:compare"}
    reading = ("rules", {})

    def __init__(self, how: str = "strict") -> None:
        self.how = how

    def bind(self, setting: Any) -> None: ...
    def notes(self) -> list[str]: ...
    def withheld(self) -> list[str]: ...
    def tasks(self) -> list[Any]: ...
    def summarise(self, rows: Any) -> Any: ...
    def manifest(self) -> dict[str, Any]: ...


@pytest.mark.parametrize("name", registry.names("benchmark"))
def test_every_door_of_a_benchmark_leads_somewhere(name: str) -> None:
    benchmark = registry.load("benchmark", name)
    assert set(benchmark.doors) <= set(DOORS)
    assert all(callable(registry.door(benchmark, door)) for door in benchmark.doors)
    assert "compare" in benchmark.doors


def test_a_class_of_our_own_is_a_benchmark() -> None:
    check_benchmark(Whole)
    check_benchmark(type("Child", (Whole,), {"name": "child"}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": None}, "no name"),
        ({"tasks": None}, r"no tasks\(\)"),
        ({"doors": None}, "no doors"),
        ({"roles": {"models": "model"}}, "'models' is no Role"),
        ({"readings": {"readers": "how"}}, "no reading 'readers', did you mean 'reader'"),
        ({"readings": {"reader": "who"}}, "'who', which is neither a parameter nor a role"),
        ({"doors": {"compere": "a:b"}}, "no door 'compere', did you mean 'compare'"),
        ({"doors": {"compare": "a.b"}}, "leads nowhere"),
        ({"doors": {"compare": "a b:c"}}, "leads nowhere"),
    ],
)
def test_what_a_class_lacks_is_told_when_it_is_loaded(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistryError, match=words):
        check_benchmark(type("Changed", (Whole,), change))


def test_a_door_that_is_not_there_or_leads_nowhere_is_told() -> None:
    with pytest.raises(RegistryError, match="cannot do this"):
        registry.door(Whole, "build")
    with pytest.raises(RegistryError, match="cannot be opened"):
        registry.door(Whole, "compare")


def test_benchmarks_are_known_by_their_doors() -> None:
    assert set(registry.offering("compare")) == set(registry.names("benchmark"))
    assert registry.offering("score_files") == ["xbench"]
