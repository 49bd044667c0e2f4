"""What the summary answers about one model on one dataset, with what must be said before it is quoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.printing import text, with_interval
from medground.benchmarks.results import QUESTIONS, Verdict
from medground.benchmarks.xbench.specs import fixed
from medground.reporting.verdicts import SIGNS, WORDS, figures
from medground.reporting.words import count
from medground.reporting.xbench.pool import Pooled
from medground.reporting.xbench.standing import standing


@dataclass(frozen=True)
class Answered:
    """One answer as it is printed: sign, word, the question's title, why, and the figures."""

    sign: str
    word: str
    title: str
    because: str
    figures: str


@dataclass(frozen=True)
class VerdictOnModel:
    """Every answer on one model and dataset.

    Attributes:
        model: its label.
        dataset: label of the dataset.
        answers: in the order of the questions.
        remarks: further sentences from its numbers.
        warnings: what must be known before it is quoted.
    """

    model: str
    dataset: str
    answers: tuple[Answered, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


def judged(pool: Pooled, model: str, dataset: str) -> VerdictOnModel:
    """Return the answers on a model and dataset."""
    of = [v for v in pool.verdicts if (v.model, v.dataset) == (model, dataset)]
    answers = tuple(_answered(v, pool) for v in of)
    task = pool.tasks[model, dataset]
    return VerdictOnModel(model, dataset, answers, tuple(_calibration(pool, model, dataset)), tuple(_warnings(task)))


def brief(verdicts: Sequence[Verdict]) -> str:
    """Return the answers in brief: ``tells present from absent: yes; points at the finding: no``."""
    return "; ".join(f"{_lower(QUESTIONS[v.question].title)}: {v.answer}" for v in verdicts)


def _lower(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"


def _answered(verdict: Verdict, pool: Pooled) -> Answered:
    return Answered(
        SIGNS[verdict.answer],
        WORDS[verdict.answer],
        QUESTIONS[verdict.question].title,
        verdict.because,
        figures(verdict, pool.spec),
    )


def _calibration(pool: Pooled, model: str, dataset: str) -> Iterator[str]:
    tau = pool.facts["protocol"]["fixed"][0]
    gap, plain = (pool.cell(model, dataset, m, pool.whole(m)) for m in ("dice_gap", fixed("dice", tau)))
    if gap is None or gap.value is None or plain is None or plain.value is None:
        return
    value = text(pool.spec(plain.metric), plain.value, 1)
    yield (
        f"At the fixed threshold {tau:g} its Dice is {value}; a user who cannot search for a threshold loses "
        f"{with_interval(pool.spec(gap.metric), gap, 1)} points."
    )


def _warnings(task: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{mark[:1].upper()}{mark[1:]}." for mark in standing(task).marks)
    states, pairs = task["states"], task["pairs"]
    if states.get("flat"):
        yield f"{states['flat']:,} of {count(pairs, 'map')} are flat: the same value everywhere."
    undefined = sum(n for state, n in states.items() if state not in {"ok", "flat", "failed"})
    if undefined:
        yield f"{undefined:,} of {count(pairs, 'pair')} are undefined."
    if task["cases_failed"]:
        yield f"{task['cases_failed']:,} of {count(task['cases'], 'case')} could not be read."
    if task["reasons"]:
        reasons = sorted(task["reasons"].items(), key=lambda item: -item[1])
        named = [f"{reason} ({count(n, 'pair')})" for reason, n in reasons[:3]]
        yield f"Reasons: {'; '.join(named)}."
    if task["cases_seen"]:
        yield f"{task['cases_seen']:,} of {count(task['cases'], 'case')} were seen in training and are left out."
