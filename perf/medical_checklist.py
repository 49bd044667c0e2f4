"""Speed and memory of Medical-Checklist at the size of the paper: dictionary, build, MRCONSO, scoring.

python perf/medical_checklist.py dictionary|build|mrconso|scoring [N]
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

EMPTY = ("p_first", "p_second", "choice_first", "choice_second")
SYLLABLES = [
    "al",
    "bor",
    "cen",
    "dol",
    "eri",
    "fan",
    "gos",
    "hep",
    "ist",
    "kal",
    "lum",
    "mor",
    "nef",
    "ost",
    "pul",
    "ren",
]


def words(n: int, rng: random.Random) -> list[str]:
    """Return n invented words."""
    held: dict[str, None] = {}
    while len(held) < n:
        held["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))] = None
    return list(held)


def terminology(n: int, rng: random.Random):
    """Return n invented names over the fifteen types."""
    from medground.benchmarks.medical_checklist.semantic_types import TYPES
    from medground.benchmarks.medical_checklist.terminologies.base import Concept, Terminology

    base = words(8000, rng)
    names: dict[str, None] = {}
    while len(names) < n:
        names[" ".join(rng.sample(base, rng.choice([1, 2, 2, 3])))] = None
    types = list(TYPES)
    return Terminology(
        {f"X{i:06d}": Concept(f"X{i:06d}", name, (name,), (types[i % 15],)) for i, name in enumerate(names)}
    ), list(names)


def captions(n: int, names: list[str], rng: random.Random) -> list[str]:
    """Return n captions of about 24 tokens with two terms each."""
    filler = [
        "axial",
        "view",
        "of",
        "the",
        "patient",
        "showing",
        "a",
        "large",
        "lesion",
        "near",
        "with",
        "and",
        "in",
        "which",
        "was",
        "found",
        "after",
        "before",
        "days",
    ]
    weights = [1 / (i + 1) for i in range(len(names))]
    drawn = rng.choices(names, weights, k=2 * n)
    out = []
    for i in range(n):
        body = rng.choices(filler, k=16)
        body.insert(5, drawn[2 * i])
        body.insert(12, drawn[2 * i + 1])
        out.append(" ".join(body).capitalize() + ".")
    return out


class Clock:
    """Wall and processor time since it was made: on a shared machine the first says little."""

    def __init__(self) -> None:
        self.wall, self.own = time.perf_counter(), time.process_time()

    def report(self, what: str) -> None:
        """Print seconds and peak memory."""
        wall, own = time.perf_counter() - self.wall, time.process_time() - self.own
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{what}: {wall:.1f} s ({own:.1f} s of this process), peak {peak:.2f} GB")


def dictionary(n: int) -> None:
    """Time the dictionary of 30,000 names over n captions."""
    from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary

    rng = random.Random(0)
    terms, names = terminology(30_000, rng)
    texts = captions(n, names, rng)
    clock = Clock()
    finder = Dictionary(terms)
    clock.report("automaton of 30,000 names")
    clock = Clock()
    found = sum(len(finder.find(t)) for t in texts)
    clock.report(f"{n} captions, {found} mentions, one process")


def build(n: int, workers: int = 2) -> None:
    """Time the whole build of n pairs."""
    from medground.benchmarks.medical_checklist.build import build as made
    from medground.benchmarks.medical_checklist.sources.base import Captioned, select

    rng = random.Random(0)
    terms, names = terminology(30_000, rng)
    texts = captions(n, names, rng)
    held = [Captioned(f"{i}", t, None, f"P{i // 3}", "bench") for i, t in enumerate(texts)]
    clock = Clock()
    chosen, _ = select(held)
    items, _ = made(chosen, terms, workers=workers)
    clock.report(f"build of {n} captions, {len(items)} items, {workers} processes")


def mrconso(n: int) -> None:
    """Time the reader of an MRCONSO of n rows (3 a concept, a third of the concepts of the fifteen types)."""
    from medground.benchmarks.medical_checklist.terminologies import rrf

    with tempfile.TemporaryDirectory() as folder:
        conso, sty = Path(folder) / "MRCONSO.RRF", Path(folder) / "MRSTY.RRF"
        with conso.open("w") as a, sty.open("w") as b:
            for i in range(n // 3):
                cui = f"C{i:07d}"
                tui = ("T047", "T191", "T121")[i % 3]
                b.write(f"{cui}|{tui}|B2|Some Type|AT{i:08d}||\n")
                for k, flag in enumerate(("P|L{0}|PF|S{0}|Y", "S|L{0}|PF|S{0}|Y", "S|L{0}|VO|S{0}|N")):
                    lat = "ENG" if k < 2 else "SPA"
                    a.write(
                        f"{cui}|{lat}|{flag.format(i)}|A{i}{k}||||SNOMEDCT|PT|X{i}|name {k} of concept {i}|0|N|256|\n"
                    )
        clock = Clock()
        terms = rrf.read(Path(folder))
        clock.report(f"MRCONSO of {n // 3 * 3} rows, {len(terms.concepts)} concepts kept")


def scoring(n: int) -> None:
    """Time all cells of n stored rows."""
    from medground.benchmarks.medical_checklist.items import ChecklistItem
    from medground.benchmarks.medical_checklist.semantic_types import TYPES
    from medground.benchmarks.medical_checklist.summarise import Scored

    rng = np.random.default_rng(0)
    types, names = list(TYPES), [f"term {i}" for i in range(6000)]
    drawn = np.minimum(rng.zipf(1.3, size=2 * n) - 1, 5999)
    items = [
        ChecklistItem(
            f"i{i}", f"c{i}", f"m{i}.png", "s", "", f"P{i // 3}", "", types[i % 15], "x", "y", 0, 1,
            names[drawn[2 * i]], names[drawn[2 * i + 1]], ("a",), ("b",), "x", "y", 1.0, int(rng.integers(4, 60)),
            float(rng.random()), "x", "A",
        )
        for i in range(n)
    ]  # fmt: skip
    p = rng.random(n)
    frame = pl.DataFrame(
        {
            "p": p, "credit": (p > 0.5).astype(float), "parsed": [1] * n, "answers": [1] * n, "outcome": ["ok"] * n,
            "identical": [False] * n, "beyond_limit": [False] * n,
        }
    ).with_columns(*(pl.lit(None, dtype=pl.Float64).alias(c) for c in EMPTY))  # fmt: skip
    clock = Clock()
    cells = list(Scored("m", "d", "r", items, frame, {}, None).cells())
    clock.report(f"{len(cells)} cells of {n} rows")


if __name__ == "__main__":
    what = sys.argv[1]
    size = int(sys.argv[2]) if len(sys.argv) > 2 else {"mrconso": 10_000_000, "scoring": 65_000}.get(what, 300_000)
    {"dictionary": dictionary, "build": build, "mrconso": mrconso, "scoring": scoring}[what](size)
