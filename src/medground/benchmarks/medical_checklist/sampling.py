"""Which replacement a term gets: uniform over the type (the paper), by frequency, or the nearest of several.

The draw of an item depends on the seed, the item and its span. Candidates race: each has a time of its own, drawn from
the item's key and its own name, and the first that no rule refuses wins. So a candidate that enters or leaves the pool
changes only the draws that it wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.medical_checklist.hashing import number, uniforms
from medground.benchmarks.medical_checklist.substitution.context import Context

Sampling = Literal["uniform", "frequency", "nearest"]
NEAREST_OF = 8
_FIRST = 24
"""Candidates that are put in order at once; the rest only where all of these are refused."""


class Form(NamedTuple):
    """A name as its terminology spells it, with all its concepts and their types."""

    text: str
    concept_ids: tuple[str, ...]
    tuis: tuple[str, ...]


@dataclass(frozen=True)
class TypePool:
    """The forms of one type that were seen in the corpus, sorted by spelling.

    Attributes:
        forms: distinct forms.
        counts: (n,) how often each was seen.
        seen: contexts in which each was seen.
    """

    forms: tuple[Form, ...]
    counts: NDArray[np.float64]
    seen: tuple[frozenset[Context], ...]

    @cached_property
    def marks(self) -> NDArray[np.uint64]:
        """(n,) the number that stands for each form in a race."""
        return np.array([number(f.text) for f in self.forms], dtype=np.uint64)

    @cached_property
    def _rows(self) -> dict[Context, NDArray[np.intp]]:
        held: dict[Context, list[int]] = {}
        for row, contexts in enumerate(self.seen):
            for context in contexts:
                held.setdefault(context, []).append(row)
        return {context: np.array(rows) for context, rows in held.items()}

    def rows(self, context: Context | None) -> NDArray[np.intp]:
        """Return the forms that were seen in a context, or all."""
        if context is None:
            return np.arange(len(self.forms))
        return self._rows.get(context, np.array([], dtype=np.intp))


Pool = dict[str, TypePool]


class Seen(NamedTuple):
    """One mention that feeds the pool: its form and how it stood."""

    form: Form
    tuis: tuple[str, ...]
    context: Context


def pool(mentions: Iterable[Seen]) -> Pool:
    """Return the pool of each type; the order of the mentions does not matter."""
    counts: dict[str, Counter[Form]] = {}
    contexts: dict[tuple[str, Form], set[Context]] = {}
    for form, tuis, context in mentions:
        for tui in tuis:
            counts.setdefault(tui, Counter())[form] += 1
            contexts.setdefault((tui, form), set()).add(context)
    pools = {}
    for tui in sorted(counts):
        forms = tuple(sorted(counts[tui]))
        weights = np.array([counts[tui][f] for f in forms], dtype=np.float64)
        pools[tui] = TypePool(forms, weights, tuple(frozenset(contexts[tui, f]) for f in forms))
    return pools


def race(of: TypePool, key: int, sampling: Sampling, context: Context | None = None) -> Iterator[int]:
    """Yield rows of a pool in the order of a weighted draw without replacement.

    Args:
        of: the pool of the item's type.
        key: the item's number.
        sampling: ``uniform`` gives every form the same chance, the others one by its count.
        context: where given, only forms that were seen so take part.
    """
    rows = of.rows(context)
    if not len(rows):
        return
    times = -np.log(uniforms(key, of.marks[rows]))
    if sampling != "uniform":
        times = times / of.counts[rows]
    first = min(_FIRST, len(rows))
    ahead = np.argpartition(times, first - 1)[:first] if first < len(rows) else np.arange(len(rows))
    for i in ahead[np.argsort(times[ahead], kind="stable")]:
        yield int(rows[i])
    if first < len(rows):
        for i in np.argsort(times, kind="stable")[first:]:
            yield int(rows[i])


def draw(
    of: TypePool,
    key: int,
    sampling: Sampling,
    refuse: Callable[[Form], str | None],
    *,
    context: Context | None = None,
    distance: Callable[[Form], float] | None = None,
    nearest_of: int = NEAREST_OF,
) -> tuple[Form | None, Counter[str]]:
    """Return the form that wins, and how many candidates each reason refused.

    Args:
        of: the pool of the item's type.
        key: the item's number.
        sampling: how candidates are drawn.
        refuse: the reason against a form, or None.
        context: the mention's context, where forms must have been seen in the same.
        distance: for ``nearest``: how far the changed caption lies from the true one for a language model.
        nearest_of: how many candidates the nearest is chosen from.
    """
    refused: Counter[str] = Counter()
    near: list[tuple[float, Form]] = []
    for row in race(of, key, sampling, context):
        form = of.forms[row]
        reason = refuse(form)
        if reason:
            refused[reason] += 1
            continue
        if sampling != "nearest" or distance is None:
            return form, refused
        near.append((distance(form), form))
        if len(near) == nearest_of:
            break
    if near:
        return min(near)[1], refused
    if not refused:
        refused["shape"] += 1
    return None, refused
