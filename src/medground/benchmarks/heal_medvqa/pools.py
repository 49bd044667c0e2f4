"""One model's answers as arrays, and the pools that perturbations are scored over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.heal_medvqa.asking import BASE
from medground.metrics.bootstrap import Clusters, clusters

Floats = NDArray[np.float64]

_NOT_COUNTED = ("failed", "not made")


@dataclass(frozen=True)
class ClosedAnswers:
    """Rows of one model on one dataset and part, closed base questions apart from variants.

    Attributes:
        base: rows of closed base questions that were answered or refused, in question order.
        variants: question id -> variant -> row.
        failed: closed base questions that nobody answered.
    """

    base: tuple[Mapping[str, Any], ...]
    variants: Mapping[str, Mapping[str, Mapping[str, Any]]]
    failed: int

    @classmethod
    def of(cls, rows: pl.DataFrame, part: str) -> ClosedAnswers:
        """Return the closed answers of a part of the build."""
        records = rows.filter((pl.col("part") == part) & pl.col("kind").str.starts_with("closed")).to_dicts()
        base = [row for row in records if row["variant"] == BASE]
        variants: dict[str, dict[str, Mapping[str, Any]]] = {}
        for row in records:
            variants.setdefault(row["question_id"], {})[row["variant"]] = row
        asked = tuple(row for row in base if row["answer"] not in _NOT_COUNTED)
        return cls(asked, variants, len(base) - len(asked))

    @cached_property
    def by(self) -> Clusters:
        """The clusters of the base questions."""
        return clusters([row["cluster"] for row in self.base])

    @cached_property
    def gold(self) -> list[str]:
        """The right answers of the base questions."""
        return [row["wanted"] for row in self.base]

    @cached_property
    def replies(self) -> list[str]:
        """What the model answered to them."""
        return [row["answer"] for row in self.base]

    def true_positives(self) -> list[str]:
        """Return the questions that hold and were answered yes: the model's own pool."""
        return [row["question_id"] for row in self.base if row["wanted"] == "yes" and row["answer"] == "yes"]

    def all_yes(self) -> list[str]:
        """Return every question that holds."""
        return [row["question_id"] for row in self.base if row["wanted"] == "yes"]

    def to_variant(self, pool: Sequence[str], variant: str) -> list[Mapping[str, Any] | None]:
        """Return the row of a variant for each question of a pool; None where it was not made or nobody answered."""
        rows: list[Mapping[str, Any] | None] = []
        for question in pool:
            row = self.variants.get(question, {}).get(variant)
            rows.append(None if row is None or row["answer"] in _NOT_COUNTED else row)
        return rows

    def hits(self, pool: Sequence[str], variant: str) -> tuple[Floats, Clusters]:
        """Return 1 where the variant got the answer that it should, 0 where not, NaN where there is none.

        A non-answer is no flip, and keeps no "yes" either.
        """
        rows = self.to_variant(pool, variant)
        values = np.array([np.nan if row is None else float(row["answer"] == row["wanted"]) for row in rows])
        return values, clusters([self.variants[question][BASE]["cluster"] for question in pool])

    def only(self, pool: Sequence[str], variant: str, values: Floats, group: str) -> Floats:
        """Return values with those left out (NaN) whose paste does not fall in a group; see :func:`residue_group`."""
        rows = self.to_variant(pool, variant)
        inside = [row is not None and residue_group(row) == group for row in rows]
        return np.where(np.array(inside, dtype=bool), values, np.nan)


CLEAN = 0.05
"""Share of a lesion that a paste may leave before its item is counted as one with residue."""
_WHOLE = 0.9
"""Share of the region above which the lesion is the organ itself: an enlarged heart keeps its size under a paste."""


def residue_group(row: Mapping[str, Any]) -> str:
    """Return what a paste left of the lesion: ``covered``, ``with residue``, ``whole organ`` or ``unknown``."""
    if row["residue_hard"] is None:
        return "unknown"
    if (row["cover"] or 0.0) > _WHOLE:
        return "whole organ"
    return "covered" if row["residue_hard"] <= CLEAN else "with residue"


def shared_pool(answers: Sequence[ClosedAnswers]) -> list[str]:
    """Return the questions that hold and that every model answered yes, in the first one's order."""
    pools = [set(one.true_positives()) for one in answers]
    return [question for question in answers[0].true_positives() if all(question in pool for pool in pools)]
