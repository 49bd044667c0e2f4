"""All blind scorers over a set of items, and the one sentence that follows: does the benchmark need the image?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from medground.benchmarks.medical_checklist.audit import base, learned, ngrams, surface, term_frequency
from medground.benchmarks.medical_checklist.audit.base import BlindScorer, Caption, Floats, Pair
from medground.benchmarks.medical_checklist.hashing import number
from medground.metrics.bootstrap import clusters
from medground.metrics.decide import Rule, decide_level
from medground.metrics.inference import estimate_mean
from medground.metrics.spec import MetricSpec

CHANCE = 0.5
HALVES = 2
ACCURACY = MetricSpec("blind_accuracy", "accuracy without the image", floor="chance", floor_value=CHANCE)
RULE = Rule(0.02, 10, unit="clusters")

Needs = Literal["yes", "no", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Result:
    """What one blind scorer comes to.

    Attributes:
        scorer: its name.
        group: ``all``, or a semantic type.
        accuracy: share of items; ties count one half.
        low: of the 95 % interval, clustered.
        high: of the interval.
        n: items.
        ties: of these.
        clusters: papers, images or scene pairs.
        decision: above chance by more than the margin (``better``), at it, below it, or cannot be told.
    """

    scorer: str
    group: str
    accuracy: float
    low: float | None
    high: float | None
    n: int
    ties: int
    clusters: int
    decision: str


@dataclass(frozen=True)
class AuditReport:
    """All results, each item's credit by scorer, and the answer."""

    results: tuple[Result, ...]
    credits: dict[str, Floats]
    needs_the_image: Needs
    sentence: str
    reference: str

    @property
    def best(self) -> Result | None:
        """The blind scorer with the highest accuracy over all items."""
        overall = [r for r in self.results if r.group == "all"]
        return max(overall, key=lambda r: r.accuracy, default=None)

    def data(self) -> dict[str, Any]:
        """Return the report as JSON-like data."""
        return {
            "needs_the_image": self.needs_the_image,
            "sentence": self.sentence,
            "reference": self.reference,
            "margin": RULE.in_words(),
            "results": [asdict(r) for r in self.results],
        }

    def in_words(self) -> str:
        """Return the report for people: the sentence, then one line a scorer."""
        rows = [r for r in self.results if r.group == "all"]
        width = max(len(r.scorer) for r in rows)
        lines = [self.sentence, f"learned from: {self.reference}; {RULE.in_words()}", ""]
        for r in sorted(rows, key=lambda r: -r.accuracy):
            ends = "" if r.low is None or r.high is None else f"[{100 * r.low:5.1f}, {100 * r.high:5.1f}]"
            figures = f"{100 * r.accuracy:5.1f} %  {ends}  n {r.n}, ties {r.ties}, {r.decision}"
            lines.append(f"{r.scorer:<{width}}  {figures}")
        return "\n".join(lines)


def audit(
    pairs: Sequence[Pair],
    reference: Iterable[Caption] | None = None,
    extra: Sequence[BlindScorer] = (),
    *,
    seed: int = 0,
) -> AuditReport:
    """Score items with everything that sees no picture.

    Args:
        pairs: the items.
        reference: true captions to learn words from; those that share a paper with an item are left out. Without any,
            the true captions of the other half of the items' papers serve.
        extra: further blind scorers, such as a causal language model.
        seed: of the halves and folds.
    """
    pairs = sorted(pairs, key=lambda p: p.item_id)
    held = None if reference is None else [c.text for c in base.disjoint(reference, pairs)]
    credits = _reference_scorers(pairs, held, seed)
    for scorer in (learned.Learned(seed=seed), *extra):
        credits[scorer.name] = base.hits(scorer.scores(pairs))
    groups = {"all": np.ones(len(pairs), dtype=bool)}
    types = np.array([p.category for p in pairs])
    groups |= {t: types == t for t in sorted(set(types.tolist()))}
    results = [
        _result(name, group, values[rows], [p.cluster for p, r in zip(pairs, rows, strict=True) if r])
        for name, values in credits.items()
        for group, rows in groups.items()
        if rows.any()
    ]
    said = (
        f"{len(held)} captions of other papers"
        if held is not None
        else "true captions of the other half of the items' papers"
    )
    answer, sentence = _answer([r for r in results if r.group == "all"])
    return AuditReport(tuple(results), credits, answer, sentence, said)


def _reference_scorers(pairs: Sequence[Pair], held: list[str] | None, seed: int) -> dict[str, Floats]:
    """Return each item's credit from the scorers that learn from true captions, on a reference or cross-fitted."""
    if held is not None:
        return {s.name: base.hits(s.scores(pairs)) for s in _scorers(held)}
    half = np.array([number(seed, "half", p.cluster) % HALVES for p in pairs], dtype=np.int64)
    credits: dict[str, Floats] = {}
    for part in range(HALVES):
        texts = sorted({p.positive for p, h in zip(pairs, half, strict=True) if h != part})
        rows = [int(i) for i in np.flatnonzero(half == part)]
        chosen = [pairs[i] for i in rows]
        for scorer in _scorers(texts or ["."]):
            values = credits.setdefault(scorer.name, np.full(len(pairs), 0.5))
            values[rows] = base.hits(scorer.scores(chosen))
    return credits


def _scorers(texts: list[str]) -> list[BlindScorer]:
    model = ngrams.BigramModel(texts)
    return [
        term_frequency.TermFrequency(texts),
        ngrams.Bigram(model),
        ngrams.Bigram(model, per_token=True),
        *surface.rules(texts or ["."]),
    ]


def _result(name: str, group: str, credit: Floats, of: Sequence[str]) -> Result:
    by = clusters(of, list(range(len(of))))
    estimate = estimate_mean(credit, by)
    said = decide_level(estimate, CHANCE, ACCURACY, RULE)
    # A scorer that is right and wrong equally often inside every cluster has no variation: it is at chance exactly.
    level = float(credit.mean())
    word = said.word
    if word == "cannot be told" and by.count >= RULE.least and _always_half(credit, by.codes):
        word = "equivalent"
    return Result(
        name, group, level, estimate.low, estimate.high, len(credit), int((credit == 0.5).sum()), by.count, word
    )


def _always_half(credit: Floats, codes: Any) -> bool:
    sums = np.bincount(codes, weights=credit - 0.5)
    return bool(np.all(np.abs(sums) < 1e-9))


def _answer(results: Sequence[Result]) -> tuple[Needs, str]:
    if not results:
        return "cannot be told", "There are no items to audit."
    best = max(results, key=lambda r: r.accuracy)
    figures = f"{best.scorer} is right in {_percent(best)} without the image"
    above = [r.scorer for r in results if r.decision == "better"]
    if above:
        return "no", f"The benchmark as built can be solved in part without the image: {figures}, where chance is 50."
    if all(r.decision in ("equivalent", "worse") for r in results):
        none = f"of {len(results)} blind scorers none lies above 50 by {figures_margin()}"
        return "yes", f"The benchmark as built needs the image: {none}; the best, {figures}."
    why = f"{figures}, and the items are too few to exclude a shortcut"
    return "cannot be told", f"Whether the benchmark as built needs the image cannot be told: {why}."


def figures_margin() -> str:
    """Return the margin of a claim in words."""
    assert RULE.margin is not None
    return f"{100 * RULE.margin:g} points"


def _percent(result: Result) -> str:
    ends = "" if result.low is None or result.high is None else f" [{100 * result.low:.1f}, {100 * result.high:.1f}]"
    return f"{100 * result.accuracy:.1f} %{ends} of {result.n} items"
