"""What a benchmark says so that its runs can be compared.

Its door ``compare`` is a function of this form::

    def compare(benchmark: OurBenchmark) -> Comparable:
        return Comparable({"judge": benchmark.reading[1]}, side_by_side(samples))

It gives what a model did as `Sample`s, one a metric, one line an item. Matching, groups, families, tests and decisions
are the same for all benchmarks (:mod:`medground.benchmarks.comparing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from medground.metrics import decide
from medground.metrics.permutation import AUC, Ranking
from medground.metrics.spec import MetricSpec

Rows = Mapping[tuple[str, ...], pl.DataFrame]
"""Path of a task, its model first -> rows."""


@dataclass(frozen=True)
class Sample:
    """What one model did, as far as one metric is concerned.

    Attributes:
        spec: the metric; its statistic says which columns the table has.
        table: ``item`` (text, unique within its group), ``patient`` (text or null: the cluster), ``group`` (a finding,
            say; empty for one group of all), and ``value`` in [0, 1] (of a mean), or ``truth`` and ``answer`` (the
            score of a ranking, the call of an F1); null where undefined. ``about``, where it is there, says what an
            item is: two models are compared only where it is the same for both.
        ranking: of a ranking, which metric.
        groups: what the groups are, as cells call it (``class``, ``type``); empty where there are none.
        method: the explainer, or the way of asking, that the figure belongs to.
        reliability: test-retest correlation of that method, where it was measured.
    """

    spec: MetricSpec
    table: pl.DataFrame
    ranking: Ranking = AUC
    groups: str = ""
    method: str = ""
    reliability: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What two models' samples are matched by."""
        return self.spec.name, self.groups, self.method


@dataclass(frozen=True)
class Contender:
    """One of two that are compared.

    Attributes:
        name: how the comparison calls it.
        model: its model, as the comparison calls it.
        part: the part of the model's rows that it stands for, such as an explainer; empty for all of them.
        place: the dataset, say.
        rows: of that model in that place.
    """

    name: str
    model: str
    part: str
    place: str
    rows: pl.DataFrame


Matched = Iterable[tuple[Sample, Sample]]


def _place(path: tuple[str, ...]) -> str:
    return ", ".join(path[1:])


@dataclass(frozen=True)
class Comparable:
    """How one run is compared with another of its benchmark, and its models with each other.

    Attributes:
        settings: what must be equal in two runs, where both have it: protocol, reader, judge, split, ...
        matched: what two sides did on the items that both have, metric by metric.
        notes: what must be known to read a comparison, such as the protocol in words.
        rules: margins and minima, by family of metrics.
        seed: of folds and flips: that of the run.
        level: of the intervals.
        place: path of a task -> where it was measured; rows of one model in one place are taken together.
        parts: label of a model, place, its rows there -> the parts that are compared as models are, by name; None: a
            model is compared as a whole.
    """

    settings: Mapping[str, object]
    matched: Callable[[Contender, Contender], Matched]
    notes: Sequence[str] = ()
    rules: Mapping[str, decide.Rule] = field(default_factory=decide.rules)
    seed: int = 0
    level: float = 0.95
    place: Callable[[tuple[str, ...]], str] = _place
    parts: Callable[[str, str, pl.DataFrame], Mapping[str, pl.DataFrame]] | None = None

    def sides(self, model: str, rows: Rows) -> Iterator[Contender]:
        """Yield every side that a model's rows give.

        Args:
            model: how the comparison calls it.
            rows: of this model's tasks.
        """
        gathered: dict[tuple[str, str], list[pl.DataFrame]] = {}
        for path, table in rows.items():
            gathered.setdefault((path[0], self.place(path)), []).append(table)
        for (label, place), tables in gathered.items():
            whole = pl.concat(tables)
            for part, own in (self.parts(label, place, whole) if self.parts else {"": whole}).items():
                yield Contender(f"{part} on {model}" if part else model, model, part, place, own)


def side_by_side(samples: Callable[[Contender], Iterable[Sample]]) -> Callable[[Contender, Contender], Matched]:
    """Return how two sides are matched where each side's samples need nothing of the other's.

    Args:
        samples: of one side; a metric that only one side has is left out.
    """

    def matched(one: Contender, two: Contender) -> Matched:
        theirs = {sample.key: sample for sample in samples(two)}
        return ((sample, theirs[sample.key]) for sample in samples(one) if sample.key in theirs)

    return matched


@dataclass(frozen=True)
class Pair:
    """Two models in one place, with what each did on the items that both have, metric by metric."""

    first: str
    second: str
    dataset: str
    samples: Sequence[tuple[Sample, Sample]]


def pair_of(comparable: Comparable, one: Contender, two: Contender) -> Pair:
    """Return two sides of one place with their samples."""
    return Pair(one.name, two.name, one.place, list(comparable.matched(one, two)))
