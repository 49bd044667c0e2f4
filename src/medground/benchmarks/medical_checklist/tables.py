"""Tables made for people, and comparisons of models on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from medground.benchmarks.medical_checklist.specs import SPECS
from medground.benchmarks.medical_checklist.summarise import Scored
from medground.benchmarks.results import Cells
from medground.metrics.comparison import holm, mcnemar
from medground.metrics.differences import correct

MAIN = (
    "accuracy", "pair_accuracy", "coverage", "accuracy_excluded", "accuracy_wrong", "accuracy_half", "brier",
    "log_loss", "ece", "blind", "gain_blind", "accuracy_blank", "gain_blank", "accuracy_shuffled",
)  # fmt: skip


def main_table(cells: Cells) -> pl.DataFrame:
    """Return one row a model: its figures in the units they are printed in, with the headline's interval."""
    specs = {s.name: s for s in SPECS}
    rows = []
    for model in cells.values("model"):
        row: dict[str, str | int] = {"model": model}
        for metric in MAIN:
            scope = "pairs" if metric == "pair_accuracy" else "all"
            cell = cells.one(model=model, metric=metric, scope=scope, group="")
            row[specs[metric].title] = specs[metric].shown(cell.value) if cell else ""
            if metric == "accuracy" and cell is not None:
                ends = (
                    "" if cell.low is None else f"{specs[metric].shown(cell.low)} to {specs[metric].shown(cell.high)}"
                )
                row |= {"95 %": ends, "n": cell.n, "failed": cell.failed}
        macro = cells.one(model=model, metric="accuracy", scope="macro", group="")
        row["Macro"] = specs["accuracy"].shown(macro.value) if macro else ""
        rows.append(row)
    return pl.DataFrame(rows)


def comparisons(scored: Sequence[Scored]) -> pl.DataFrame:
    """Return every pair of models: sign flips by cluster with max-T over pairs, and McNemar with Holm beside it.

    McNemar takes items for independent and does not hold its level where they are clustered; it is the paper's kind.
    """
    pairs = list(combinations(scored, 2))
    differences = correct([a.against(b.credit) for a, b in pairs], "pairs of models")
    tests = [mcnemar(*_discordant(a, b)) for a, b in pairs]
    corrected = holm([t.exact_p for t in tests])
    rows = [
        {
            "first": a.model, "second": b.model, "difference": d.value, "low": d.low, "high": d.high, "p": d.p,
            "p_family": d.p_family, "family": d.family, "mcnemar_p": t.exact_p, "mcnemar_holm": h,
        }
        for (a, b), d, t, h in zip(pairs, differences, tests, corrected, strict=True)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def _discordant(a: Scored, b: Scored) -> tuple[int, int]:
    """Return how many items only the first and only the second gets right; ties and failures are left out."""
    first, second = a.credit, b.credit
    whole = np.isin(first, (0, 1)) & np.isin(second, (0, 1))
    return int((whole & (first > second)).sum()), int((whole & (first < second)).sum())
