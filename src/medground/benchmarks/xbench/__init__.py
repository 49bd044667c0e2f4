"""XBench: does the model recognise a finding on a chest radiograph, and does its saliency map lie on it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from medground.benchmarks.base import Role, Setting, withheld
from medground.benchmarks.results import Summary
from medground.benchmarks.xbench.declared import card_for, hold
from medground.benchmarks.xbench.further import further_metrics
from medground.benchmarks.xbench.protocol import resolve_protocol
from medground.benchmarks.xbench.replies import keeps_replies, reader_of
from medground.benchmarks.xbench.rows import KeepMaps
from medground.benchmarks.xbench.tasks import Cache, GroundingTask
from medground.datasets.augmented import Augmented
from medground.datasets.base import Dataset
from medground.datasets.overlap import shared_sources
from medground.datasets.report import Reporting
from medground.errors import ConfigError, DatasetError, did_you_mean
from medground.metrics import decide
from medground.metrics.counted import CountedMetric
from medground.models.common.text import key_of


class XBench:
    """Zero-shot recognition and grounding of models on radiograph datasets.

    Args:
        protocol: a named protocol, or a mapping that spells one out (``{base: xbench, scope: class}``).
        keep_maps: which saliency maps are kept on the model's grid: of localised findings, all, or none.
        replicates: of the bootstrap of the ranks of models; 0: no ranks.
        level: coverage of the intervals.
        size_edges: shares of the picture that part small, medium and large regions.
        rules: margins and minima of claims by family of metrics, where they are not the usual ones, such as
            ``{overlap: {margin: 0.02, least: 20}}``.
        operating_point: probability from which a finding counts as called, as the maker states it, for sensitivity,
            specificity and predictive values; by default each half of the patients is called at the best threshold of
            the other half.
        cache: a folder for decoded pictures, which further models and runs then need not decode; changes no number.
        cache_gb: how many GB (10^9 bytes) it may take.
        reader: by which the replies of models that answer in words are read again: ``structured`` or ``prose``; by
            default each model reads its own when it is asked.
    """

    name: ClassVar[str] = "xbench"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ("ground",), least=1),
        "datasets": Role("dataset", least=1),
        "metrics": Role("metric"),
    }
    heeds: ClassVar[frozenset[str]] = frozenset({"exclude_patients", "findings"})
    readings: ClassVar[Mapping[str, str]] = {"protocol": "protocol", "reader": "reader"}
    doors: ClassVar[Mapping[str, str]] = {
        "compare": "medground.benchmarks.xbench.compare:compare",
        "protocol": "medground.benchmarks.xbench.protocol:resolve_protocol",
        "protocols": "medground.benchmarks.xbench.protocol:protocols",
        "pictures": "medground.benchmarks.xbench.tasks:pictures",
        "run_file": "medground.benchmarks.xbench.protocol:run_file",
        "score_files": "medground.benchmarks.xbench.elsewhere:score_files",
    }

    def __init__(
        self,
        protocol: str | dict[str, Any] = "xbench",
        keep_maps: KeepMaps = "regions",
        replicates: int = 1000,
        level: float = 0.95,
        size_edges: tuple[float, ...] = (0.01, 0.05, 0.15),
        rules: dict[str, dict[str, float]] | None = None,
        operating_point: float | None = None,
        cache: Path | None = None,
        cache_gb: float = 20,
        reader: str | None = None,
    ) -> None:
        if not 0 < level < 1:
            raise ConfigError("the level of an interval lies between 0 and 1", where="benchmark.level", got=level)
        if replicates < 0:
            raise ConfigError("replicates cannot be negative", where="benchmark.replicates", got=replicates)
        if not 0 < cache_gb < float("inf"):
            raise ConfigError("a decode cache has a size", where="benchmark.cache_gb", expected="above 0", got=cache_gb)
        if len(set(size_edges)) < len(size_edges) or not all(0 < edge < 1 for edge in size_edges):
            raise ConfigError(
                "edges of sizes are different shares of the picture",
                where="benchmark.size_edges",
                expected="each above 0 and below 1",
                got=size_edges,
            )
        self.protocol = resolve_protocol(protocol)
        self.keep_maps: KeepMaps = keep_maps
        self.replicates = replicates
        self.level = level
        self.size_edges = size_edges
        self.rules = rules or {}
        decide.rules(self.rules)  # a misspelt family is told before anything runs
        self.metrics: tuple[CountedMetric, ...] = ()
        if operating_point is not None and not 0 <= operating_point <= 1:
            raise ConfigError(
                "an operating point is a probability",
                where="benchmark.operating_point",
                expected="between 0 and 1",
                got=operating_point,
            )
        self.operating_point = operating_point
        self.cache = cache
        self.cache_bytes = int(cache_gb * 1e9)
        reader_of(reader)  # a misspelt one is told before anything runs
        self.reader = reader
        self._setting = Setting(models=())

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        if not setting.datasets:
            raise ConfigError("xbench needs at least one dataset", where="benchmark.datasets", fix=_DATASETS_EXAMPLE)
        if self.reader is not None and not any(keeps_replies(entry) for entry in setting.models):
            raise ConfigError(
                "no model of this run answers in words, so there is nothing to read again",
                where="benchmark.reader",
                expected="a chat_grounder among the models",
                got=", ".join(entry.label for entry in setting.models),
            )
        self._setting = setting
        self.metrics = further_metrics(setting.roles.get("metrics", ()), self.protocol)

    @property
    def reading(self) -> tuple[str, Any]:
        """The protocol, and the reader of replies where one is named."""
        choices = self.protocol.model_dump(mode="json")
        if reader := reader_of(self.reader):
            return f"{self.protocol.name}-{self.reader}", choices | {"reader": reader.record()}
        return self.protocol.name, choices

    def withheld(self) -> Sequence[str]:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        return withheld(self._setting.datasets)

    def tasks(self) -> Sequence[GroundingTask]:
        """Every model on every dataset."""
        cache = self.decode_cache
        return [
            GroundingTask(
                model,
                dataset,
                self.protocol,
                seed=self._setting.seed,
                batch_size=self._setting.requests_a_call,
                keep_maps=self.keep_maps,
                cache=cache,
                reader=self.reader,
            )
            for model in self._setting.models
            for dataset in self._setting.datasets
            if self._datasets and self._held is not None
        ]

    @property
    def decode_cache(self) -> Cache | None:
        """Where decoded pictures are kept; None: nowhere."""
        return None if self.cache is None else Cache(self.cache, self.cache_bytes)

    @cached_property
    def _datasets(self) -> dict[str, Dataset]:
        datasets = {entry.label: entry.shared() for entry in self._setting.datasets}
        for label, dataset in datasets.items():
            if not dataset.findings:
                raise DatasetError("a dataset names no finding", where=label, expected="one to evaluate, or more")
        return datasets

    @cached_property
    def _held(self) -> list[str]:
        """What the run must say of what its models declare, held against the data."""
        return [line for entry in self._setting.models for line in hold(entry, self._datasets)]

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Summarise rows, by (model, dataset); see :func:`medground.benchmarks.xbench.summarise.summarise`."""
        from medground.benchmarks.looking import with_looking
        from medground.benchmarks.xbench.compare import compare
        from medground.benchmarks.xbench.robustness import changed_datasets, with_robustness
        from medground.benchmarks.xbench.summarise import SummaryOptions, summarise

        cards = {m.label: card_for(m.card, self._datasets) for m in self._setting.models}
        options = SummaryOptions(
            self.protocol,
            self._setting.seed,
            self.replicates,
            self.level,
            self.size_edges,
            decide.rules(self.rules),
            self.metrics,
            self.operating_point,
        )
        summary = self._as_read(replace(summarise(rows, cards, self.findings, options), notes=self.notes()))
        comparable, changed = compare(self), changed_datasets(self._setting.datasets, self._datasets)
        how = (self.protocol, self.seed, self.metrics)
        summary = with_robustness(summary, comparable, rows, changed, self.findings, how)
        return with_looking(summary, comparable, rows, self._setting.models)

    def _as_read(self, summary: Summary) -> Summary:
        """Return a summary that says by which reader replies were read, where one is named."""
        if self.reader is None:
            return summary
        described = f"{summary.described}; replies of models that answer in words are read by {self.reader}"
        data = {**summary.data, "reader": self.reader}
        return replace(summary, reading=self.reading[0], described=described, data=data)

    @property
    def seed(self) -> int:
        """Of folds, flips and ranks: that of the run."""
        return self._setting.seed

    @property
    def findings(self) -> dict[str, tuple[str, ...]]:
        """Label of a dataset -> its findings, in order."""
        return {label: tuple(dataset.findings) for label, dataset in self._datasets.items()}

    def manifest(self) -> Mapping[str, Any]:
        """Protocol in full and in words, what reading the datasets gave, and which of them share pictures."""
        return {
            "protocol": self.protocol.model_dump(mode="json"),
            "protocol_in_words": self.protocol.in_words(),
            "datasets": {label: _reading(dataset) for label, dataset in self._datasets.items()},
            "notes": self.notes(),
        }

    def notes(self) -> list[str]:
        """Return what must be known beforehand: what was mended, left out or never used, and what shares pictures."""
        reports = {label: d.report() for label, d in self._datasets.items() if isinstance(d, Reporting)}
        remarks = [f"{label}: {remark}" for label, report in reports.items() for remark in report.remarks]
        # A changed dataset shows the plain one's patients by intention.
        plain = [dataset for dataset in self._datasets.values() if not isinstance(dataset, Augmented)]
        shared = map(str, shared_sources(plain))
        changed = decide.changes(decide.rules(self.rules))
        if self.reader is not None:
            changed = [f"kept replies of models that answer in words are read by {self.reader!r}", *changed]
        return [*remarks, *self._held, *self._idle_prompts(), *shared, *changed]

    def _idle_prompts(self) -> Iterator[str]:
        """Say which prompts no finding takes, since a misspelt one changes nothing else."""
        findings = {key_of(finding): finding for dataset in self._datasets.values() for finding in dataset.findings}
        for name in self._setting.prompts:
            if key_of(name) not in findings:
                near = did_you_mean(name, findings.values())
                yield f"no finding takes the prompt for {name!r}" + (f", {near}" if near else "")


def _reading(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "fingerprint": dataset.fingerprint(),
        "cases": len(dataset.cases()),
        "report": dataset.report().lines() if isinstance(dataset, Reporting) else [],
    }


_DATASETS_EXAMPLE = "benchmark: {name: xbench, datasets: [{name: nih_chestxray14, root: /data/nih}]}"
