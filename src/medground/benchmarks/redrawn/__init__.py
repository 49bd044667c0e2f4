"""Redrawn: does an explanation lie on what the answer hung on? Phantoms are drawn again without each finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from medground.benchmarks.base import Entry, Role, Setting
from medground.benchmarks.cards import facts_of
from medground.benchmarks.looking import with_looking
from medground.benchmarks.redrawn.asking import ABLE
from medground.benchmarks.redrawn.compare import compare
from medground.benchmarks.redrawn.summarise import NAME, SPECS, cells_of, checks_of, table_of
from medground.benchmarks.redrawn.tasks import RedrawnTask
from medground.benchmarks.results import Summary, with_floors
from medground.errors import ConfigError
from medground.identity import written_out
from medground.metrics import decide


class RedrawnBenchmark:
    """Explanations of any grounder, matcher or chat model, held against what the world itself says mattered.

    A model is asked whether a phantom shows a finding that it has. The same phantom is drawn again without each of its
    findings: what the answer loses tells what it hung on, and the pixels that change tell where that is. An explanation
    is truthful where its mass lies there, more of it than of the class prior (other patients' regions) or an even map.

    Args:
        cases: phantoms, each asked about every finding that it has.
        seed: of the phantoms.
        size: pixels a side.
        grid: cells a side of what explainers hide; a divisor of the size.
        level: coverage of the intervals, by patient.
        rules: margins and minima of decisions, where they differ from the usual, such as ``{mass: {least: 50}}``.
    """

    name: ClassVar[str] = "redrawn"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ABLE, least=1),
        "explainers": Role("explainer"),
    }
    readings: ClassVar[Mapping[str, str]] = {}
    doors: ClassVar[Mapping[str, str]] = {"compare": "medground.benchmarks.redrawn.compare:compare"}

    def __init__(
        self,
        cases: int = 48,
        seed: int = 77,
        size: int = 224,
        grid: int = 7,
        level: float = 0.95,
        rules: dict[str, dict[str, float]] | None = None,
    ) -> None:
        if cases < 1 or seed < 0 or size < 64:
            raise ConfigError("phantoms are counted, seeded and drawn at 64 pixels or more", got=(cases, seed, size))
        if grid < 1 or size % grid:
            raise ConfigError(
                "a grid divides the picture", where="benchmark.grid", expected=f"a divisor of {size}", got=grid
            )
        if not 0 < level < 1:
            raise ConfigError("the level of an interval lies between 0 and 1", where="benchmark.level", got=level)
        self.cases, self.seed, self.size, self.grid, self.level = cases, seed, size, grid, level
        self.rules = decide.rules(rules)
        self._setting = Setting(models=())

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        unable = [e.label for e in setting.explainers if not callable(getattr(e.cls, "explain", None))]
        if unable:
            raise ConfigError(
                "explainers of single answers are needed here; these score pools",
                where="benchmark.explainers",
                got=", ".join(unable),
            )
        self._setting = setting

    @property
    def explainers(self) -> tuple[Entry, ...]:
        """The explainers of the run; by default occlusion in grey."""
        from medground.explainers.occlusion import Occlusion

        return tuple(self._setting.explainers) or (Entry("occlusion", "occlusion", Occlusion, {"fill": "grey"}),)

    @property
    def run_seed(self) -> int:
        """Of the flips: that of the run."""
        return self._setting.seed

    @property
    def reading(self) -> tuple[str, Any]:
        """There is one."""
        return "redrawing", {}

    def notes(self) -> Sequence[str]:
        """Return what must be known to read it."""
        return [
            "a finding counts by what the log-odds of yes lose when the phantom is drawn without it",
            *decide.changes(self.rules),
        ]

    def withheld(self) -> Sequence[str]:
        """Nothing: phantoms are drawn."""
        return ()

    def manifest(self) -> Mapping[str, Any]:
        """Return the scenes and the explainers with all their parameters."""
        return {
            "scenes": {"cases": self.cases, "seed": self.seed, "size": self.size, "grid": self.grid},
            "explainers": {
                e.label: {"class": e.cls.__name__, "identity": e.identity(), **written_out(e.cls, e.parameters)}
                for e in self.explainers
            },
        }

    def tasks(self) -> Sequence[RedrawnTask]:
        """Return one task a model."""
        scenes = (self.cases, self.seed, self.size, self.grid)
        batch = self._setting.requests_a_call
        return [RedrawnTask(model, self.explainers, *scenes, batch) for model in self._setting.models]

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Return means by explanation and finding, and a verdict an explanation."""
        rule = self.rules["mass"]
        held = {path: table for path, table in rows.items() if len(table)}
        cells = with_floors([c for path, table in held.items() for c in cells_of(path, table, self.level)], SPECS)
        seed = self._setting.seed
        told = [v for path, table in held.items() for v in checks_of(path, table, self.level, seed, rule)]
        summary = Summary(
            cells=cells,
            verdicts=told,
            benchmark=NAME,
            reading="redrawing",
            models=[facts_of(entry.label, entry.card) for entry in self._setting.models],
            metrics=SPECS,
            level=self.level,
            tables={"explanations": table_of(cells)},
            data={"rules": {family: given.in_words() for family, given in self.rules.items()}},
            legend="percent; mass of an explanation on what the answer hung on, beside two maps that see no picture",
            shown=("explanations",),
            notes=tuple(self.notes()),
        )
        return with_looking(summary, compare(self), rows, self._setting.models)
