"""``medground demo``: the main job on drawn radiographs by the code of ``medground run``; no network, no data."""

from __future__ import annotations

from pathlib import Path

import typer

from medground import terminal
from medground.benchmarks.results import Cells, Summary
from medground.config import RunFile, parse_run_file
from medground.running.options import available_cores
from medground.running.progress import progress_on
from medground.session import assemble, run_session

CASES = 240
SEED = 11
"""Of the phantoms; the reference model was trained on those of another seed."""


def demo_run_file(cases: int = CASES) -> RunFile:
    """Return the run file of the demo."""
    phantoms = {"name": "phantom", "cases": cases, "size": 224, "seed": SEED, "workers": min(2, available_cores())}
    return parse_run_file(
        {
            "name": "demo",
            "benchmark": {"name": "xbench", "protocol": "xbench", "datasets": [phantoms]},
            "models": [
                {"name": "baseline_all_foreground"},
                {"name": "baseline_centre"},
                {"name": "baseline_class_prior"},
                {"name": "reference"},
            ],
        }
    )


def run_demo(out: Path) -> None:
    """Run the demo, show its tables, say in five lines what they mean, and write the report."""
    run = demo_run_file()
    typer.echo(f"Drawing {CASES} chest radiographs whose findings are known to the pixel, then asking four models.")
    done = run_session(assemble(run), out / run.name, progress=progress_on())
    terminal.show_run(done, as_json=False)
    for line in explain(done.summary):
        typer.echo(line)
    from medground.reporting.report import write_report

    typer.echo(f"\nreport: {write_report([done.folder])}")


def explain(summary: Summary) -> list[str]:
    """Return five lines that read the demo's numbers aloud."""
    cells = Cells(summary.cells)

    def percent(model: str, metric: str) -> str:
        cell = cells.one(model=model, metric=metric, scope="macro", subset="main")
        return "undefined" if cell is None or cell.value is None else f"{100 * cell.value:.0f} %"

    ours, prior, floor = "reference", "baseline_class_prior", "baseline_all_foreground"
    return [
        "",
        f"1. Recognition: the reference model ranks findings with an AUC of {percent(ours, 'auc')}; 50 % is guessing.",
        f"2. Pointing: its maximum lies on the finding in {percent(ours, 'pointing')} of cases; looking where that "
        f"finding usually is, without looking at the picture, gives {percent(prior, 'pointing')}.",
        f"3. Overlap: its Dice is {percent(ours, 'dice@best')} at the searched threshold; marking everything gives "
        f"{percent(floor, 'dice@best')}, so the rest is what its maps know.",
        f"4. Calibration: at the fixed threshold 0.5 the Dice is {percent(ours, 'dice@0.5')}; the difference "
        f"({percent(ours, 'dice_gap')}) is lost by a user who cannot search on the answers.",
        "5. The reference model was trained with masks on pictures drawn by the same program: it shows that the "
        "instrument works, and is no clinical model.",
    ]
