"""Which cases a report shows: for every model and finding the worst, the best, some at random, and the failed.

Pure: the same rows give the same choice. A report holds a bounded number of pictures however long the run is, so the
lists shrink until they fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Key = tuple[str, str]
"""(case id, finding)."""
Group = Literal["worst", "best", "random", "failed"]
GROUPS: tuple[Group, ...] = ("worst", "best", "random", "failed")
Outcome = Literal["hit", "miss", "flat", "undefined", "failed"]

SIZES: tuple[tuple[int, int], ...] = (
    (24, 8),
    (16, 6),
    (12, 4),
    (12, 3),
    (8, 2),
    (8, 1),
    (8, 0),
    (4, 0),
    (2, 0),
    (1, 0),
)
"""Cases a list, over all findings and for one finding; the first pair that fits is taken."""


@dataclass(frozen=True)
class ScoredPair:
    """One pair of a model, reduced to what the choice depends on.

    Attributes:
        key: which.
        value: what worst and best go by (Dice at the searched threshold); None where undefined.
        outcome: what became of it.
    """

    key: Key
    value: float | None
    outcome: Outcome


Lists = Mapping[str, Mapping[Group, Sequence[Key]]]
"""Finding (empty: all) -> group -> pairs in order."""
Chosen = Mapping[tuple[str, str], Lists]
"""(model, dataset) -> its lists."""


def lists_of(pairs: Sequence[ScoredPair], overall: int, each: int, seed: int) -> dict[str, dict[Group, list[Key]]]:
    """Return the lists of one model on one dataset: over all findings and for each.

    Args:
        pairs: every pair, in the order of the run.
        overall: cases a list over all findings.
        each: cases a list of one finding; 0: no such lists.
        seed: of the random ones.
    """
    lists = {"": _lists(pairs, overall, seed)}
    if each:
        for finding in dict.fromkeys(pair.key[1] for pair in pairs):
            lists[finding] = _lists([pair for pair in pairs if pair.key[1] == finding], each, seed)
    return lists


def _lists(pairs: Sequence[ScoredPair], n: int, seed: int) -> dict[Group, list[Key]]:
    valued = [pair for pair in pairs if pair.value is not None]
    upwards = sorted(valued, key=lambda pair: (pair.value, pair.outcome == "hit"))
    return {
        "worst": [pair.key for pair in upwards[:n]],
        "best": [pair.key for pair in upwards[::-1][:n]],
        "random": sorted((pair.key for pair in pairs), key=lambda key: _shuffled(key, seed))[:n],
        "failed": [pair.key for pair in pairs if pair.outcome in {"failed", "undefined"}][:n],
    }


def _shuffled(key: Key, seed: int) -> bytes:
    """Order by a hash: the same pairs for every model of the run, whatever else it holds."""
    return hashlib.sha256(repr((seed, key)).encode()).digest()


def choose(tasks: Mapping[tuple[str, str], Sequence[ScoredPair]], most: int, seed: int) -> Chosen:
    """Return the lists of every (model, dataset), as long as lets the report hold at most ``most`` pictures."""
    for overall, each in SIZES:
        chosen = {task: lists_of(pairs, overall, each, seed) for task, pairs in tasks.items()}
        if len(pictures(chosen)) <= most:
            break
    return chosen


def pictures(chosen: Chosen) -> set[tuple[str, str]]:
    """Return (dataset, case id) of every case in any list."""
    return {
        (dataset, case_id)
        for (_, dataset), lists in chosen.items()
        for groups in lists.values()
        for keys in groups.values()
        for case_id, _ in keys
    }
