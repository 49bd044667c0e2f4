"""The figures that the paper printed, as reference rows beside ours. Read from pictures on the authors' project page.

Nothing is recomputed from them: many printed F1 are not the harmonic mean of the printed precision and recall, and the
ablation's VPT fits no column of the VPT table. Their pictures, questions and prompts are not ours, so the rows say how
high others got on other items, and no test compares them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib.resources import files

import polars as pl

_COLUMNS = {
    ("table2_accuracy", "closed-ended", "f1"): "closed F1",
    ("table2_accuracy", "open-ended", "f1"): "open F1",
    ("table3_tpt", "anatomy swap", "tpt"): "TPT, anatomy",
    ("table3_tpt", "disease swap", "tpt"): "TPT, finding",
    ("table4_vpt", "all", "vpt"): "VPT",
}
_ALIASES = {"Gemini-1.5": "Gemini-1.5-Flash-8B"}


def rows() -> Iterator[dict[str, str]]:
    """Yield every printed figure with its table, model, source, group, metric and note."""
    folder = files("medground.benchmarks.heal_medvqa").joinpath("published_tables")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".csv"):
            yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())


def reference_table() -> pl.DataFrame:
    """Return a line a published model and source, figures in percent."""
    lines: dict[tuple[str, str], dict[str, str | float | None]] = {}
    for row in rows():
        column = _COLUMNS.get((row["table"], row["group"], row["metric"]))
        if column is None:
            continue
        model = _ALIASES.get(row["model"], row["model"])
        line = lines.setdefault((model, row["dataset"]), {"model": f"{model} (published)", "source": row["dataset"]})
        line[column] = round(100 * float(row["value"]), 1)
    frame = pl.DataFrame(list(lines.values()), infer_schema_length=None)
    return frame.select("model", "source", *[name for name in _COLUMNS.values() if name in frame.columns])
