"""How far the judges of a run agree, where it has two or more: kappa by dialogue, and alpha for several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from medground.metrics.agreement import Agreement, agreement, alpha, estimate_kappa
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import Estimate

#: Below this a figure depends on who judged.
LEAST_KAPPA = 0.6
_METRICS = ("coverage", "faithfulness")


@dataclass(frozen=True)
class Compared:
    """Two judges on one metric.

    Attributes:
        names: of the two.
        metric: ``coverage`` or ``faithfulness``.
        kappa: with its interval by dialogue.
        told: raw agreement, prevalence and the rest.
        alpha: of all judges, where there are more than two.
    """

    names: str
    metric: str
    kappa: Estimate
    told: Agreement
    alpha: float | None = None

    @property
    def missing(self) -> int:
        """Turns that one of the two did not decide."""
        return self.told.n_undefined

    def line(self) -> dict[str, Any]:
        """A line of the table of judges."""
        return {
            "Judges": self.names,
            "Verdict": self.metric,
            "Kappa": _rounded(self.kappa.value),
            "Low": _rounded(self.kappa.low),
            "High": _rounded(self.kappa.high),
            "Agree": _rounded(self.told.raw),
            "PABAK": _rounded(self.told.pabak),
            "Share of 1": _rounded(self.told.prevalence.get("1")),
            "Alpha of all": _rounded(self.alpha),
            "Turns": self.told.n,
            "One undecided": self.missing,
            "Why undefined": self.told.reason or "",
        }

    def warning(self) -> str:
        """What a reader must know of judges that agree little; empty where they agree, or kappa is undefined."""
        if self.kappa.value is None or self.kappa.value >= LEAST_KAPPA:
            return ""
        value = f"{self.kappa.value:.2f}"
        return f"{self.names} agree little on {self.metric} (kappa {value}): the figures depend on the judge."


def compared(rows: pl.DataFrame) -> list[Compared]:
    """Compare every two judges of a run; empty where one judged alone."""
    told = [(row["dialogue"], json.loads(row["by_judge"])) for row in rows.iter_rows(named=True) if row["by_judge"]]
    told = [(dialogue, verdicts) for dialogue, verdicts in told if len(verdicts) > 1]
    names = list(dict.fromkeys(name for _, verdicts in told for name in verdicts))
    by = clusters([dialogue for dialogue, _ in told], list(range(len(told)))) if told else None
    out = []
    for place, metric in enumerate(_METRICS):
        columns = {name: _column([verdicts for _, verdicts in told], name, place) for name in names}
        every = alpha(list(columns.values())) if len(names) > 2 else None
        for first, second in combinations(names, 2):
            a, b = columns[first], columns[second]
            kappa = estimate_kappa(a, b, by) if by is not None else Estimate(None)
            out.append(Compared(f"{first} / {second}", metric, kappa, agreement(a, b, [0, 1]), every))
    return out


def _column(told: Sequence[Mapping[str, Sequence[int | None]]], name: str, place: int) -> list[int | None]:
    return [verdicts[name][place] if name in verdicts else None for verdicts in told]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 3)
