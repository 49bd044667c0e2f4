"""The numbers of one or several xbench runs under one protocol, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from medground.benchmarks.results import Cell, Verdict
from medground.benchmarks.xbench.specs import recognition_specs
from medground.metrics.spec import MetricSpec
from medground.reporting.runs import Run, unique_names

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Pooled:
    """Models of several runs side by side.

    Attributes:
        runs: all under the same protocol.
        owners: label of a model in this report -> (its run, its label there).
    """

    runs: Sequence[Run]
    owners: Mapping[str, tuple[Run, str]]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Pooled:
        """Pool runs.

        A model that several runs measured alike (a baseline, usually) is taken once. Where they have different models
        under one label, the run's name follows it.
        """
        kept: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Run, str]] = {}
        for run, name in zip(runs, unique_names(runs), strict=True):
            for label in dict.fromkeys(task["model"] for task in run.data["tasks"]):
                kept.setdefault((label, _identity(run, label)), (run, name))
        labels = [label for label, _ in kept]
        owners = {
            label if labels.count(label) == 1 else f"{label} · {name}": (run, label)
            for (label, _), (run, name) in kept.items()
        }
        return cls(runs, owners)

    @property
    def facts(self) -> Record:
        """Protocol and intervals, which are the same for all."""
        return self.runs[0].data

    @property
    def models(self) -> list[str]:
        """Labels in this report, in order."""
        return list(self.owners)

    def models_on(self, dataset: str) -> list[str]:
        """Return the models that were asked about a dataset."""
        return [model for model in self.models if (model, dataset) in self.tasks]

    @cached_property
    def datasets(self) -> list[str]:
        """Labels of the datasets, in order."""
        return list(dict.fromkeys(task["dataset"] for task in self.tasks.values()))

    @cached_property
    def tasks(self) -> dict[tuple[str, str], Record]:
        """(model, dataset) -> what was asked and what became of it."""
        return {(task["model"], task["dataset"]): task for task in self.records("tasks")}

    def tasks_on(self, dataset: str) -> list[Record]:
        """Return the tasks of a dataset."""
        return [self.tasks[model, dataset] for model in self.models_on(dataset)]

    def findings(self, dataset: str) -> list[str]:
        """Return the classes of a dataset, in order, of all models."""
        return list(dict.fromkeys(f for task in self.tasks_on(dataset) for f in task["findings"]))

    def labels_by_run(self) -> Iterator[tuple[Run, dict[str, str]]]:
        """Yield every run with its own labels -> those of this report."""
        for run in self.runs:
            yield run, {own: label for label, (owner, own) in self.owners.items() if owner is run}

    def records(self, kind: str) -> Iterator[Record]:
        """Yield the records of a list in the summaries, under the labels of this report."""
        for run, labels in self.labels_by_run():
            for record in run.data[kind]:
                if record["model"] in labels:
                    yield {**record, "model": labels[record["model"]]}

    @cached_property
    def _cells(self) -> dict[tuple[str, ...], Cell]:
        cells = (
            replace(cell, model=labels[cell.model])
            for run, labels in self.labels_by_run()
            for cell in run.summary.cells
            if cell.model in labels
        )
        return {(c.model, c.dataset, c.subset, c.scope, c.group, c.metric): c for c in cells}

    def cell(
        self, model: str, dataset: str, metric: str, scope: str = "macro", group: str = "", subset: str = "main"
    ) -> Cell | None:
        """Return one number, or None where the run has none of that name."""
        return self._cells.get((model, dataset, subset, scope, group, metric))

    def whole(self, metric: str) -> str:
        """Return the scope of a metric's printed figure: the protocol averages classes, or all pairs."""
        averaging: str = self.facts["protocol"]["averaging"]
        return "macro" if metric in {spec.name for spec in recognition_specs()} else averaging

    def spec(self, metric: str) -> MetricSpec:
        """Return what a metric is."""
        return self.runs[0].summary.spec(metric)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Every answer, under the labels of this report."""
        return [
            replace(verdict, model=labels[verdict.model])
            for run, labels in self.labels_by_run()
            for verdict in run.summary.verdicts
            if verdict.model in labels
        ]

    def groups(self, dataset: str, scope: str) -> list[str]:
        """Return the groups of a scope, in order."""
        return list(dict.fromkeys(c.group for c in self._cells.values() if (c.dataset, c.scope) == (dataset, scope)))

    def metrics(self, dataset: str) -> list[str]:
        """Return the metrics that a dataset has, in order."""
        return list(dict.fromkeys(c.metric for c in self._cells.values() if c.dataset == dataset))

    def has_shared(self, dataset: str) -> bool:
        """Whether models were also scored on the cases alone that none of them has seen."""
        return any((c.dataset, c.subset) == (dataset, "shared") for c in self._cells.values())

    def same_cases(self, dataset: str) -> bool:
        """Whether all models were asked about equally many cases and regions."""
        return len({(task["cases"], task["pairs"]) for task in self.tasks_on(dataset)}) <= 1


def _identity(run: Run, label: str) -> frozenset[tuple[str, str]]:
    """Return dataset and fingerprint of every task of a model: two that are equal have the same rows."""
    plan = run.manifest["plan"]
    return frozenset((entry["path"][1], entry["fingerprint"]) for entry in plan if entry["path"][0] == label)


def pools(runs: Sequence[Run]) -> list[Pooled]:
    """Part runs by protocol, reader of replies and coverage of the intervals: others never share a table."""
    parted: dict[str, list[Run]] = {}
    for run in runs:
        choices = run.data["protocol"], run.data.get("reader"), run.summary.level
        parted.setdefault(repr(choices), []).append(run)
    return [Pooled.of(together) for together in parted.values()]
