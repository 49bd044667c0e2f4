"""What the reference model is taught to answer about, and in which words."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

FINDINGS: Final = (
    "Atelectasis",
    "Cardiomegaly",
    "Effusion",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pneumonia",
    "Pneumothorax",
)
ANATOMIES: Final = (
    "right upper lung",
    "right mid lung",
    "right lower lung",
    "left upper lung",
    "left mid lung",
    "left lower lung",
    "heart",
    "aorta",
)
CONCEPTS: Final = (*FINDINGS, *ANATOMIES)

SIDED: Final[NDArray[np.bool_]] = np.array([name.split()[0] in {"left", "right"} for name in CONCEPTS])
"""Concepts whose name says a side."""

_WORDINGS: Final = {
    "Atelectasis": ("atelectasis", "lung collapse", "atelectatic changes"),
    "Cardiomegaly": ("cardiomegaly", "enlarged heart", "enlarged cardiac silhouette"),
    "Effusion": ("effusion", "pleural effusion", "pleural fluid"),
    "Infiltration": ("infiltration", "infiltrate", "lung infiltrates"),
    "Mass": ("mass", "lung mass", "pulmonary mass"),
    "Nodule": ("nodule", "lung nodule", "pulmonary nodule"),
    "Pneumonia": ("pneumonia", "pneumonic consolidation"),
    "Pneumothorax": ("pneumothorax", "air in the pleural space"),
    "heart": ("heart", "cardiac silhouette"),
    "aorta": ("aorta", "thoracic aorta"),
}
_TEMPLATES: Final = ("{}", "{}", "there is {}", "evidence of {}", "the picture shows {}", "findings of {}")


def wording(rng: np.random.Generator) -> list[str]:
    """Return one wording a concept. Sides and zones are never paraphrased into each other."""
    chosen = []
    for concept in CONCEPTS:
        names = _WORDINGS.get(concept, (concept,))
        name = names[int(rng.integers(len(names)))]
        chosen.append(_TEMPLATES[int(rng.integers(len(_TEMPLATES)))].format(name))
    return chosen
