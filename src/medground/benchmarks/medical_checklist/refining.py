"""Refinement of built items: scorers are fitted on half of the papers, and what is kept is checked on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.medical_checklist import refine
from medground.benchmarks.medical_checklist.audit import base, learned, ngrams, term_frequency
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.errors import ConfigError
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean

WINDOW = 2
"""Words on either side that must be equal for ``window``."""


def masked(item: ChecklistItem) -> str:
    """Return the true caption with the term masked."""
    return f"{item.positive[: item.start]}\x1a{item.positive[item.end :]}".casefold()


def window(item: ChecklistItem) -> str:
    """Return the words beside the term, which are all that a bigram and most of what a trigram can use."""
    left = item.positive[: item.start].casefold().split()[-WINDOW:]
    right = item.positive[item.end :].casefold().split()[:WINDOW]
    return " ".join([*left, "\x1a", *right])


def refine_items(
    items: Sequence[ChecklistItem], method: str, seed: int = 0
) -> tuple[list[ChecklistItem], dict[str, Any]]:
    """Return the items that a method keeps, and what it did.

    Args:
        items: of a build.
        method: ``none``, ``reciprocal`` (masked sentence), ``reciprocal_type`` (within the type; n-grams call it fair,
            a learned scorer need not), ``reciprocal_window``, ``cells`` (mirror cells over term frequency and bigrams),
            ``cells_learned`` (over the learned scorer and bigrams per token, as often as it takes).
        seed: of the choice.
    """
    if method not in METHODS:
        raise ConfigError("no such way to refine", expected=sorted(METHODS), got=method)
    if method == "none":
        return list(items), {"method": "none", "kept": len(items), "of": len(items)}
    if method == "cells_learned":
        kept = _cells_learned(list(items), seed)
    else:
        keep = _cells(items, seed) if method == "cells" else _reciprocal(items, method, seed)
        kept = [i for i, k in zip(items, keep, strict=True) if k]
    return kept, {"method": method, "kept": len(kept), "of": len(items)} | _check(kept, seed)


METHODS = {"none", "reciprocal", "reciprocal_type", "reciprocal_window", "cells", "cells_learned"}
PASSES = 3
A_CELL = 4  # items a cell of the learned balance, on average
CHANCE = 0.5
_CONTEXTS = {"reciprocal": masked, "reciprocal_window": window}


def _reciprocal(items: Sequence[ChecklistItem], method: str, seed: int) -> Any:
    context = _CONTEXTS.get(method, lambda _: "")
    return refine.reciprocal(
        [i.tui for i in items],
        [context(i) for i in items],
        [i.name_positive for i in items],
        [i.name_negative for i in items],
        [i.item_id for i in items],
        seed,
    )


def half(item: ChecklistItem, seed: int) -> int:
    """Return 0 or 1: the half of the papers that an item belongs to."""
    return number(seed, "half", item.cluster) % 2


def _cells(items: Sequence[ChecklistItem], seed: int) -> Any:
    """Balance each half by scorers that were fitted on the true captions of the other."""
    keep = np.zeros(len(items), dtype=np.bool_)
    for part in (0, 1):
        rows = [r for r, i in enumerate(items) if half(i, seed) == part]
        texts = sorted({i.positive for i in items if half(i, seed) != part})
        if not rows or not texts:
            continue
        pairs = [items[r].as_pair for r in rows]
        frequency = term_frequency.TermFrequency(texts).scores(pairs)
        bigram = ngrams.Bigram(texts).scores(pairs)
        gaps = np.stack(
            [
                refine.scaled(np.diff(np.log1p(frequency[:, ::-1]), axis=1)[:, 0]),
                refine.scaled(bigram[:, 0] - bigram[:, 1]),
            ],
            axis=1,
        )
        keep[rows] = refine.mirror_cells(gaps, [p.item_id for p in pairs], seed=seed)
    return keep


def _cells_learned(items: list[ChecklistItem], seed: int) -> list[ChecklistItem]:
    """Balance each half by a learned scorer fitted on the items of the other, again on what is left while it tells."""
    for turn in range(PASSES):
        parts = [[r for r, i in enumerate(items) if half(i, seed + turn) == p] for p in (0, 1)]
        if not all(parts) or (turn and _is_fair(items, seed)):
            break
        keep = np.zeros(len(items), dtype=np.bool_)
        for rows, others in (parts, parts[::-1]):
            pairs = [items[r].as_pair for r in rows]
            weights = learned.fit(learned.features([items[r].as_pair for r in others]), 1.0)
            texts = sorted({items[r].positive for r in others})
            bigram = ngrams.Bigram(texts, per_token=True).scores(pairs)
            gaps = [refine.scaled(learned.gaps(pairs, weights)), refine.scaled(bigram[:, 0] - bigram[:, 1])]
            # Cells finer than the items can fill would keep next to none of them.
            grid = max(2, min(refine.GRID, int(np.sqrt(len(rows) / A_CELL))))
            ids = [p.item_id for p in pairs]
            keep[rows] = refine.mirror_cells(np.stack(gaps, axis=1), ids, grid, seed=seed + turn)
        items = [i for i, k in zip(items, keep, strict=True) if k]
    return items


def _is_fair(items: Sequence[ChecklistItem], seed: int) -> bool:
    """Whether the learned scorer, fitted on one half, is at chance on the other, within the interval."""
    for scored, credit in _credits(items, seed):
        by = clusters([i.cluster for i in scored], [i.item_id for i in scored])
        found = estimate_mean(credit, by)
        if found.low is None or found.high is None or not found.low <= CHANCE <= found.high:
            return False
    return True


def _credits(
    items: Sequence[ChecklistItem], seed: int
) -> Iterator[tuple[Sequence[ChecklistItem], NDArray[np.float64]]]:
    """Yield each half with what the learned scorer, fitted on the other, gets right of it; nothing if one is empty."""
    parts = [[i for i in items if half(i, seed) == p] for p in (0, 1)]
    if all(parts):
        for fitted, scored in (parts, parts[::-1]):
            weights = learned.fit(learned.features([i.as_pair for i in fitted]), 1.0)
            values = learned.gaps([i.as_pair for i in scored], weights)
            yield scored, base.hits(np.stack([values, -values], axis=1))


def _check(kept: Sequence[ChecklistItem], seed: int) -> dict[str, Any]:
    """Return the learned scorer's accuracy on each half, fitted on the other: near one half when nothing is left."""
    found = [round(float(credit.mean()), 4) for _, credit in _credits(kept, seed)]
    return {"learned_on_the_other_half": found or None}
