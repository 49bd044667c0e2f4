"""From rows to means with intervals by patient, and whether an explanation lies on what the answer hung on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell, Verdict
from medground.metrics import decide
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.differences import Difference, compare_means
from medground.metrics.inference import Estimate, estimate_mean
from medground.metrics.spec import MetricSpec

NAME = "redrawn"

SPECS: tuple[MetricSpec, ...] = (
    MetricSpec(
        "mass",
        "Mass on what the answer hung on",
        family="mass",
        floor="class prior",
        floor_metric="prior",
        ceiling="truth as map",
        ceiling_metric="ceiling",
    ),
    MetricSpec("prior", "Mass of the class prior there", direction="neither", family="mass"),
    MetricSpec("even", "Mass of an even map there", direction="neither", family="mass"),
    MetricSpec("ceiling", "Mass of the truth on the same grid", direction="neither", family="mass"),
    MetricSpec(
        "gain", "That mass, minus the higher of the two floors", unit="points", family="mass", bounds=(-1.0, 1.0)
    ),
    MetricSpec("follows", "The answer hangs on the finding that is asked about", direction="neither"),
)
_MASS = SPECS[0]
_FLOORS = ("prior", "even")
_FLOOR_WORDS: Mapping[str, str] = {"prior": "where the finding usually lies", "even": "an even map"}


def cells_of(path: Sequence[str], rows: pl.DataFrame, level: float) -> Iterator[Cell]:
    """Yield a cell an explanation, finding and metric of one model; over all findings under an empty group."""
    for (method,), part in rows.filter(pl.col("method") != "").group_by(["method"], maintain_order=True):
        findings = part["finding"].unique(maintain_order=True).sort().to_list()
        for finding in ("", *findings):
            chosen = part if not finding else part.filter(pl.col("finding") == finding)
            for metric in (spec.name for spec in SPECS if spec.name != "gain"):
                values = _values(chosen, metric)
                yield _cell(path, str(method), finding, metric, estimate_mean(values, _patients(chosen), level), chosen)


def checks_of(path: Sequence[str], rows: pl.DataFrame, level: float, seed: int, rule: decide.Rule) -> Iterator[Verdict]:
    """Yield a verdict an explanation of one model: its mass beside the harder of two floors, paired by item."""
    for (method,), part in rows.filter(pl.col("method") != "").group_by(["method"], maintain_order=True):
        by = _patients(part)
        compared = {f: compare_means(_values(part, "mass"), _values(part, f), by, level, seed) for f in _FLOORS}
        floor = min(_FLOORS, key=lambda f: _or(compared[f].value))
        yield _verdict(path, str(method), floor, compared[floor], part, rule, level)


def _verdict(
    path: Sequence[str],
    method: str,
    floor: str,
    gain: Difference,
    rows: pl.DataFrame,
    rule: decide.Rule,
    level: float,
) -> Verdict:
    decision = decide.decide_beside(gain, _MASS, rule, reliability(rows))
    by = _patients(rows)
    measured = {name: estimate_mean(_values(rows, name), by, level) for name in ("mass", floor)}
    roles = {
        "headline": _cell(path, method, "", "mass", measured["mass"], rows),
        "floor": _cell(path, method, "", floor, measured[floor], rows),
        "difference": _cell(path, method, "", "gain", gain, rows),
    }
    says = {
        "yes": f"It puts more weight on what the answer hung on than {_FLOOR_WORDS[floor]} does.",
        "no": f"It puts no more weight on what the answer hung on than {_FLOOR_WORDS[floor]} does.",
    }.get(decision.answer, "")
    because = decision.because if gain.value is not None else gain.reason or "undefined in every case"
    return Verdict(
        benchmark=NAME,
        reading="redrawing",
        question="explains",
        model=path[0],
        dataset=path[1],
        method=method,
        answer=decision.answer,
        because=f"{says} {because[:1].upper()}{because[1:]}.".strip(),
        margin=rule.margin,
        roles=roles,
        notes=() if decision.enough else ("few",),
    )


def reliability(rows: pl.DataFrame) -> float | None:
    """Return how alike two explanations of an item are on average; None where none was made twice."""
    retest = rows["retest"].drop_nulls()
    return float(np.mean(retest.to_numpy())) if len(retest) else None


def _cell(path: Sequence[str], method: str, finding: str, metric: str, told: Estimate, rows: pl.DataFrame) -> Cell:
    defined = int((~np.isnan(_values(rows, "mass" if metric == "gain" else metric))).sum())
    reasons = dict(sorted(rows["reason"].drop_nulls().value_counts().iter_rows()))
    return Cell(
        benchmark=NAME,
        reading="redrawing",
        model=path[0],
        dataset=path[1],
        method=method,
        scope="finding" if finding else "all",
        group=finding,
        metric=metric,
        value=told.value,
        low=told.low,
        high=told.high,
        n=defined,
        undefined=len(rows) - defined,
        flat=int(rows["flat"].fill_null(value=False).sum()) if metric == "mass" else 0,
        reason=None if told.value is not None else told.reason or "undefined in every case",
        counts=reasons,
    )


def _values(rows: pl.DataFrame, metric: str) -> NDArray[np.float64]:
    return np.asarray(rows[metric].cast(pl.Float64).fill_null(float("nan")).to_numpy(), np.float64)


def _patients(rows: pl.DataFrame) -> Clusters:
    return clusters(rows["case"].cast(pl.String).to_list())


def _or(value: float | None) -> float:
    return float("inf") if value is None else value


def table_of(cells: Sequence[Cell]) -> pl.DataFrame:
    """Return percent over all findings, one line a model and explanation."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        if cell.scope == "all":
            line = lines.setdefault((cell.model, cell.method), {"model": cell.model, "explanation": cell.method})
            line[cell.metric] = None if cell.value is None else round(100 * cell.value, 1)
            if cell.metric == "mass":
                ends = (cell.low, cell.high)
                line["interval"] = " to ".join(f"{100 * end:.1f}" for end in ends if end is not None)
                line |= {"n": cell.n, "undefined": cell.undefined}
    return pl.DataFrame(list(lines.values()), infer_schema_length=None)
