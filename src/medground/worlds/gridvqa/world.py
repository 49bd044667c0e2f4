"""Scenes of GridVQA-X: coloured shapes on a grid, one a cell, and a question about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from medground.errors import ConfigError
from medground.worlds.gridvqa.language import Form, Question, Type

Role = Literal["target", "anchor", "lure", "distractor"]
Cell = tuple[int, int]
Answer = int | str

PAIRS: tuple[tuple[int, Type], ...] = (
    *((1, t) for t in cast("tuple[Type, ...]", ("A", "SO", "CO", "M", "CMP"))),
    *((2, t) for t in cast("tuple[Type, ...]", ("SO", "CO", "M", "CMP"))),
    *((3, t) for t in cast("tuple[Type, ...]", ("M", "CMP"))),
)
DENSITIES = (0.3, 0.7)


@dataclass(frozen=True, slots=True)
class Thing:
    """One object: column ``x`` from the left, row ``y`` from the top, its colour, shape and role.

    ``lure`` is a distractor that fits the description of a target but lies outside its region.
    """

    x: int
    y: int
    colour: str
    shape: str
    role: Role = "distractor"

    @property
    def cell(self) -> Cell:
        """Column and row."""
        return self.x, self.y


@dataclass(frozen=True, slots=True, order=True)
class Bucket:
    """One of the 19 cells of the taxonomy at one density."""

    depth: int
    type: Type
    form: Form
    density: float

    @property
    def key(self) -> str:
        """A name such as ``D2-SO-count-d07``."""
        return f"D{self.depth}-{self.type}-{self.form}-{density_key(self.density)}"

    @property
    def relational(self) -> bool:
        """Whether its questions have relations to anchors at all."""
        return self.type != "A" and not (self.type == "CMP" and self.depth == 1)


@dataclass(frozen=True, slots=True)
class Scene:
    """Objects on a ``grid`` by ``grid`` board and a question about them.

    Attributes:
        scene_id: unique in its data set.
        grid: cells a side.
        things: the objects, at most one a cell.
        question: see :class:`~medground.worlds.gridvqa.language.Question`.
        answer: a count, or ``yes`` / ``no``.
        variant: ``pure``, ``spurious``, or any other name for scenes made elsewhere.
        density: share of cells that should be occupied.
    """

    scene_id: str
    grid: int
    things: tuple[Thing, ...]
    question: Question
    answer: Answer
    variant: str
    density: float

    @property
    def bucket(self) -> Bucket:
        """Where the scene stands in the taxonomy."""
        return Bucket(self.question.depth, self.question.type, self.question.form, self.density)


@dataclass(frozen=True, slots=True)
class Only:
    """Some of the buckets: those of these depths, types and forms; an empty tuple leaves its choice open.

    Raises:
        ConfigError: a depth, type or form does not exist.
    """

    depths: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known: tuple[tuple[str, tuple[Any, ...], tuple[Any, ...]], ...] = (
            ("depths", self.depths, (1, 2, 3)),
            ("types", self.types, get_args(Type)),
            ("forms", self.forms, get_args(Form)),
        )
        for name, chosen, there in known:
            if not set(chosen) <= set(there):
                raise ConfigError(f"unknown {name}", expected=", ".join(map(str, there)), got=list(chosen))

    def of(self, there: Sequence[Bucket]) -> list[Bucket]:
        """Return the chosen buckets of ``there``, in its order.

        Raises:
            ConfigError: a key names none of them, or none is left.
        """
        missing = set(self.keys) - {bucket.key for bucket in there}
        if missing:
            raise ConfigError(
                "no bucket has this key", got=", ".join(sorted(missing)), expected=f"for instance {there[0].key}"
            )
        chosen = [
            b
            for b in there
            if (not self.depths or b.depth in self.depths)
            and (not self.types or b.type in self.types)
            and (not self.forms or b.form in self.forms)
            and (not self.keys or b.key in self.keys)
        ]
        if not chosen:
            raise ConfigError("no bucket has these depths, types and forms", got=self)
        return chosen


EVERYTHING = Only()
"""All buckets."""


def density_key(density: float) -> str:
    """Return ``d07`` for 0.7, as the published layout has it, and ``d066`` for 0.66: no two densities share a key."""
    return "d" + f"{density:.12f}".rstrip("0").ljust(3, "0").replace(".", "")


def occupied(grid: int, density: float) -> int:
    """Return the number of objects of a scene: density times cells, rounded down."""
    return math.floor(density * grid * grid + 1e-9)


def buckets(densities: Sequence[float] = DENSITIES) -> list[Bucket]:
    """Return the buckets in the order of the paper: depth, type, form (count first), density last.

    Raises:
        ConfigError: a density does not lie between 0 and 1, or two have one key, as 0.7 and 0.7.
    """
    if not all(0 < density < 1 for density in densities):
        raise ConfigError("density must lie between 0 and 1", got=list(densities))
    if len({density_key(density) for density in densities}) < len(densities):
        raise ConfigError("densities must differ", got=list(densities), fix="name each density once")
    forms: dict[str, tuple[Form, ...]] = {"CMP": ("compare",)}
    return [
        Bucket(depth, kind, form, density)
        for density in densities
        for depth, kind in PAIRS
        for form in forms.get(kind, ("count", "exists"))
    ]
