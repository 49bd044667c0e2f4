"""Closed-world chest radiographs with exact masks: the embedded default, and a control with a known right answer.

``make_scene`` says what is in a case, ``draw`` gives it pixels, :class:`Phantom` is the dataset of many.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from medground.datasets.base import Case, DatasetInfo, fingerprint_cases
from medground.datasets.manifest import Manifest
from medground.errors import ConfigError, DatasetError
from medground.worlds.phantom.build import build, recipe
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.scene import Population, Scene, make_scene

__all__ = ["Drawing", "Phantom", "Scene", "build", "draw", "make_scene"]


class Phantom:
    """Seeded frontal chest radiographs with none to three of eight findings.

    Pictures are drawn once, into ``root`` or a folder of the user's cache, when cases are first asked for; later calls
    read tables.

    Args:
        cases: how many.
        size: pixels a side, 64 or more.
        seed: 0 or more; another seed gives other patients, another size the same ones.
        population: ``default``, with none to three findings of equal frequency, or ``tasks``, in which the labels of
            the twelve diagnostic tasks are balanced within each view.
        root: a folder made by ``medground build phantom`` with the same cases, size and seed, or one that is absent or
            empty and will be filled.
        workers: processes that draw.
    """

    name: ClassVar[str] = "phantom"
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="medground phantoms",
        findings=(
            "Atelectasis",
            "Cardiomegaly",
            "Effusion",
            "Infiltration",
            "Mass",
            "Nodule",
            "Pneumonia",
            "Pneumothorax",
        ),
        licence="Apache-2.0, as medground; drawn by it, no patient is shown",
        redistributable=True,
        citation="none: the pictures come from this version of medground and a seed",
        obtain="drawn when it is first used, or by `medground build phantom FOLDER`",
        layout=(
            "manifest.jsonl: pictures, views, labels, masks of findings",
            "truth.jsonl: masks of anatomies, landmarks, measurements, exposure, markers, devices, diagnostic tasks",
            "recipe.json: population, cases, size, seed",
            "images/: one PNG a case",
        ),
        prompts={"Effusion": "pleural effusion", "Mass": "lung mass", "Nodule": "lung nodule"},
    )

    def __init__(
        self,
        *,
        cases: int = 200,
        size: int = 224,
        seed: int = 0,
        population: Population = "default",
        root: Path | None = None,
        workers: int = 1,
    ) -> None:
        self.population: Population = population
        self.count, self.size, self.seed, self.workers = cases, size, seed, workers
        self.root = None if root is None else Path(root).expanduser()

    @property
    def findings(self) -> Sequence[str]:
        """The eight findings that ChestX-ray14 localises, in its order."""
        return self.info.findings

    def cases(self) -> Sequence[Case]:
        """Every case, in the order of its number. Draws the pictures where they are not there yet.

        Raises:
            DatasetError: the folder holds something else.
            ConfigError: cases, size or seed are out of range.
        """
        return self._cases

    def fingerprint(self) -> str:
        """A hash of what ``cases()`` returns; part of every chunk's name."""
        return fingerprint_cases(self.cases(), self._folder)

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return Manifest(self._folder, findings=self.info.findings).cases()

    @cached_property
    def _folder(self) -> Path:
        """The folder with the pictures, drawn if need be."""
        wanted = recipe(self.count, self.size, self.seed, self.population)
        folder = self.root or _cache() / "phantom-{version}-{population}-{cases}-{size}-{seed}".format(**wanted)
        if not folder.exists() or not any(folder.iterdir()):
            try:
                build(
                    folder,
                    cases=self.count,
                    size=self.size,
                    seed=self.seed,
                    population=self.population,
                    workers=self.workers,
                )
            except (OSError, ConfigError) as error:
                # Another process may have finished the same folder first; then it is taken.
                if not (folder / "recipe.json").is_file():
                    if isinstance(error, ConfigError):
                        raise
                    raise DatasetError(
                        "phantoms cannot be written", where=folder, got=error, fix="name a folder: root: FOLDER"
                    ) from error
        recorded = _recipe(folder)
        if recorded != wanted:
            raise DatasetError(
                "the folder holds other phantoms",
                where=folder,
                expected=wanted,
                got=recorded,
                fix="name another folder, or give its cases, size and seed",
            )
        return folder


def _recipe(folder: Path) -> object:
    try:
        return json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(
            "a folder holds no phantoms",
            where=folder,
            expected="recipe.json, written by `medground build phantom`",
            got=error,
            fix="name an empty folder, or one that `medground build phantom` made",
        ) from error


def _cache() -> Path:
    """Return the folder for what can be made again: ``MEDGROUND_CACHE``, or the platform's usual place."""
    named = os.environ.get("MEDGROUND_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medground"
