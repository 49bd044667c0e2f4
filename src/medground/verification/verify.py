"""Proves a network equal to its published architecture, on golden cases that need no weight file.

A folder of golden cases holds published parameter names and shapes, inputs by recipe, and what the authors' code
computes on them with stand-in weights. Here the weights are made from the names and put through the normal loader, and
every output is compared with its stored value. Scores, probabilities and maps come from the shipped class where a case
says enough: the published folder is written, the class is built by its name as a run file's entry is, and ``predict``
and ``match`` are asked (:mod:`medground.verification.published`). Nothing in the folder is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medground.errors import DataError, ModelError
from medground.verification.cases import Array, Case, Golden

# Networks that belong to no single model, and the models whose cases may lie beside theirs.
MODELS = (
    "biomedclip",
    "carzero",
    "clip",
    "kad",
    "llava_med",
    "m3ae",
    "mavl",
    "medclip",
    "medklip",
    "pmc_clip",
    "vit_b16_timm",
)


@dataclass(frozen=True)
class OutputResult:
    """How one output compares.

    Attributes:
        output: its name.
        difference: greatest absolute difference; infinite when it is missing or has another shape.
        tolerance: the manifest's.
        must_differ: whether the array shows a frequent mistake and has to be missed.
    """

    output: str
    difference: float
    tolerance: float
    must_differ: bool = False

    @property
    def passed(self) -> bool:
        """Whether the output is as it has to be."""
        return (self.difference <= self.tolerance) != self.must_differ

    @property
    def ratio(self) -> float:
        """Difference in tolerances; at most 1 passes. Outputs that must differ count 0 when they do."""
        if self.must_differ:
            return 0.0 if self.passed else np.inf
        if self.tolerance == 0:
            return 0.0 if self.difference == 0 else np.inf
        return self.difference / self.tolerance


@dataclass(frozen=True)
class CaseResult:
    """How one case compares: its outputs, and the one that comes closest to its tolerance or misses it."""

    case: str
    outputs: tuple[OutputResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every output is as it has to be."""
        return all(output.passed for output in self.outputs)

    @property
    def worst(self) -> OutputResult:
        """The output with the largest difference, in tolerances."""
        return max(self.outputs, key=lambda output: output.ratio)


def verify(model_name: str, cases_dir: Path) -> list[CaseResult]:
    """Run every golden case of a folder on a model's network.

    Args:
        model_name: a model of :data:`MODELS`.
        cases_dir: the folder of that model's cases.

    Returns:
        One result a case, in the manifest's order; the network agrees when all have ``passed``.

    Raises:
        ModelError: the model has no golden cases, or the folder belongs to another one.
        DataError: the folder cannot be read.
    """
    golden = Golden.open(cases_dir)
    owner = str(golden.manifest.get("model", model_name))
    shared = owner == "vit_b16_timm" and model_name in ("carzero", "biomedclip")
    if model_name not in MODELS or (owner != model_name and not shared):
        raise ModelError(
            f"{model_name} cannot be verified with these cases",
            where=cases_dir,
            expected=f"cases of {owner}" if model_name in MODELS else ", ".join(MODELS),
            got=model_name,
        )
    if not golden.manifest.get("cases"):
        raise DataError(
            "golden cases of which there are none prove nothing", where=cases_dir, expected="a case or more"
        )
    return compared(golden, owner)


def compared(golden: Golden, owner: str) -> list[CaseResult]:
    """Return one result a case of an open folder; networks that it holds are not built again."""
    runner = import_module(f"medground.verification.{owner}")
    with torch.no_grad():
        return [_compared(case, runner.outputs(case)) for case in golden.cases()]


def _compared(case: Case, computed: dict[str, Array]) -> CaseResult:
    atol: dict[str, float] = case.spec["tolerance"]["atol"]
    return CaseResult(case.name, tuple(_output(case, name, atol, computed.get(name)) for name in case.spec["outputs"]))


def _output(case: Case, name: str, atol: dict[str, float], got: Any) -> OutputResult:
    meaning = str(case.spec.get("output_meaning", {}).get(name, ""))
    must_differ = "must not be matched" in meaning.lower()
    expected = case.expected(name)
    # A case with one image may leave the image's axis out; nothing else may differ in shape.
    if got is None or tuple(n for n in np.shape(got) if n != 1) != tuple(n for n in expected.shape if n != 1):
        return OutputResult(name, np.inf, atol[name])
    difference = np.abs(np.reshape(got, expected.shape).astype(np.float64) - expected.astype(np.float64))
    # NaN is never within a tolerance.
    largest = float(difference.max(initial=0.0)) if not np.isnan(difference).any() else np.inf
    return OutputResult(name, largest, atol[name], must_differ)
