"""Phantoms as measured cases: pictures with known anatomy, measured by the same tools as anybody's masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from medground.benchmarks.cxreasondial.build import VIEW_UNKNOWN, MeasuredCase
from medground.errors import DataError
from medground.tools import Anatomy, measure
from medground.worlds.phantom.scene import Scene, make_scene

#: Width and height of the pictures, and of the masks that are measured.
SIZE = 256


@dataclass(frozen=True)
class Phantoms:
    """Masks of the phantom world: a case's id names its seed and number.

    Attributes:
        size: of the picture, in pixels.
    """

    seed: int = 0
    size: int = SIZE
    population: Literal["default", "tasks"] = "tasks"

    def case_id(self, number: int) -> str:
        """Id of a case."""
        return f"phantom-{self.seed}-{number:05d}"

    def anatomy(self, case_id: str) -> Anatomy:
        """Masks and landmarks of a case, by its id."""
        from medground.worlds.phantom.structures import structures

        scene = self.scene(case_id)
        found = structures(scene, self.size)
        return Anatomy(self.size, self.size, scene.view, found.masks, found.landmarks)

    def case(self, number: int) -> MeasuredCase:
        """Measure one phantom."""
        case_id = self.case_id(number)
        anatomy = self.anatomy(case_id)
        picture = f"images/{case_id}.png"
        return MeasuredCase(case_id, picture, self.size, self.size, anatomy.view, measure(anatomy), case_id)

    def cases(self, count: int, start: int = 0) -> Iterator[MeasuredCase]:
        """Measure phantoms, one at a time."""
        for number in range(start, start + count):
            yield self.case(number)

    def draw(self, case_id: str, path: Path) -> None:
        """Write the picture of a case as PNG."""
        from PIL import Image

        from medground.worlds.phantom.drawing import draw

        pixels = draw(self.scene(case_id), self.size).pixels
        Image.fromarray(pixels if pixels.dtype.name == "uint8" else (pixels * 255).round().astype("uint8")).save(path)

    def scene(self, case_id: str) -> Scene:
        """The scene of a case.

        Raises:
            DataError: the id names no phantom.
        """
        parts = case_id.removesuffix(VIEW_UNKNOWN).split("-")
        if len(parts) != 3 or parts[0] != "phantom" or not (parts[1] + parts[2]).isdecimal():
            raise DataError("this is not the id of a phantom", expected="phantom-SEED-NUMBER", got=case_id)
        return make_scene(int(parts[1]), int(parts[2]), population=self.population)
