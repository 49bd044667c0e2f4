"""GridVQA-X: does an explainer tell spatial reasoning from a bag-of-words shortcut?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from medground.benchmarks.base import Entry, Role, Setting
from medground.benchmarks.cards import facts_of
from medground.benchmarks.gridvqa_x.protocol import CAUSES, resolve_protocol
from medground.benchmarks.gridvqa_x.tasks import PoolTask
from medground.benchmarks.results import Summary
from medground.errors import ConfigError
from medground.identity import written_out
from medground.metrics import decide
from medground.worlds.gridvqa.generate import Confusers, Edition
from medground.worlds.gridvqa.sources import Drawn, Read, Source
from medground.worlds.gridvqa.world import Only

LONGEST = 25
"""Words of the longest question, for the plan of calls."""


class GridVQAX:
    """Explainers on a pair of models: one that reasons over relations, one that counts the target's words.

    Three regimes: ``pure`` (the first model on D_pure), ``spurious`` (the second on D_spur), ``cross`` (the second on
    D_pure). A run with one model has the first alone.

    Args:
        per_bucket: scenes a bucket; all texts of a bucket are asked about all its images.
        densities: shares of occupied cells; 19 buckets each.
        grid: cells a side.
        cell: pixels a side of a cell as models see it: a divisor of 64, or a multiple.
        confusers: ``strict`` or ``released``.
        edition: of the drawn scenes: ``second``, or ``first`` for those of earlier releases.
        depths: 1, 2, 3; empty: all. Likewise the next three.
        types: ``A``, ``SO``, ``CO``, ``M``, ``CMP``.
        forms: ``count``, ``exists``, ``compare``.
        buckets: keys such as ``D2-SO-count-d07``; one that cannot be filled is refused, others are left out.
        pure: a folder in the published layout to read D_pure from, instead of drawing it.
        spurious: the same for D_spur.
        split: which split of these folders.
        reasons: label of the model that reasons; by default the run's first.
        shortcut: label of the model that takes the shortcut; by default the second.
        budget: model calls a scene that the explainers may plan together.
        only_right: keep right answers alone in the tables of explainers (the cross regime excepted).
        pictures: scenes a bucket that the report may draw.
        replicates: bootstrap replicates behind the fallacy check; 0: no intervals either.
        level: coverage of the intervals.
        rules: margins and minima of decisions by family of metrics, where they differ from the usual, such as
            ``{mass: {margin: 0.1, least: 50, reliability: 0.8}}``.
        protocol: how kept attributions are read: ``causes``, ``positive``, ``released``, or a mapping of choices.
    """

    name: ClassVar[str] = "gridvqa_x"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ("logits",), least=1, most=2),
        "explainers": Role("explainer"),
    }
    readings: ClassVar[Mapping[str, str]] = {"protocol": "protocol"}
    doors: ClassVar[Mapping[str, str]] = {
        "build": "medground.benchmarks.gridvqa_x.folder:build",
        "compare": "medground.benchmarks.gridvqa_x.compare:compare",
        "train": "medground.training.gridvqa_pair:train_one",
        "protocols": "medground.benchmarks.gridvqa_x.protocol:protocols",
        "run_file": "medground.benchmarks.gridvqa_x.protocol:run_file",
    }

    def __init__(
        self,
        per_bucket: int = 50,
        densities: tuple[float, ...] = (0.7,),
        grid: int = 5,
        cell: int = 16,
        confusers: Confusers = "strict",
        edition: Edition = "second",
        depths: tuple[int, ...] = (),
        types: tuple[str, ...] = (),
        forms: tuple[str, ...] = (),
        buckets: tuple[str, ...] = (),
        pure: Path | None = None,
        spurious: Path | None = None,
        split: str = "val",
        reasons: str | None = None,
        shortcut: str | None = None,
        budget: int = 3500,
        only_right: bool = False,
        pictures: int = 2,
        replicates: int = 1000,
        level: float = 0.95,
        rules: dict[str, dict[str, float]] | None = None,
        protocol: str | dict[str, Any] = "causes",
    ) -> None:
        if per_bucket < 2:
            raise ConfigError("a pool needs two scenes at least", where="benchmark.per_bucket", got=per_bucket)
        if not 0 < level < 1:
            raise ConfigError("the level of an interval lies between 0 and 1", where="benchmark.level", got=level)
        self.per_bucket, self.densities, self.grid, self.cell = per_bucket, tuple(densities), grid, cell
        self.confusers: Confusers = confusers
        self.edition: Edition = edition
        self.only = Only(tuple(depths), tuple(types), tuple(forms), tuple(buckets))
        self.folders = {"pure": pure, "spurious": spurious}
        self.split, self.reasons, self.shortcut = split, reasons, shortcut
        self.budget, self.only_right, self.pictures = budget, only_right, pictures
        self.replicates, self.level, self.rules = replicates, level, decide.rules(rules)
        self.protocol = resolve_protocol(protocol)
        self._setting = Setting(models=())

    def bind(self, setting: Setting) -> None:
        """Take the models and the explainers of the run; without explainers, all that medground has.

        Raises:
            ConfigError: the run has no model or more than two, a model is made for another grid, a named bucket cannot
                be filled, or the explainers plan more calls than the budget.
        """
        if not 1 <= len(setting.models) <= 2:
            raise ConfigError(
                "gridvqa_x takes one model, or a pair",
                where="models",
                expected="the model that reasons, then the one that takes the shortcut",
                got=f"{len(setting.models)} models",
            )
        for entry in setting.models:
            _hold_grid(entry, self.grid)
        self._setting = setting
        for data in (data for data, folder in self.folders.items() if folder is None):
            _ = self._source(data).buckets  # named ones that cannot be filled are refused before the run starts
        if self.planned_calls > self.budget:
            raise ConfigError(
                f"the explainers plan {self.planned_calls} model calls a scene",
                where="benchmark.budget",
                expected=f"at most {self.budget}",
                fix=f"budget: {self.planned_calls}, or smaller explainers (multishap: budget, dime: perturbations)",
            )

    @property
    def reading(self) -> tuple[str, Any]:
        """The protocol, against the causes of the scenes, and how many of these the report draws."""
        changed = {} if self.protocol.choices == CAUSES.choices else dict(self.protocol.choices)
        return self.protocol.name, {"pictures": self.pictures, **changed}

    @cached_property
    def explainers(self) -> tuple[Entry, ...]:
        """The explainers of the run; by default all that ship."""
        return tuple(self._setting.explainers) or default_explainers()

    @property
    def planned_calls(self) -> int:
        """Model calls a scene at most: its row of the pool's matrix, and what every explainer plans."""
        cells = self.grid**2
        return self.per_bucket + sum(int(e.shared().calls(LONGEST, cells, self.per_bucket)) for e in self.explainers)

    @property
    def regimes(self) -> dict[tuple[str, str], str]:
        """(label of the model, data set) -> regime, in the order of the paper."""
        labels = [entry.label for entry in self._setting.models]
        for given in (self.reasons, self.shortcut):
            if given is not None and given not in labels:
                raise ConfigError("no model of the run has this label", got=given, expected=", ".join(labels))
        reasons = self.reasons or next(label for label in labels if label != self.shortcut)
        regimes = {(reasons, "pure"): "pure"}
        for shortcut in (label for label in labels if label != reasons):
            regimes |= {(shortcut, "spurious"): "spurious", (shortcut, "pure"): "cross"}
        return regimes

    def withheld(self) -> Sequence[str]:
        """Nothing: scenes are drawn, those of a folder too."""
        return ()

    def tasks(self) -> Sequence[PoolTask]:
        """Every regime on every bucket."""
        entries = {entry.label: entry for entry in self._setting.models}
        return [
            PoolTask(
                entries[label],
                data,
                source,
                bucket,
                self.explainers,
                self.cell,
                self.pictures,
                self._setting.batch_size,
                self.protocol,
            )
            for label, data in self.regimes
            for source in [self._source(data)]
            for bucket in source.buckets
        ]

    def _source(self, data: str) -> Source:
        folder = self.folders[data]
        if folder is not None:
            read = Read(folder, self.split, data, self.only)
            grids = {scene.grid for bucket in read.buckets for scene in read.scenes(bucket)}
            if grids - {self.grid}:
                raise ConfigError(
                    "the scenes of a folder have another grid than the benchmark",
                    where=folder,
                    expected=f"benchmark.grid: {self.grid}",
                    got=", ".join(map(str, sorted(grids))),
                )
            return read
        drawn: Any = data
        seed = self._setting.seed
        return Drawn(drawn, self.densities, self.per_bucket, self.grid, self.confusers, seed, self.edition, self.only)

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """See :func:`medground.benchmarks.gridvqa_x.summarise.summarise`."""
        from medground.benchmarks.gridvqa_x.compare import compare
        from medground.benchmarks.gridvqa_x.summarise import IntervalOptions, summarise
        from medground.benchmarks.looking import with_looking

        options = IntervalOptions(self.replicates, self._setting.seed, self.level, self.only_right, self.rules)
        summary = summarise(rows, self.regimes, options)
        facts = [facts_of(entry.label, entry.card) for entry in self._setting.models]
        data = {**summary.data, "protocol": self.protocol.in_words()}
        whole = replace(summary, models=facts, notes=self.notes(), data=data)
        return with_looking(whole, compare(self), rows, self._setting.models)

    @property
    def seed(self) -> int:
        """Of scenes and flips: that of the run."""
        return self._setting.seed

    @property
    def scenes(self) -> dict[str, str]:
        """Data set -> a hash of its scenes."""
        return {data: self._source(data).fingerprint() for data in dict.fromkeys(data for _, data in self.regimes)}

    def notes(self) -> list[str]:
        """Return the plan of calls, and what a reader must know of the scenes."""
        notes = [f"explainers plan at most {self.planned_calls} model calls a scene (budget {self.budget})"]
        if self.edition == "first" and self.confusers == "strict":
            notes.append("scenes of the first edition: the number of look-alikes tells some answers")
        for source in (self._source(data) for data, folder in self.folders.items() if folder is None):
            notes += [note for note in getattr(source, "left_out", ()) if note not in notes]
        if self.confusers == "released":
            notes.append("confusers as released: about a quarter of the relations can be dropped unnoticed")
        if self.protocol.choices != CAUSES.choices:
            notes.append(f"attributions are read by {self.protocol.in_words()}")
            notes.append("test-retest correlations are those of whole maps, whatever part of them is read")
        return [*notes, *decide.changes(self.rules)]

    def manifest(self) -> Mapping[str, Any]:
        """Scenes, regimes and explainers with all their parameters."""
        return {
            "data": self.scenes,
            "edition": self.edition if self.confusers == "strict" else "first",
            "regimes": {f"{model} on {data}": regime for (model, data), regime in self.regimes.items()},
            "explainers": {
                e.label: {"class": e.cls.__name__, "identity": e.identity(), **written_out(e.cls, e.parameters)}
                for e in self.explainers
            },
            "protocol": self.protocol.model_dump(mode="json"),
            "planned_calls_a_scene": self.planned_calls,
            "notes": self.notes(),
        }


def _hold_grid(entry: Entry, grid: int) -> None:
    """Raise ConfigError where a model, or that whose twin it is, states another grid than the scenes have."""
    of = entry.parameters.get("of")
    cls, parameters = (entry.cls, entry.parameters) if of is None else (of.cls, of.parameters)
    stated = parameters.get("grid", getattr(cls, "made_for", {}).get("grid", grid))
    if stated != grid:
        raise ConfigError(
            f"{entry.label} is made for scenes of {stated} x {stated} cells",
            where=f"models ({entry.label})",
            expected=f"grid: {stated}",
            got=f"benchmark.grid: {grid}",
            fix=f"grid: {stated} in the benchmark, or a model for {grid} x {grid} cells",
        )


def default_explainers() -> tuple[Entry, ...]:
    """Return the six explainers of the paper, and three more, with their default parameters."""
    from medground.explainers.dime import Dime
    from medground.explainers.emap import Emap
    from medground.explainers.intershap import InterShap
    from medground.explainers.multishap import MultiShap
    from medground.explainers.multiviz import MultiViz
    from medground.explainers.occlusion import Occlusion
    from medground.explainers.pid import Pid
    from medground.explainers.responsibility import Responsibility
    from medground.explainers.swap_interaction import SwapInteraction

    classes: tuple[Any, ...] = (
        Emap,
        InterShap,
        Pid,
        MultiViz,
        Dime,
        MultiShap,
        Occlusion,
        Responsibility,
        SwapInteraction,
    )
    return tuple(Entry(cls.name, cls.name, cls) for cls in classes)
