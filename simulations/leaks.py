"""What the number of look-alikes says about the answers of GridVQA-X, in both editions.

::

    python simulations/leaks.py [scenes a bucket]

For every existence and comparison bucket with relations: the share of right answers of whoever knows the number of
objects that fit each target, and nothing else; learnt on one half of the scenes and counted on the other.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from medground.worlds.gridvqa.generate import Edition, fillable, scene
from medground.worlds.gridvqa.world import Bucket, Scene, buckets


def look_alikes(made: Scene) -> tuple[int, ...]:
    """Return the number of objects that fit each target."""
    return tuple(sum(clause.target.matches(t.colour, t.shape) for t in made.things) for clause in made.question.clauses)


def leak(bucket: Bucket, n: int, edition: Edition, seed: int) -> float:
    """Return the share of right answers from counts alone."""
    seen: dict[tuple[int, ...], Counter[str]] = defaultdict(Counter)
    right = 0
    for index in range(n):
        made = scene("pure", bucket, index, seed=seed, edition=edition)
        known, reply = seen[look_alikes(made)], str(made.answer)
        if index < n // 2:
            known[reply] += 1
        else:
            right += bool(known) and known.most_common(1)[0][0] == reply
    return right / (n - n // 2)


def main(n: int = 4000, seed: int = 20_261) -> None:
    """Print one line a bucket."""
    print("bucket | first | second | interval at a coin's rate")
    for bucket in fillable(buckets(), 5)[0]:
        if bucket.relational and bucket.form != "count":
            first, second = leak(bucket, n, "first", seed), leak(bucket, n, "second", seed)
            half = 1.96 * (0.25 / (n - n // 2)) ** 0.5
            print(f"{bucket.key} | {first:.3f} | {second:.3f} | .500 +- {half:.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
