"""Run all cells, hold the gates against them, and write what was found.

python -m simulations --sets 2000 --workers 2 --out simulations.json

The worst of many cells lies beyond its limit by chance alone: of 40 exact tests at .05 with 2,000 data sets each, the
worst is expected at .061. A cell that misses its limit is therefore run again with five times as many data sets, over
the same layout of patients, and the second figure counts. Both are written and printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from simulations import alarms, coverage
from simulations.gates import judge, missed

AGAIN = 5  # times as many data sets where a cell misses its limit


def run(task: tuple[Any, tuple[Any, ...], int, list[int]]) -> Any:
    """Run one cell with a generator of its own, so that neither order nor workers matter."""
    function, given, sets, seed = task
    bound = [*given, sets, np.random.default_rng(seed)]
    return function(*bound)


def tasks(sets: int, seed: int, part: str) -> list[tuple[Any, tuple[Any, ...], int, list[int]]]:
    """Return every cell with its sets and its seed."""
    sources = {"coverage": coverage.cells, "alarms": alarms.cells}
    return [
        (function, given, sets, [seed, k, i])
        for k, (name, source) in enumerate(sources.items())
        if part in {"all", name}
        for i, (function, given) in enumerate(source())
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 0 where every gate holds."""
    parser = argparse.ArgumentParser(prog="simulations", description=__doc__)
    parser.add_argument("--sets", type=int, default=2000, help="data sets a cell")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", choices=("all", "coverage", "alarms"), default="all")
    parser.add_argument("--every", type=int, default=1, help="of so many cells only one, to try it out")
    parser.add_argument("--out", type=Path, help="write every cell as JSON")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    work = tasks(chosen.sets, chosen.seed, chosen.part)[:: chosen.every]
    with ProcessPoolExecutor(chosen.workers) as pool:
        first = list(pool.map(run, work, chunksize=1))
        bad = [i for i, cell in enumerate(first) if missed(cell)]
        repeats = [(function, given, AGAIN * n, seed) for function, given, n, seed in (work[i] for i in bad)]
        again = dict(zip(bad, pool.map(run, repeats, chunksize=1), strict=True))
    found = [again.get(i, cell) for i, cell in enumerate(first)]
    covered = [cell for cell in found if isinstance(cell, coverage.Coverage)]
    alarmed = [cell for cell in found if isinstance(cell, alarms.Alarms)]
    gates = judge(covered, alarmed)
    print(f"{len(found)} cells of {chosen.sets} data sets, {time.monotonic() - started:.0f} s")
    for i, cell in again.items():
        print(f"again, {AGAIN * chosen.sets} data sets: {asdict(first[i])} became {asdict(cell)}")
    for gate in gates:
        print(f"{'holds' if gate.held else 'FAILS'}  {gate.name}: {gate.limit}; found {gate.found}")
    if chosen.out:
        record: dict[str, Any] = {"sets": chosen.sets, "seed": chosen.seed, "gates": [asdict(g) for g in gates]}
        record["cells"] = [asdict(cell) for cell in first]
        record["again"] = [asdict(cell) for cell in again.values()]
        chosen.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(gate.held for gate in gates) else 1


if __name__ == "__main__":
    sys.exit(main())
