"""The figures of one model on one dataset, each with its interval over patients (quartets count as one)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.heal_medvqa.baselines import floors, known_from
from medground.benchmarks.heal_medvqa.pools import ClosedAnswers, residue_group
from medground.benchmarks.heal_medvqa.scores import NormalItems, closed_scores, open_counts
from medground.benchmarks.heal_medvqa.variants import VARIANTS
from medground.benchmarks.results import Cell
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import Estimate, estimate_f1, estimate_macro, estimate_mean, estimate_ratio
from medground.metrics.influence import of_mean

BENCHMARK = "heal_medvqa"


@dataclass(frozen=True)
class Whose:
    """Whose figures, and of which part."""

    model: str
    dataset: str
    reading: str
    subset: str = "main"

    def cell(self, metric: str, estimate: Estimate, **more: Any) -> Cell:
        """Return an estimate as a cell."""
        fields: dict[str, Any] = {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "n": estimate.n,
            "undefined": estimate.n_undefined,
            "reason": (estimate.reason or "undefined") if estimate.value is None else None,
        }
        return self.plain(metric, **(fields | more))

    def plain(self, metric: str, **fields: Any) -> Cell:
        """Return a cell from its fields; a value of None needs a reason."""
        if fields.get("value") is None and fields.get("reason") is None:
            fields["reason"] = "nothing to divide by"
        return Cell(
            benchmark=BENCHMARK,
            model=self.model,
            dataset=self.dataset,
            reading=self.reading,
            metric=metric,
            **({"subset": self.subset} | fields),
        )


def closed_cells(whose: Whose, answers: ClosedAnswers) -> list[Cell]:
    """Return the scores of closed questions: all, by kind of "no", by finding."""
    scores = closed_scores(answers.gold, answers.replies)
    left_out = closed_scores(answers.gold, answers.replies, "left_out").values()
    values, failed = scores.values(), {"failed": answers.failed}
    cells = [whose.cell("balanced_accuracy", balanced(answers), n=scores.n, floor=_floor(answers), **failed)]
    gold = np.array([g == "yes" for g in answers.gold], dtype=bool)
    said_yes = np.array([a == "yes" for a in answers.replies], dtype=bool)
    said_no = np.array([a == "no" for a in answers.replies], dtype=bool)
    # A non-answer to a "no" counts as a false positive: the calls that F1 and precision are made from.
    called = np.where(gold, said_yes, ~said_no)
    right = np.where(gold, said_yes, said_no)
    for metric, estimate in (
        ("recall", estimate_mean(np.where(gold, said_yes, np.nan), answers.by)),
        ("specificity", estimate_mean(np.where(gold, np.nan, said_no), answers.by)),
        ("accuracy", estimate_mean(right.astype(float), answers.by)),
        ("precision", estimate_ratio((gold & called).astype(float), called.astype(float), answers.by)),
        ("f1_yes", estimate_f1(gold, called, answers.by)),
        ("yes_ratio", estimate_mean(said_yes.astype(float), answers.by)),
        ("non_answers", estimate_mean((~said_yes & ~said_no).astype(float), answers.by)),
    ):
        cells.append(whose.cell(metric, estimate, undefined=0, **failed))
    cells += [whose.plain(name, value=values[name], n=scores.n, **failed) for name in ("macro_f1", "mcc")]
    cells += [
        whose.plain(name, value=left_out[name], n=scores.n - _other(answers), scope="answers")
        for name in ("balanced_accuracy", "f1_yes", "macro_f1", "specificity", "recall")
    ]
    return cells + _by_group(whose, answers, right)


def balanced(answers: ClosedAnswers) -> Estimate:
    """Return the mean of recall and specificity with its interval."""
    right = np.array([g == a for g, a in zip(answers.gold, answers.replies, strict=True)], dtype=float)
    gold = np.array([g == "yes" for g in answers.gold], dtype=bool)
    if not gold.any() or gold.all():
        return Estimate(None, n=len(gold), reason="only one of the two answers was right throughout")
    parts = [of_mean(np.where(gold == side, right, np.nan), answers.by) for side in (True, False)]
    return estimate_macro(parts)


def _floor(answers: ClosedAnswers) -> float | None:
    """Return the best balanced accuracy of the baselines that do not look at the region, as a share."""
    values = [one.balanced_accuracy for one in floors(known_from(answers.base)) if one.balanced_accuracy is not None]
    return max(values) / 100 if values else None


def _other(answers: ClosedAnswers) -> int:
    return sum(a not in ("yes", "no") for a in answers.replies)


def _by_group(whose: Whose, answers: ClosedAnswers, right: np.ndarray[Any, Any]) -> list[Cell]:
    """Return specificity by what is there instead, accuracy by finding and by how much of a lesion is on the region."""
    cells = []
    for scope, metric, groups in (
        ("negative", "specificity", [row["negative"] if row["wanted"] == "no" else "" for row in answers.base]),
        ("finding", "accuracy", [row["finding"] for row in answers.base]),
        ("share", "accuracy", [_band(row["share"]) for row in answers.base]),
    ):
        for group in sorted({g for g in groups if g}):
            inside = np.array([g == group for g in groups])
            estimate = estimate_mean(np.where(inside, right.astype(float), np.nan), answers.by)
            cells.append(whose.cell(metric, estimate, scope=scope, group=group, undefined=0))
    return cells


def _band(share: float) -> str:
    for limit, name in ((0.0, "none"), (0.2, "up to .2"), (0.5, ".2 to .5"), (0.8, ".5 to .8")):
        if share <= limit:
            return name
    return "above .8"


def quartet_cells(whose: Whose, answers: ClosedAnswers) -> list[Cell]:
    """Return the scores on swapped quartets; whoever ignores words, region or picture is at 50 by construction."""
    if not answers.base:
        return []
    estimate = balanced(answers)
    cells = [whose.cell("balanced_accuracy", estimate, n=len(answers.base), floor=0.5, failed=answers.failed)]
    right: dict[str, bool] = {}
    for row in answers.base:
        right[row["cluster"]] = right.get(row["cluster"], True) and row["answer"] == row["wanted"]
    whole = estimate_mean([float(v) for v in right.values()], clusters(list(right)))
    cells.append(whose.cell("quartets_right", whole, floor=1 / 256))
    ratio = estimate_mean([float(a == "yes") for a in answers.replies], answers.by)
    return [*cells, whose.cell("yes_ratio", ratio)]


def flip_cells(whose: Whose, answers: ClosedAnswers, pool: Sequence[str]) -> list[Cell]:
    """Return TPT, VPT and the controls over a pool of questions that hold."""
    cells = []
    for variant in VARIANTS:
        if not any(variant in answers.variants.get(question, {}) for question in answers.all_yes()):
            continue
        values, by = answers.hits(pool, variant)
        counts = _counts(answers, pool, variant)
        cells.append(whose.cell(variant, estimate_mean(values, by), counts=counts))
        if variant in ("vpt", "vpt_lung"):
            cells += _by_residue(whose, answers, pool, variant)
    both = [answers.hits(pool, variant)[0] for variant in ("tpt_anatomy", "tpt_disease")]
    _, by = answers.hits([*pool, *pool], "tpt_anatomy")
    return [*cells, whose.cell("tpt", estimate_mean(np.concatenate(both), by))]


def _counts(answers: ClosedAnswers, pool: Sequence[str], variant: str) -> dict[str, int]:
    rows = answers.to_variant(pool, variant)
    given = [row["answer"] for row in rows if row is not None]
    return {
        "pool": len(pool),
        "not_made": len(pool) - len(given),
        "non_answers": sum(a not in ("yes", "no") for a in given),
    }


def _by_residue(whose: Whose, answers: ClosedAnswers, pool: Sequence[str], variant: str) -> list[Cell]:
    """Return a visual test apart for items whose lesion the paste covers, those with residue, and whole organs."""
    rows, (values, by) = answers.to_variant(pool, variant), answers.hits(pool, variant)
    groups = ["" if row is None else residue_group(row) for row in rows]
    cells = []
    for group in sorted(set(groups) - {""}):
        inside = np.array([g == group for g in groups])
        estimate = estimate_mean(np.where(inside, values, np.nan), by)
        cells.append(whose.cell(variant, estimate, scope="residue", group=group, undefined=0))
    return cells


_CONVENTIONS: dict[str, NormalItems] = {
    "open_f1": "no_finding_label",
    "open_f1_abnormal": "ignored",
    "open_f1_kept_empty": "kept_empty",
}


def open_cells(whose: Whose, rows: pl.DataFrame, part: str = "natural") -> list[Cell]:
    """Return micro scores of the open questions of a part under the three conventions for normal regions."""
    asked = rows.filter(pl.col("kind").str.starts_with("open") & (pl.col("part") == part))
    records = [row for row in asked.to_dicts() if row["answer"] != "not made"]
    answered = [r for r in records if r["answer"] != "failed"]
    if not records:
        return []
    failed, cells = len(records) - len(answered), []
    for metric, convention in _CONVENTIONS.items():
        counted = [(r, open_counts(r["truth"], r["named"], r["states_normal"], convention)) for r in answered]
        used = [(r["cluster"], one) for r, one in counted if one is not None]
        by = clusters([cluster for cluster, _ in used])
        tp, fp, fn = np.array([one for _, one in used], dtype=float).reshape(-1, 3).T
        estimate = estimate_ratio(2 * tp, 2 * tp + fp + fn, by)
        cells.append(whose.cell(metric, estimate, n=len(used), undefined=0, failed=failed))
        if convention == "no_finding_label":
            for name, below in (("open_precision", tp + fp), ("open_recall", tp + fn)):
                cells.append(whose.cell(name, estimate_ratio(tp, below, by), n=len(used), undefined=0, failed=failed))
    return cells
