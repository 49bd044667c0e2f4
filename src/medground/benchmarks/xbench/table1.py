"""Several datasets side by side, as in Table 1 of the paper: a row a model, pointing, Dice and IoU a dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.xbench.tables import Specs, seen_text
from medground.metrics.spec import MetricSpec

PAPER: Mapping[str, tuple[str, int]] = {
    "covid19_rural": ("COVID-19 Rural", 1),
    "rsna_pneumonia": ("RSNA Pneumonia", 1),
    "siim_pneumothorax": ("SIIM-ACR Pneumothorax", 1),
    "chestx_det": ("ChestX-Det10", 10),
    "chexlocalize": ("CheXlocalize", 13),
    "vindr_cxr": ("VinDr-CXR", 21),
    "nih_chestxray14": ("ChestX-ray14", 8),
}
"""Dataset -> its name and number of classes in the paper, in the paper's order."""

SEEN = "seen in training"
MEASURES = {"pointing": "Pointing", "dice@best": "Dice", "iou@best": "IoU"}
YARDSTICKS = {
    "all foreground": {"dice@best": "dice_floor", "iou@best": "iou_floor"},
    "class prior": {"pointing": "pointing_prior"},
}
"""Rows below the models: what a map that marks everything reaches, and looking where the finding usually is."""


def table1(cells: pl.DataFrame, data: Mapping[str, Any], specs: Specs) -> pl.DataFrame:
    """Return the table, in percent.

    A value that does not rest on every region of its dataset says on how many it does; the last row has their number.
    Datasets come in the paper's order, and under its names where they have as many classes as there.

    Args:
        cells: of a summary.
        data: the summary's other content.
        specs: the metrics by name.
    """
    tasks = data["tasks"]
    titles = _titles(tasks)
    numbers = _Numbers(cells, data["protocol"]["averaging"])
    models = list(dict.fromkeys(task["model"] for task in tasks))
    rows = [
        {"model": model, SEEN: _seen(tasks, model, titles)}
        | {(d, m): numbers.text(model, d, m) for d in titles for m in MEASURES}
        for model in models
    ]
    for name, metrics in YARDSTICKS.items():
        measured = {(d, shown): numbers.text(None, d, metric) for d in titles for shown, metric in metrics.items()}
        rows.append({"model": name} | measured)
    rows.append({"model": "regions"} | {(d, "pointing"): f"{numbers.regions[d]:,}" for d in titles})
    heads: dict[Any, str] = {"model": "model"}
    for d, title in titles.items():
        heads |= {
            (d, m): f"{title} {name}{' (optimistic)' if specs[m].searched else ''}" for m, name in MEASURES.items()
        }
    heads[SEEN] = SEEN
    return pl.DataFrame([{head: row.get(key) for key, head in heads.items()} for row in rows], infer_schema_length=None)


def _star(spec: MetricSpec) -> str:
    return " (optimistic)" if spec.searched else ""


class _Numbers:
    """The values of a summary as they are printed, and the regions behind them."""

    def __init__(self, cells: pl.DataFrame, averaging: str) -> None:
        wanted = [*MEASURES, *(metric for metrics in YARDSTICKS.values() for metric in metrics.values())]
        main = cells.filter((pl.col("subset") == "main") & (pl.col("group") == "") & pl.col("metric").is_in(wanted))
        self._printed = _by_place(main.filter(pl.col("scope") == averaging))
        self._pairs = _by_place(main.filter(pl.col("scope") == "pairs"))
        self.regions: dict[str, int] = defaultdict(int)
        for (dataset, *_), cell in self._pairs.items():
            about = cell["n"] + cell["undefined"] + cell["failed"]
            self.regions[dataset] = max(self.regions[dataset], about)

    def text(self, model: str | None, dataset: str, metric: str) -> str | None:
        """Return ``61.62``, or ``61.62 (30 of 32)``; without a model, of the one that has the most regions."""
        of_all = [place for place in self._pairs if place[:2] == (dataset, metric) and model in {None, place[2]}]
        if not of_all:
            return None
        place = max(of_all, key=lambda p: self._pairs[p]["n"])
        cell, n = self._printed[place], self._pairs[place]["n"]
        if cell["value"] is None:
            return "undefined"
        used = "" if n == self.regions[dataset] else f" ({n:,} of {self.regions[dataset]:,})"
        return f"{100 * cell['value']:.2f}{used}"


def _by_place(cells: pl.DataFrame) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(cell["dataset"], cell["metric"], cell["model"]): cell for cell in cells.iter_rows(named=True)}


def _titles(tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return dataset -> heading, those of the paper first; no heading that another dataset has as its label."""
    classes = {task["dataset"]: len(task["findings"]) for task in tasks}
    order = [*(d for d in PAPER if d in classes), *(d for d in classes if d not in PAPER)]
    names = {d: name for d, (name, n) in PAPER.items() if classes.get(d) == n and name not in classes}
    return {d: names.get(d, d) for d in order}


def _seen(tasks: Sequence[Mapping[str, Any]], model: str, titles: Mapping[str, str]) -> str:
    seen = {titles[task["dataset"]]: seen_text(task) for task in tasks if task["model"] == model}
    return "; ".join(f"{title}: {what}" for title, what in seen.items() if what)
