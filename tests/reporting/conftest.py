"""Small runs for the report: thirty pictures, three findings, models that look, that do not, and that fail."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.config import parse_run_file
from medground.running.options import Options
from medground.running.reading import reading_path
from medground.running.run import execute
from medground.session import assemble

FINDINGS = ("Nodule", "Effusion", "Mass")
SCRIPT = "<script>window.hit = 1</script>"
IMAGE = '"><img src=x onerror="window.hit=2">'
WIDTH, HEIGHT = 120, 96


def box_of(case: int, finding: int) -> tuple[int, int, int, int]:
    """Return a box that differs by finding and moves with the case."""
    x, y = 10 + 30 * (finding % 3) + case % 9, 12 + 2 * (case % 13)
    return x, y, x + 22, y + 26


def write_dataset(root: Path, names: list[str], findings: tuple[str, ...], views: tuple[str, str]) -> None:
    """Write pictures and a manifest; the last picture is cut short."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(1)
    lines = []
    for k, name in enumerate(names):
        grey = np.linspace(0, 200, WIDTH)[None, :] + rng.integers(0, 40, (HEIGHT, WIDTH))
        Image.fromarray(grey.astype(np.uint8)).save(root / f"{k}.png")
        localised = [f for f in range(len(findings)) if (k + f) % 2 == 0]
        lines.append(
            {
                "image": f"{k}.png",
                "case_id": name,
                "patient_id": f"patient {k // 2}",
                "view": views[k % 2],
                "labels": {findings[f]: f in localised for f in range(len(findings))},
                "frame": [WIDTH, HEIGHT],
                "boxes": {findings[f]: [list(box_of(k, f))] for f in localised},
            }
        )
    last = root / f"{len(names) - 1}.png"
    last.write_bytes(last.read_bytes()[:600])
    (root / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_maps(root: Path, names: list[str], findings: tuple[str, ...], *, looks: bool) -> None:
    """Write maps that peak in the region, or in a corner; a flat one, one with a NaN, and one that is missing."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(2)
    rows, scores = [], []
    ys, xs = (np.mgrid[0:12, 0:15] + 0.5) * 8
    for k, name in enumerate(names):
        for f, finding in enumerate(findings):
            present = (k + f) % 2 == 0
            scores.append([name, finding, rng.normal(1.5 if present else 0)])
            if not present or (k, f) == (4, 0):
                continue
            x0, y0, x1, y1 = box_of(k, f)
            cx, cy = ((x0 + x1) / 2, (y0 + y1) / 2) if looks else (112.0, 90.0)
            values = np.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / 200)
            values = np.full_like(values, 0.5) if (k, f) == (6, 0) else values
            values[0, 0] = np.nan if (k, f) == (8, 0) else values[0, 0]
            np.save(root / f"{k}-{f}.npy", values.astype(np.float32))
            rows.append([name, finding, f"{k}-{f}.npy"])
    for file, column, content in (("maps.csv", "file", rows), ("scores.csv", "score", scores)):
        with (root / file).open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([["case_id", "finding", column], *content])


def make_run(
    folder: Path,
    *,
    prefix: str = "case",
    findings: tuple[str, ...] = FINDINGS,
    labels: tuple[str, str] = ("Looker", "Corner"),
    dataset: str = "Ours",
    views: tuple[str, str] = ("PA", "AP"),
    **run: object,
) -> Path:
    """Make a finished run in ``folder`` and return the folder."""
    home = folder.parent / f"{folder.name}-files"
    names = [f"{prefix}{k:02}" for k in range(30)]
    write_dataset(home / "data", names, findings, views)
    for label, looks in zip(("looker", "corner"), (True, False), strict=True):
        write_maps(home / label, names, findings, looks=looks)
    spec = {
        "name": folder.name,
        "benchmark": {
            "name": "xbench",
            "replicates": 100,
            "datasets": [{"name": "manifest", "label": dataset, "root": str(home / "data")}],
        },
        "models": [
            {"name": "precomputed", "label": labels[0], "maps": str(home / "looker"), "kind": "zero-shot"},
            {"name": "precomputed", "label": labels[1], "maps": str(home / "corner"), "kind": "zero-shot"},
            {"name": "baseline_class_prior"},
            {"name": "baseline_all_foreground"},
        ],
        "engine": {"on_error": "skip"},
    }
    session = assemble(parse_run_file(spec | run))
    options = Options(workers=0, on_error="skip")
    execute(session.benchmark, folder, config=session.run.model_dump(mode="json"), options=options)
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; read-only by agreement."""
    return make_run(tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture
def run_copy(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may damage, so without the sums of its summary."""
    folder = Path(shutil.copytree(finished, tmp_path / "small"))
    (reading_path(folder) / "sums.json").unlink()
    return folder


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every text is an attack."""
    folder = make_run(
        tmp_path_factory.mktemp("runs") / "hostile",
        prefix=f"{SCRIPT}{IMAGE}",
        findings=(SCRIPT, IMAGE, "{{ 7 * 7 }} </script><b>bold</b>"),
        labels=(f"A {SCRIPT}", f"B {IMAGE} __proto__"),
        dataset=f"D {SCRIPT}{IMAGE}",
        views=(SCRIPT, IMAGE),
    )
    config = (folder / "run.yaml").read_text()
    (folder / "run.yaml").write_text(config.replace("prompts: {}", json.dumps({SCRIPT: IMAGE}).join(("prompts: ", ""))))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["environment"]["platform"] = manifest["sessions"][0]["outcome"] = f"{SCRIPT}{IMAGE}"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    failure = {"task": [SCRIPT, IMAGE], "item": IMAGE, "reason": SCRIPT, "detail": f"{IMAGE}{SCRIPT}"}
    (folder / "failures.jsonl").write_text(json.dumps(failure) + "\n")
    summary = (reading_path(folder) / "summary.json").read_text()
    attack = json.dumps(f"{SCRIPT}{IMAGE}")[1:-1]
    (reading_path(folder) / "summary.json").write_text(
        summary.replace("the map holds NaN", f"{attack} the map holds NaN")
    )
    (reading_path(folder) / "sums.json").unlink()
    return folder
