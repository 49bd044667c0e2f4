"""How likely an answer stays where every object is there with one chance, for one reading of the question; exactly.

A relation holds beside some object that fits its anchor, so what matters is the outermost one that is there: its row or
column fixes the region. "The outermost is here" is "none further out" without "none here or further out": events that
certain objects are absent, under which all others are free. So the chance is a signed sum over such events, and the
number of targets inside is binomial in each. Objects that fit nothing are null players.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.worlds.gridvqa.language import Kind, Question, Relation
from medground.worlds.gridvqa.world import Answer, Thing

Table = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


class Outcomes:
    """Chances that an answer is given, by the number of free objects: ``table[k1, k2]`` is ``(T, deltas)``.

    ``delta`` is what is sure, the count of the first side (minus that of the second in comparisons); k1 further objects
    may raise it and k2 lower it, each with chance t.

    Args:
        form: of the explained question.
        answer: whose chance.
        n: objects of the scene.
        nodes: ``(T,)`` chances t.
    """

    def __init__(self, form: str, answer: Answer, n: int, nodes: Table) -> None:
        self.offset = 2 * n + 2
        deltas = np.arange(-self.offset, self.offset + 1)
        won = deltas == answer if form == "count" else (deltas > 0) == (answer == "yes")
        self._nodes = nodes[:, None]
        self._table: dict[tuple[int, int], Table] = {(0, 0): np.tile(won.astype(float), (len(nodes), 1))}

    def get(self, k1: int, k2: int) -> Table:
        """Return ``(T, deltas)``."""
        if (k1, k2) not in self._table:
            step = 1 if k1 else -1
            fewer = self.get(k1 - 1, k2) if k1 else self.get(k1, k2 - 1)
            self._table[k1, k2] = self._nodes * np.roll(fewer, -step, 1) + (1 - self._nodes) * fewer
        return self._table[k1, k2]

    def look_up(self, k1: Counts, k2: Counts, delta: Counts) -> Table:
        """Return ``(T, N)`` for N triples; 0 where a number is negative, which stands for no such object."""
        chances = np.zeros((len(self._nodes), len(delta)))
        keys = k1 * 1000 + k2
        for key in np.unique(keys[(k1 >= 0) & (k2 >= 0)]):
            rows = np.flatnonzero((keys == key) & (k1 >= 0) & (k2 >= 0))
            chances[:, rows] = self.get(int(key) // 1000, int(key) % 1000)[:, delta[rows] + self.offset]
        return chances


class Odds(NamedTuple):
    """Chance of an answer at each node, and its differences by the objects.

    Attributes:
        whole: ``(T,)``.
        one: ``(T, n)`` with minus without each object.
        two: ``(T, n, n)`` second differences; zeros where they were not asked for.
    """

    whole: Table
    one: Table
    two: Table


class _Events(NamedTuple):
    """Events that objects are absent, one a row.

    Attributes:
        sign: ``(R,)`` with which an event counts.
        absent: ``(R, n)`` the objects that are not there; all others are free.
        sides: for both sides ``(R, n)`` whether an object counts where it is there.
    """

    sign: Table
    absent: Flags
    sides: tuple[Flags, Flags]


def odds(question: Question, things: Sequence[Thing], outcomes: Outcomes, nodes: Table, *, pairs: bool) -> Odds:
    """Return the chance that a reading gives the answer of ``outcomes``, and its differences by every object.

    Args:
        question: a reading, as :func:`~medground.worlds.gridvqa.coalitions.meaning` gives it, of the explained form.
        things: the objects.
        outcomes: of the explained answer.
        nodes: ``(T,)`` chances t.
        pairs: whether second differences are wanted.
    """
    events, n = _events(question, things), len(things)
    effect = (events.sides[0].astype(np.int64) - events.sides[1]) * ~events.absent
    k1, k2 = ((effect == sign).sum(1) for sign in (1, -1))
    weight = events.sign * (1 - nodes[:, None]) ** events.absent.sum(1)
    # An object that an event wants absent enters through its weight, any other through what it adds to the count.
    slope = -1 / (1 - nodes)
    base = weight * outcomes.look_up(k1, k2, np.zeros_like(k1))
    gone, plus, minus = (flags.astype(float) for flags in (events.absent, effect == 1, effect == -1))
    up, down = (weight * _step(outcomes, k1, k2, by) for by in (1, -1))
    one = slope[:, None] * (base @ gone) + up @ plus + down @ minus
    two = np.zeros((len(nodes), n, n))
    if pairs:
        twice = slope[:, None, None] ** 2 * _crossed(base, gone, gone)
        mixed = slope[:, None, None] * (_crossed(up, gone, plus) + _crossed(down, gone, minus))
        two = twice + mixed + mixed.transpose(0, 2, 1)
        for a, left in ((1, plus), (-1, minus)):
            for b, right in ((1, plus), (-1, minus)):
                two += _crossed(weight * _bend(outcomes, k1, k2, a, b), left, right)
        two[:, np.arange(n), np.arange(n)] = 0
    return Odds(base.sum(1), one, two)


def _crossed(weight: Table, left: Table, right: Table) -> Table:
    """Return ``(T, n, n)`` weighted counts of rows that hold both objects."""
    return np.stack([(left * row[:, None]).T @ right for row in weight])


def _step(outcomes: Outcomes, k1: Counts, k2: Counts, by: int) -> Table:
    """Return what one of the free objects that raise (or lower) the count is worth."""
    fewer, zero = (k1 - 1, k2) if by > 0 else (k1, k2 - 1), np.zeros_like(k1)
    return outcomes.look_up(*fewer, zero + by) - outcomes.look_up(*fewer, zero)


def _bend(outcomes: Outcomes, k1: Counts, k2: Counts, a: int, b: int) -> Table:
    """Return the second difference by two free objects."""
    fewer = (k1 - (a > 0) - (b > 0), k2 - (a < 0) - (b < 0))
    look, zero = outcomes.look_up, np.zeros_like(k1)
    return look(*fewer, zero + a + b) - look(*fewer, zero + a) - look(*fewer, zero + b) + look(*fewer, zero)


def _events(question: Question, things: Sequence[Thing]) -> _Events:
    n = len(things)
    sign, absent = np.ones(1), np.zeros((1, n), bool)
    sides = [np.array([[_fits(clause.target, thing) for thing in things]], bool) for clause in question.clauses]
    for i, clause in enumerate(question.clauses):
        for relation in clause.relations:
            signs, gone, beside = _outermost(relation, things)
            k = len(signs)
            sign = np.repeat(sign, k) * np.tile(signs, len(sign))
            absent = np.repeat(absent, k, 0) | np.tile(gone, (len(absent), 1))
            rows = len(sides[0])
            sides = [np.repeat(side, k, 0) for side in sides]
            sides[i] = sides[i] & np.tile(beside, (rows, 1))
    if len(sides) == 1:
        sides.append(np.zeros_like(sides[0]))
    return _merged(_Events(sign, absent, (sides[0], sides[1])))


def _merged(events: _Events) -> _Events:
    """Add up the signs of equal events, and leave out those that cancel."""
    rows = np.concatenate([events.absent, *(side & ~events.absent for side in events.sides)], 1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    sign = np.bincount(which.ravel(), events.sign, len(distinct))
    kept, n = sign != 0, events.absent.shape[1]
    absent, first, second = np.split(distinct[kept], [n, 2 * n], 1)
    return _Events(sign[kept], absent, (first, second))


def _outermost(relation: Relation, things: Sequence[Thing]) -> tuple[Table, Flags, Flags]:
    """Return the events of one relation: signs, absent objects, and the objects beside its outermost anchor."""
    along, way = _WAYS[relation.direction]
    places = np.array([thing.cell[along] * -way for thing in things])
    anchors = np.array([_fits(relation.anchor, thing) for thing in things])
    signs, gone, beside = [1.0], [anchors], [np.zeros(len(things), bool)]
    for level in sorted(set(places[anchors].tolist())):
        signs += [1.0, -1.0]
        gone += [anchors & (places > level), anchors & (places >= level)]
        beside += [places < level] * 2
    return np.array(signs), np.array(gone), np.array(beside)


_WAYS = {"left of": (0, -1), "right of": (0, 1), "above": (1, -1), "below": (1, 1)}
"""A direction's axis, and whether it goes up or down the coordinate."""


def _fits(kind: Kind, thing: Thing) -> bool:
    return kind.matches(thing.colour, thing.shape)
