"""Random streams: one seed, and for every cause in a picture a stream of its own.

A cause draws from its stream only, so that leaving a finding out, or moving it, changes no other draw: a case with
and without a finding is otherwise the same picture.
"""

from __future__ import annotations

from typing import Final

import numpy as np

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
"""The eight findings that ChestX-ray14 localises, in its order."""

TASKS: Final = (
    "inclusion",
    "inspiration",
    "rotation",
    "projection",
    "cardiomegaly",
    "mediastinal_widening",
    "carina_angle",
    "trachea_deviation",
    "aortic_knob_enlargement",
    "ascending_aorta_enlargement",
    "descending_aorta_enlargement",
    "descending_aorta_tortuous",
)
"""The twelve diagnostic tasks of CheXStruct, by their published ids."""

DEVICES: Final = ("lead", "tube", "line", "pacemaker")
"""Leads with or without an electrode, a tracheal tube, a central venous line, a pacemaker with its wire."""

CAUSES: Final = (
    *("truth", "view", "anatomy", "vessels", "texture", "exposure", "noise", "marker", "devices", "layout"),
    *FINDINGS,
    *TASKS,
    *DEVICES,
)

PARTS: Final = ("shape", "side", "place")
"""What is drawn apart for one cause: two facts must never come from one number."""


def stream(seed: int, case: int, cause: str, part: str = "shape", attempt: int = 0) -> np.random.Generator:
    """Return the generator of one cause in one case.

    Args:
        seed: of the dataset, 0 or more.
        case: number of the case, 0 or more.
        cause: a member of ``CAUSES``.
        part: a member of ``PARTS``.
        attempt: 0 for the case as it is; another number places the same finding elsewhere.
    """
    key = (case, CAUSES.index(cause), PARTS.index(part), attempt)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


def uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return one Python float: a numpy scalar would turn whole float32 pictures into float64."""
    return float(low + (high - low) * rng.random())


def normal(rng: np.random.Generator, sigma: float) -> float:
    """Return one Python float from a centred normal distribution."""
    return float(sigma * rng.standard_normal())


def chance(rng: np.random.Generator, p: float) -> bool:
    """Return True with probability ``p``; always takes one number from the stream."""
    return bool(rng.random() < p)
