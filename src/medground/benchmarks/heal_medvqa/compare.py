"""What two models are compared on: closed answers to shared questions, flips over the pool that both rightly affirm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Matched, Pair, Sample
from medground.benchmarks.comparing import ALL, compare_pairs
from medground.benchmarks.heal_medvqa.pools import ClosedAnswers, shared_pool
from medground.benchmarks.heal_medvqa.specs import SPECS
from medground.benchmarks.heal_medvqa.variants import VARIANTS
from medground.identity import fingerprint_of
from medground.metrics.decide import Rule

if TYPE_CHECKING:
    from medground.benchmarks.heal_medvqa import HealMedVQA

_SPECS = {spec.name: spec for spec in SPECS}
_COLUMNS = ("metric", "first", "second", "difference", "low", "high", "p_family", "n", "decision")
_PERCENT = ("difference", "low", "high")


def compare(benchmark: HealMedVQA) -> Comparable:
    """Return how a run is compared: the same build and pastes, the same words around a question, the same readers."""
    choices = benchmark.choices(benchmark.seed)

    def matched(one: Contender, two: Contender) -> Matched:
        yield from natural(*(ClosedAnswers.of(side.rows, "natural") for side in (one, two)))
        quartets = [ClosedAnswers.of(side.rows, "quartets") for side in (one, two)]
        if all(answers.base for answers in quartets):
            samples = [Sample(_SPECS["quartets_right"], _quartets(answers)) for answers in quartets]
            yield samples[0], samples[1]

    return Comparable(
        settings={
            "readers": dict(benchmark.reading[1]),
            "instruction": benchmark.instruction,
            "longest reply": benchmark.max_new_tokens,
            "build": fingerprint_of(repr(choices)),
        },
        matched=matched,
        notes=("flips are compared over the questions to which both models rightly said yes",),
        rules=benchmark.rules,
        seed=benchmark.seed,
    )


def natural(first: ClosedAnswers, second: ClosedAnswers) -> Iterator[tuple[Sample, Sample]]:
    """Yield accuracy (over all, and the mean of yes and no), then every variant over the shared pool."""
    tables = [_closed(answers) for answers in (first, second)]
    one, two = (Sample(_SPECS["accuracy"], table) for table in tables)
    yield one, two
    one, two = (
        Sample(_SPECS["balanced_accuracy"], table.with_columns(group=pl.col("wanted")), groups="answer")
        for table in tables
    )
    yield one, two
    pool = shared_pool([first, second])
    for variant in VARIANTS:
        if any(variant in a.variants.get(question, {}) for a in (first, second) for question in a.all_yes()):
            one, two = (Sample(_SPECS[variant], _flips(answers, pool, variant)) for answers in (first, second))
            yield one, two


def compared(answers: Mapping[str, ClosedAnswers], rules: Mapping[str, Rule], dataset: str) -> pl.DataFrame:
    """Return one line a pair of models and metric, for the tables of a summary: differences in percent points.

    Args:
        answers: model -> its answers on one dataset.
        rules: of decision, by family.
        dataset: label.
    """
    pairs = [Pair(a, b, dataset, list(natural(answers[a], answers[b]))) for a, b in combinations(answers, 2)]
    records = [r for r in compare_pairs(pairs, rules) if r["scope"] == ALL and r["difference"] is not None]
    return pl.DataFrame([{name: _shown(name, r[name]) for name in _COLUMNS} for r in records], infer_schema_length=None)


def _shown(name: str, value: Any) -> Any:
    if value is None or name not in (*_PERCENT, "p_family"):
        return value
    return round(100 * value, 1) if name in _PERCENT else float(f"{value:.3g}")


def _closed(answers: ClosedAnswers) -> pl.DataFrame:
    table = _table(answers.base)
    right = [float(row["answer"] == row["wanted"]) for row in answers.base]
    wanted = [row["wanted"] for row in answers.base]
    return table.with_columns(value=pl.Series(right, dtype=pl.Float64), wanted=pl.Series(wanted, dtype=pl.String))


def _flips(answers: ClosedAnswers, pool: Sequence[str], variant: str) -> pl.DataFrame:
    values, _ = answers.hits(pool, variant)
    base = {row["question_id"]: row for row in answers.base}
    table = _table([base[question] for question in pool])
    return table.with_columns(value=pl.Series(values, dtype=pl.Float64).fill_nan(None))


def _quartets(answers: ClosedAnswers) -> pl.DataFrame:
    """Return whether every question of a quartet got its right answer."""
    right: dict[str, bool] = {}
    for row in answers.base:
        right[row["cluster"]] = right.get(row["cluster"], True) and row["answer"] == row["wanted"]
    names = sorted(right)
    return pl.DataFrame(
        {"item": names, "patient": names, "group": [""] * len(names), "value": [float(right[n]) for n in names]}
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    columns = {
        "item": [row["question_id"] for row in rows],
        "patient": [row["cluster"] for row in rows],
        "group": [""] * len(rows),
        "about": [f"{row['image_id']} {row['anatomy']} {row['finding']} {row['wanted']}" for row in rows],
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
