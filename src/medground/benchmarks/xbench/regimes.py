"""Models by what they were pretrained on: pictures of the web, figures of biomedical papers, or chest radiographs.

A description and no test: models of one kind differ in architecture, size and loss as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.printing import heading, text
from medground.metrics.spec import MetricSpec

MEASURES = ("auc", "pointing", "dice@best")
ORDER = ("general", "biomedical", "chest radiographs", None)
NOT_STATED = "not stated"


def known_regimes(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of pretraining that the run's models state, baselines left out, in the order of tables."""
    held = {task["pretrained_on"] for task in tasks if task["kind"] != "baseline"}
    return [name for name in ORDER if name is not None and name in held]


def regimes(
    cells: pl.DataFrame, tasks: Sequence[Mapping[str, Any]], averaging: str, specs: Mapping[str, MetricSpec]
) -> pl.DataFrame:
    """Return one line a dataset and kind of pretraining: its models, and the mean of their figures with the range.

    Baselines are left out, and models that have seen the dataset. A figure that a model lacks is not counted.

    Args:
        cells: of a summary.
        tasks: of the summary.
        averaging: scope of the figures that are printed (``macro`` or ``pairs``); an AUC is always a macro mean.
        specs: the metrics by name.
    """
    main = cells.filter((pl.col("subset") == "main") & (pl.col("group") == ""))
    values = {
        (c["dataset"], c["model"], c["metric"], c["scope"]): (c["value"], c["n"]) for c in main.iter_rows(named=True)
    }
    lines = []
    for dataset in dict.fromkeys(task["dataset"] for task in tasks):
        own = [t for t in tasks if t["dataset"] == dataset and t["kind"] != "baseline" and not t["seen"]]
        for regime in ORDER:
            models = [task["model"] for task in own if task["pretrained_on"] == regime]
            if not models:
                continue
            line: dict[str, Any] = {
                "dataset": dataset,
                "pretrained on": regime or NOT_STATED,
                "models": ", ".join(models),
            }
            for metric in MEASURES:
                scope = "macro" if metric == "auc" else averaging
                found = [values.get((dataset, model, metric, scope), (None, 0)) for model in models]
                line[heading(specs[metric])] = _spread(specs[metric], [value for value, _ in found])
            counted = [values.get((dataset, model, "pointing", "pairs"), (None, 0))[1] for model in models]
            line["regions"] = f"{min(counted)}" if len(set(counted)) == 1 else f"{min(counted)} to {max(counted)}"
            lines.append(line)
    return pl.DataFrame(lines, infer_schema_length=None)


def _spread(spec: MetricSpec, values: Sequence[float | None]) -> str | None:
    """Return ``61.2 (58.0 to 66.1; 3 models)``, or the one figure; None where no model has one."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = text(spec, sum(known) / len(known))
    if len(known) == 1:
        return mean
    return f"{mean} ({text(spec, min(known))} to {text(spec, max(known))}; {len(known)} models)"
