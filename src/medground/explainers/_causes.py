"""Which things an answer hangs on: smallest sets whose removal changes it (Chockler and Halpern 2004).

A thing in a set of m things that together, and no fewer of them, change the answer is responsible by 1 / m: one that
changes it alone by 1. The search asks for margins: how far an answer is from being another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Flags = NDArray[np.bool_]
Margins = Callable[[Flags], Table]
"""Sets of things to take away, ``(K, n)``, to ``(K,)`` margins of the answer: below 0 it has changed."""

_STEP = 1e-3
"""A step that costs the margin less than this leads nowhere."""


class SpentError(Exception):
    """The budget of calls is used up."""


def responsibilities(
    margins: Margins, n: int, sets: int = 3, alike: Sequence[int] | None = None
) -> tuple[Table, Flags | None]:
    """Return how responsible each of n things is for an answer, and a set of things without which it is another.

    Things that change the answer alone come first. Among the rest a smallest set is looked for, first among things that
    are alike, then greedily among all, and then everything that can stand in for one of its members. Every set is
    checked: it changes the answer, and no set with one member less does.

    Args:
        margins: see :data:`Margins`; may raise :class:`SpentError`, and what is known by then is returned.
        n: number of things.
        sets: rounds of the search for sets of two and more.
        alike: a number a thing, the same for things that look the same; None: all differ.

    Returns:
        ``(n,)`` in [0, 1], 0 for what no set holds; the flags of one set, or None where nothing changes the answer.

    Example:
        >>> needs_both = lambda removed: np.where(removed[:, 0] & removed[:, 1] | removed[:, 2], -1.0, 1.0)
        >>> responsibilities(needs_both, 4)[0].tolist()
        [0.5, 0.5, 1.0, 0.0]
    """
    shares, first = np.zeros(n), None
    if not n:
        return shares, None
    try:
        alone = margins(np.eye(n, dtype=bool))
        shares[alone < 0] = 1.0
        if alone.min() < 0:
            first = np.eye(n, dtype=bool)[int(alone.argmin())]
        for _ in range(sets):
            rest = shares == 0
            together = smallest(margins, rest, alike) if rest.sum() > 1 else None
            if together is None:
                break
            first = together if first is None else first
            shares[together] = 1 / together.sum()
            shares[standing_in(margins, together, rest)] = 1 / together.sum()
    except SpentError:
        pass
    return shares, first


def smallest(margins: Margins, among: Flags, alike: Sequence[int] | None = None) -> Flags | None:
    """Return a set of things, as flags, that changes the answer while none with one member less does.

    None where no kind of things alike changes the answer, nor what a greedy search takes away.

    Args:
        margins: see :data:`Margins`.
        among: what may be taken away ``(n,)``.
        alike: see :func:`responsibilities`.
    """
    removed = _one_kind(margins, among, alike)
    if removed is None:
        removed = _greedy(margins, among)
    while removed is not None and removed.sum() > 1:
        trials = removed & ~_one_each(np.flatnonzero(removed), among.size)
        values = margins(trials)
        if not values.min() < 0:
            break
        removed = trials[int(values.argmin())]
    return removed


def _one_kind(margins: Margins, among: Flags, alike: Sequence[int] | None) -> Flags | None:
    """Return all things of the kind whose removal changes the answer most clearly; None where no kind's does."""
    kinds = np.arange(among.size) if alike is None else np.asarray(alike)
    groups = [among & (kinds == kind) for kind in np.unique(kinds[among])]
    groups = [group for group in groups if group.sum() > 1]
    if not groups:
        return None
    values = margins(np.stack(groups))
    return groups[int(values.argmin())] if values.min() < 0 else None


def _greedy(margins: Margins, among: Flags) -> Flags | None:
    """Take away, step by step, what costs the answer most, until it changes.

    Where taking everything away leaves the answer as it is, it goes on only as long as every step costs something.
    """
    now, all_gone = margins(np.stack([np.zeros_like(among), among]))
    removed = np.zeros_like(among)
    while not now < 0:
        trials = removed | _one_each(np.flatnonzero(among & ~removed), among.size)
        if not len(trials):
            return None
        values = margins(trials)
        if all_gone >= 0 and values.min() >= now - _STEP:
            return None
        removed, now = trials[int(values.argmin())], values.min()
    return removed


def standing_in(margins: Margins, together: Flags, among: Flags) -> Flags:
    """Return the members of a set and everything that can take the place of one of them, as flags."""
    members, others = np.flatnonzero(together), np.flatnonzero(among & ~together)
    if not others.size:
        return together
    trials = np.array(
        [together & ~one | other for one in _one_each(members, among.size) for other in _one_each(others, among.size)]
    )
    changed = (margins(trials) < 0).reshape(members.size, others.size).any(0)
    either = together.copy()
    either[others[changed]] = True
    return either


def _one_each(positions: NDArray[np.int64], n: int) -> Flags:
    flags = np.zeros((positions.size, n), bool)
    flags[np.arange(positions.size), positions] = True
    return flags
