"""Memory, time and files of a run by its number of cases: few pictures under many ids, 14 findings, two models.

::

    python -m perf.scale 25000 50000 100000

Each size runs in a process of its own: the run, the same command again, the report. Resident memory is the most that
the process ever had, imports included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

FINDINGS = [f"finding {i:02d}" for i in range(14)]
PICTURES = 4
EVERY = 50
"""One case in so many has a region of one finding."""


def make_manifest(folder: Path, cases: int) -> Path:
    """Write a manifest of so many ids over a few small pictures."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for i in range(PICTURES):
        Image.fromarray(rng.integers(0, 256, (64, 64), dtype=np.uint8)).save(folder / f"{i}.png")
    labels = rng.random((cases, len(FINDINGS))) < 0.2
    with (folder / "manifest.jsonl").open("w") as file:
        for i in range(cases):
            record = {
                "case_id": f"case{i:07d}",
                "patient_id": f"p{i // 3:07d}",
                "image": f"{i % PICTURES}.png",
                "labels": {name: bool(labels[i, j]) for j, name in enumerate(FINDINGS)},
            }
            if i % EVERY == 0:
                name = FINDINGS[(i // EVERY) % 14]
                record["labels"][name] = True
                record |= {"boxes": {name: [[8, 8, 40, 40]]}, "frame": [64, 64]}
            file.write(json.dumps(record) + "\n")
    return folder


def memory() -> float:
    """Return the most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(cases: int, folder: Path) -> dict[str, object]:
    """Run one size in this process."""
    from medground.config import parse_run_file
    from medground.reporting.report import write_report
    from medground.session import assemble, run_session

    data = make_manifest(folder / "data", cases)
    run = parse_run_file(
        {
            "name": "scale",
            "benchmark": {
                "name": "xbench",
                "keep_maps": "none",
                "replicates": 100,
                "datasets": [{"name": "manifest", "root": str(data)}],
            },
            "models": [{"name": "baseline_all_foreground"}, {"name": "baseline_random"}],
            "engine": {"workers": 1, "torch_threads": 1},
            "implausible": "accept",
        }
    )
    result: dict[str, object] = {"cases": cases, "imports_mb": round(memory())}
    for name in ("run", "again"):
        start = time.perf_counter()
        report = run_session(assemble(run), folder / "run")
        result |= {f"{name}_s": round(time.perf_counter() - start, 1), f"{name}_mb": round(memory())}
    start = time.perf_counter()
    write_report([folder / "run"], None, "no")
    result |= {"report_s": round(time.perf_counter() - start, 1), "report_mb": round(memory())}
    files = [p for p in (folder / "run").rglob("*") if p.is_file()]
    result |= {
        "files": len(files),
        "chunks": report.chunks,
        "disk_mb": round(sum(f.stat().st_size for f in files) / 1e6),
    }
    return result


def main() -> None:
    """Run every size, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="+")
    parser.add_argument("--here", type=Path, help="run the one size in this process and folder")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(one(given.cases[0], given.here)))
        return
    for cases in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "perf.scale", str(cases), "--here", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(done.stdout.strip().splitlines()[-1] if done.returncode == 0 else done.stderr[-3000:], flush=True)


if __name__ == "__main__":
    main()
