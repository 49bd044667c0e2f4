"""Tables as the papers print them, to stand beside ours, with what is known to be wrong in them.

The figures in ``published/`` are facts from the papers, kept as printed, digit for digit. They were measured with other
weights, code and files; they orient, and are never ranked with our own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SOURCE = "XBench, arXiv 2510.19599"

DATASETS: Mapping[str, str] = {
    "chestx_det": "ChestX-Det10",
    "chexlocalize": "CheXlocalize",
    "covid19_rural": "COVID-19 Rural",
    "nih_chestxray14": "ChestX-ray14",
    "rsna_pneumonia": "RSNA Pneumonia",
    "siim_pneumothorax": "SIIM-ACR Pneumothorax",
    "vindr_cxr": "VinDr-CXR",
}
"""Name of a dataset's component -> its name in the paper."""

_METRICS = {"pointing": "pointing", "dice_best": "dice@best", "iou_best": "iou@best"}

GENERAL = (
    "The paper leaves open on which grid, with which enlargement and over which scope the threshold was searched.",
    "The threshold was searched on the test set itself, so Dice and IoU are optimistic.",
)
FAULTS: Mapping[str, tuple[str, ...]] = {
    "ChestX-Det10": (
        "CARZero's percentages fit other numbers of regions than those of the other models.",
        "Means printed with the class table disagree with its rows (CLIP but for rounding); those of Table 1, shown "
        "here, agree with them.",
    ),
    "CheXlocalize": (
        "Means printed with the class table disagree with its rows; those of Table 1, shown here, agree with them.",
    ),
    "COVID-19 Rural": (
        "The text compares two models by 0.19 and 0.30 without naming the quantity; 0.30 is in no table.",
    ),
    "RSNA Pneumonia": ("CLIP and BiomedCLIP have exactly the Dice and IoU of a map that marks everything.",),
    "SIIM-ACR Pneumothorax": (
        "CLIP and BiomedCLIP have the Dice and IoU of a map that marks everything, to within 0.01.",
        "BiomedCLIP's pointing fits 594 regions, that of the other models 647.",
    ),
    "VinDr-CXR": (
        "CARZero: the class rows average 39.78, 39.07 is printed.",
        "DeViDe: the class rows average 23.25, 21.47 is printed; mediastinal shift at 0.00 in place of 37.50 gives it.",
        "CARZero: other lesion, pleural effusion and pleural thickening look rotated; by the numbers of regions they "
        "read 33.33, 51.06 and 15.23.",
        "The rows come from two sets of images.",
    ),
}


@dataclass(frozen=True)
class PublishedRow:
    """One model of the paper on one dataset.

    Attributes:
        model: its name.
        values: (our metric, finding or empty for the mean) -> (the figure as printed, its fault or nothing).
    """

    model: str
    values: Mapping[tuple[str, str], tuple[str, str]]


def published_rows(component: str) -> list[PublishedRow]:
    """Return the paper's rows on a dataset, by the name of its component; none where the paper has none."""
    dataset = DATASETS.get(component)
    models: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for record in _records():
        own = record["table"].startswith("table1") or record["group"] != "mean"
        if record["dataset"] == dataset and record["metric"] in _METRICS and record["value"] and own:
            key = _METRICS[record["metric"]], "" if record["group"] == "mean" else record["group"]
            models.setdefault(record["model"], {})[key] = record["value"], _fault(record["note"])
    return [PublishedRow(model, values) for model, values in models.items()]


def faults(component: str) -> tuple[str, ...]:
    """Return what is known to be wrong with the printed figures of a dataset."""
    return (*GENERAL, *FAULTS.get(DATASETS.get(component, ""), ()))


def _fault(note: str) -> str:
    """Notes that describe a column are not faults of its figure."""
    for plain in ("single class", "macro mean over classes", "printed mean", "(see README)", "see README"):
        note = note.replace(plain, "")
    return note.strip("; ")


@cache
def _records() -> tuple[dict[str, str], ...]:
    return tuple(_read())


def _read() -> Iterator[dict[str, str]]:
    folder = files("medground.reporting").joinpath("xbench", "published_tables")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.startswith("table") and file.name.endswith(".csv"):
            yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())
