"""A folder of golden cases: published names and shapes, inputs by recipe, expected outputs. Nothing in it is run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medground.errors import DataError
from medground.models import standin

Array = NDArray[np.generic]
Shapes = Mapping[str, tuple[int, ...]]
T = TypeVar("T")


@dataclass
class Golden:
    """One model's folder.

    Attributes:
        folder: with ``manifest.json`` and ``cases.npz``.
        manifest: the manifest.
        arrays: the expected outputs and stored inputs, by ``case/name``.
    """

    folder: Path
    manifest: dict[str, Any]
    arrays: Mapping[str, Array]
    _kept: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _drawn: dict[tuple[str, tuple[int, ...]], Tensor] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Golden:
        """Open a folder.

        Raises:
            DataError: the folder does not hold the two files, or they are damaged.
        """
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            arrays = dict(np.load(folder / "cases.npz", allow_pickle=False))
            return cls(folder, dict(manifest), arrays)
        except (OSError, ValueError) as error:
            raise DataError(
                "golden cases cannot be read",
                where=folder,
                expected="a folder with manifest.json and cases.npz",
                got=f"{type(error).__name__}: {error}",
            ) from error

    def cases(self) -> list[Case]:
        """Return the cases in the manifest's order."""
        listed = self.manifest["cases"]
        named = [{"name": name, **case} for name, case in listed.items()] if isinstance(listed, dict) else listed
        return [Case(self, spec) for spec in named]

    def keep(self, kind: str, key: str, make: Callable[[], T]) -> T:
        """Return what was made under a key before, or make it; of each kind, the last one is kept (some are large)."""
        if self._kept.get(kind, (None,))[0] != key:
            self._kept[kind] = (key, make())
        kept: T = self._kept[kind][1]
        return kept

    def state(
        self,
        shapes: Shapes,
        *,
        aliases: Mapping[str, str] | None = None,
        unused: Sequence[str] = (),
        prefix: str = "",
    ) -> dict[str, Tensor]:
        """Return stand-in weights by the name in the file.

        Args:
            shapes: published name -> shape.
            aliases: entry that stores a tensor a second time -> canonical entry.
            unused: patterns of entries without influence: filled with zeros, which costs no time.
            prefix: put before every name.
        """
        filled, aliases = {}, aliases or {}
        for name, shape in shapes.items():
            if any(fnmatchcase(name, pattern) for pattern in unused) and name not in aliases:
                filled[prefix + name] = torch.zeros(()).expand(shape)
            else:
                filled[prefix + name] = self._parameter(aliases.get(name, name), shape)
        return filled

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Tensor:
        # Cases of a folder share most of their entries, and drawing them takes most of the time.
        if (name, shape) not in self._drawn:
            self._drawn[name, shape] = torch.from_numpy(np.array(standin.parameter(name, shape)))
        return self._drawn[name, shape]


@dataclass
class Case:
    """One golden case."""

    golden: Golden
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name in the manifest."""
        return str(self.spec["name"])

    @cached_property
    def options(self) -> dict[str, Any]:
        """What the manifest says about axes, strides and variants."""
        return dict(self.spec.get("options") or {})

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Inputs by name, made from their recipes: arrays, or a list of texts."""
        return {spec["name"]: self._made(spec["recipe"]) for spec in self.spec["inputs"]}

    def _made(self, recipe: Mapping[str, Any]) -> Any:
        kind = recipe["kind"]
        if kind == "tensor":
            value: Any = standin.tensor(recipe["key"], tuple(recipe["shape"]))
        elif kind == "npz":
            value = self.golden.arrays[recipe["key"]]
        elif kind == "ramp":
            value = _ramp(int(recipe["width"]), int(recipe["height"]))
        elif kind == "list":
            value = recipe["values"]
            value = value if _leaf(value).__class__ is str else np.asarray(value)
        else:
            raise DataError("an unknown recipe", where=f"{self.golden.folder}: {self.name}", got=kind)
        return _modified(value, recipe)

    def tensor(self, name: str) -> Tensor:
        """Return an input as a tensor."""
        return torch.from_numpy(np.array(self.inputs[name]))

    def has(self, *names: str) -> bool:
        """Return whether the case has these inputs."""
        return all(name in self.inputs for name in names)

    def wants(self, output: str) -> bool:
        """Return whether the case compares this output."""
        return output in self.spec["outputs"]

    def expected(self, output: str) -> Array:
        """Return the stored output."""
        return self.golden.arrays[f"{self.name}/{output}"]

    def numbers(self, output: str) -> list[int]:
        """Return the whole numbers that the manifest's words on an output name, such as tokens ``0, 15, 195``."""
        words = self.options.get(f"{output}_indices") or self.spec.get("output_meaning", {}).get(output, "")
        if isinstance(words, list):
            return [int(number) for number in words]
        listed = re.search(r"\d+(?:(?:, | and |,\s*)\d+)+", words)
        return [int(number) for number in re.findall(r"\d+", listed[0])] if listed else []

    def stride(self, output: str, default: int) -> int:
        """Return the step of a sub-sampled output, as the options word it (``[:, ::37, ::37]``)."""
        texts = [str(text) for key, text in self.options.items() if key in (output, output.removesuffix("_subset"))]
        texts += [str(text) for text in self.options.values() if output in str(text)]
        if output.endswith("_subset"):
            texts += [str(self.options.get("subsets", ""))]
        for text in texts:
            about = text[text.index(output) :] if output in text else text
            if found := re.search(r"::(\d+)", about):
                return int(found[1])
        return default

    def shapes(self, group: str = "state_dict", names: Callable[[str], bool] = lambda _: True) -> Shapes:
        """Return published name -> shape in this case: fewer blocks and other shapes where the options say so."""
        table = self.golden.manifest[group]
        depth, overrides = self.options.get("depth", {}), self.options.get("shape_overrides", {})
        return {
            name: tuple(overrides.get(name, shape))
            for name, shape in table.items()
            if names(name) and not any(_beyond(name, stem, count) for stem, count in depth.items())
        }

    def key(self) -> str:
        """Return what distinguishes this case's network from other cases'."""
        parts = (self.options.get(name) for name in ("depth", "shape_overrides", "variant", "state_dict", "fill"))
        return json.dumps(list(parts), sort_keys=True)


def count(shapes: Shapes, pattern: str) -> int:
    """Return how many numbered blocks there are; ``pattern`` has one group for the number."""
    found = [int(match[1]) for name in shapes if (match := re.search(pattern, name))]
    return max(found, default=-1) + 1


def stats(values: Array, axes: tuple[int, ...] | None = None) -> Array:
    """Return mean, population standard deviation, least and greatest value, in a last axis."""
    wide = values.astype(np.float64)
    return np.stack([wide.mean(axes), wide.std(axes), wide.min(axes), wide.max(axes)], -1)


def moment(maps: Array) -> Array:
    """Return the sum of ``map[y, x] (y + 3 x) / width`` over the last two axes."""
    height, width = maps.shape[-2:]
    weight = (np.arange(height)[:, None] + 3 * np.arange(width)) / width
    return np.asarray((maps.astype(np.float64) * weight).sum((-2, -1)))


def enlarged(maps: Array, factor: int) -> Array:
    """Return maps with each cell repeated ``factor`` x ``factor`` times."""
    return maps.repeat(factor, -2).repeat(factor, -1)


def every(values: Array, step: int) -> Array:
    """Return every ``step``-th row and column of the last two axes."""
    return values[..., ::step, ::step]


def _ramp(width: int, height: int) -> NDArray[np.uint8]:
    x, y = np.arange(width)[None], np.arange(height)[:, None]
    return ((255 * (x + 2 * y)) // ((width - 1) + 2 * (height - 1))).astype(np.uint8)


def _modified(value: Any, recipe: Mapping[str, Any]) -> Any:
    if "repeat" in recipe:
        value = enlarged(value, int(recipe["repeat"]))
    if "rows" in recipe:
        value = value[recipe["rows"]]
    for index, start in enumerate(recipe.get("zero_rows_from", ())):
        value[index, start:] = 0
    if "dtype" in recipe:
        value = np.asarray(value).astype(recipe["dtype"])
    return value


def _leaf(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _beyond(name: str, stem: str, kept: int) -> bool:
    match = re.match(re.escape(stem) + r"\.(\d+)\.", name)
    return match is not None and int(match[1]) >= kept
