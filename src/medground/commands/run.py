"""``medground run``: a run file of one benchmark or a suite of several, and the limits that it states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medground import session, terminal
from medground.benchmarks.limits import Checked, Outcome, check_limits, read_limits, worst
from medground.config import read_mapping
from medground.running.progress import progress_on
from medground.suite import is_suite, read_suite, run_suite


def run(file: Path, overrides: Sequence[str], out: Path, *, fresh: bool, as_json: bool) -> Outcome:
    """Run a run file, show what came of it, and return what its limits come to.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    if is_suite(file):
        report = run_suite(read_suite(file, overrides), out, fresh=fresh, progress=progress_on())
        terminal.show_suite(report, as_json=as_json)
        stated = read_mapping(file, overrides).get("limits") or []
        return _shown(report.limits(stated), stated, as_json=as_json)
    done = session.run_file(file, overrides, out, fresh=fresh)
    terminal.show_run(done, as_json=as_json)
    stated = read_mapping(file, overrides).get("limits") or []
    return _shown(check_limits(read_limits(stated), [done.summary]), stated, as_json=as_json)


def _shown(results: Sequence[Checked], stated: Sequence[Mapping[str, Any]], *, as_json: bool) -> Outcome:
    if stated and not as_json:
        terminal.show_limits(results)
    return worst(results)
