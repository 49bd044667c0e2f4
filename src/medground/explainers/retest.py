"""Does an explainer give the same map again? One scene in twenty is explained twice, with another seed.

A difference between two models that is smaller than what the seed alone does says nothing about the models: below a
stated correlation no verdict is given, see :mod:`medground.metrics.decide`.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from medground.explainers.base import Attribution, Pool

EVERY = 20
"""Of so many scenes of a pool one is explained twice."""

IMAGE, TEXT = "image_retest", "text_retest"
"""Extras of an attribution: correlation of its map with that of another seed."""


def explained(explainer: Any, pool: Pool, index: int) -> Attribution:
    """Explain one answer; where its turn comes, twice, and keep how alike the two maps are.

    Args:
        explainer: a local explainer. Its ``seed`` is changed by one for the second time, where it has one.
        pool: the scenes.
        index: of the scene.
    """
    first: Attribution = explainer.explain(pool, index)
    if index % EVERY:
        return first
    second: Attribution = _reseeded(explainer).explain(pool, index)
    alike = {IMAGE: agreement(first.image, second.image), TEXT: agreement(first.text, second.text)}
    return replace(first, extras={**first.extras, **{name: r for name, r in alike.items() if r is not None}})


def agreement(first: ArrayLike | None, second: ArrayLike | None) -> float | None:
    """Return the correlation of two maps; None where one is absent, undefined or of another shape.

    Two flat maps are the same map again; a flat one beside another is none.

    Example:
        >>> agreement([0.0, 1.0, 2.0], [0.0, 2.0, 4.0])
        1.0
        >>> agreement([1.0, 1.0], [1.0, 1.0]), agreement([1.0, 1.0], [0.0, 1.0])
        (1.0, 0.0)
    """
    if first is None or second is None:
        return None
    a, b = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    flat = [bool(np.ptp(values) == 0) for values in (a, b)]
    if any(flat):
        return float(all(flat))
    da, db = a - a.mean(), b - b.mean()
    return float(np.clip(da @ db / np.sqrt((da @ da) * (db @ db)), -1, 1))


def _reseeded(explainer: Any) -> Any:
    if not isinstance(getattr(explainer, "seed", None), int):
        return explainer
    other = copy.copy(explainer)
    object.__setattr__(other, "seed", explainer.seed + 1)
    return other
