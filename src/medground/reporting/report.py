"""``medground report``: one run, or several side by side, as one HTML file; several benchmarks as a trust report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from medground.benchmarks.results import ModelFacts
from medground.errors import RunError
from medground.reporting.components import component
from medground.reporting.composition import Composition
from medground.reporting.controls import controls
from medground.reporting.page import render
from medground.reporting.provenance import provenance
from medground.reporting.runs import Run, read_run, unique_names
from medground.reporting.sources import Images
from medground.reporting.trust.page import render as trust
from medground.running.reading import reading_path
from medground.storage.files import write_atomic
from medground.suite import parts_of

DETAILS = "-details.html"
"""What follows a trust report's name in that of the file with tables, figures and cases."""
SUMMARY = "-summary.html"
"""What follows the name of one benchmark's report in that of the summary beside it."""


def write_report(
    runs: Sequence[Path],
    out: Path | None = None,
    images: Images = "auto",
    readings: Mapping[Path, str] | None = None,
) -> Path:
    """Write the report of finished runs and return where it lies.

    The file holds everything that it shows: it can be moved, sent and opened without a network. Runs of several
    benchmarks give a trust report, and beside it a file with their tables, figures and cases; those of one benchmark
    give that file, and beside it the summary for readers of no code.

    Args:
        runs: run folders; several are put side by side.
        out: the file, or a folder for it; by default ``report.html`` in the run's folder, in the working directory for
            several runs.
        images: whether pictures are shown: ``auto`` shows those of datasets that may be passed on.
        readings: run folder -> folder of the reading that is shown, where it is not the run file's own.

    Raises:
        RunError: there is no run, a folder holds none, a run is not finished, or the report cannot be written.
    """
    if not runs:
        raise RunError("a report needs a run", fix="medground report RUN")
    chosen = readings or {}
    read = [_with_missing(read_run(folder, chosen.get(folder)), missing) for folder, missing in _expanded(runs)]
    path = _place([reading_path(f, chosen[f]) if f in chosen else f for f in runs], out)
    by_benchmark = _by_benchmark(read)
    compositions = _compositions(by_benchmark, images)
    moments = [moment for composition in compositions for moment in composition.moments]
    full = render(compositions, _origin(read), provenance(read))
    if len(by_benchmark) > 1:
        details = path.with_name(f"{path.stem}{DETAILS}")
        pages = {details: full, path: trust(read, details.name, moments)}
    else:
        pages = {path: full, summary_of(path): trust(read, path.name, moments)}
    for file, html in pages.items():
        try:
            write_atomic(file, html.encode())
        except OSError as error:
            raise RunError("the report cannot be written", where=file, got=error.strerror or error) from error
    return path


def _expanded(folders: Sequence[Path]) -> Iterator[tuple[Path, Mapping[str, tuple[str, ...]]]]:
    """Yield run folders with what some models of their suite lack; the folder of a suite stands for its parts."""
    for folder in folders:
        yield from (parts_of(folder) or {folder: {}}).items()


def _with_missing(run: Run, missing: Mapping[str, tuple[str, ...]]) -> Run:
    """Return a run whose summary also knows the models of the suite that it could not ask."""
    if not missing:
        return run
    others = [ModelFacts(label=label, missing=lacks) for label, lacks in missing.items()]
    return replace(run, summary=replace(run.summary, models=[*run.summary.models, *others]))


def summary_of(report: Path) -> Path:
    """Return where the summary for readers of no code lies, beside the report of one benchmark."""
    return report.with_name(f"{report.stem}{SUMMARY}")


def _compositions(by_benchmark: Mapping[str, Sequence[Run]], images: Images) -> list[Composition]:
    compositions = []
    for benchmark, of in by_benchmark.items():
        own = component(benchmark)(of, images)
        compositions.append(replace(own, sections=[*own.sections, *controls(of)]))
    return compositions


def _place(folders: Sequence[Path], out: Path | None) -> Path:
    if out is None:
        out = folders[0] if len(folders) == 1 else Path()
    return out / "report.html" if out.is_dir() else out


def _by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    parted: dict[str, list[Run]] = {}
    for run in runs:
        parted.setdefault(run.benchmark, []).append(run)
    return parted


def _origin(runs: Sequence[Run]) -> str:
    return "; ".join(f"{name}, {run.date or 'no date'}" for run, name in zip(runs, unique_names(runs), strict=True))
