"""``medground run``: a run file of one benchmark or a suite of several, and the limits that it states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medground import session, terminal
from medground.benchmarks.limits import Checked, Outcome, check_limits, read_limits, worst
from medground.config import read_mapping
from medground.errors import ConfigError
from medground.running.estimate import TaskEstimate
from medground.running.progress import progress_on
from medground.running.shards import parse_shard
from medground.storage import is_address
from medground.suite import is_suite, read_suite, run_suite

LIMIT_FAILED, FINISHED_WITH_FAILURES = 5, 3
"""Exit codes of a run that ended: a stated limit failed or cannot be told; items failed and were skipped."""


def run_shard(file: Path, overrides: Sequence[str], out: str, text: str, *, as_json: bool) -> int:
    """Compute one shard of a run file, show what came of it, and return the exit code.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    if is_suite(file):
        raise ConfigError(
            "a suite has no shards", where=file, fix="write a run file of each benchmark, and shard those"
        )
    report = session.run_shard(file, parse_shard(text), overrides, out)
    terminal.show_shard(report, as_json=as_json)
    return FINISHED_WITH_FAILURES if report.failures else 0


def limited(file: Path, overrides: Sequence[str], limit: int | None) -> list[str]:
    """Return the overrides with a limit to the first items, under a name of its own: a trial never mixes with a run."""
    if limit is None:
        return list(overrides)
    name = read_mapping(file, overrides).get("name")
    return [*overrides, f"first={limit}", *([f"name={name}-first-{limit}"] if name else [])]


def run(file: Path, overrides: Sequence[str], out: str, *, fresh: bool, as_json: bool) -> int:
    """Run a run file, show what came of it, and return the exit code.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    if is_suite(file):
        report = run_suite(read_suite(file, overrides), _folder(out), fresh=fresh, progress=progress_on())
        terminal.show_suite(report, as_json=as_json)
        stated = read_mapping(file, overrides).get("limits") or []
        outcome = _shown(report.limits(stated), stated, as_json=as_json)
        return _code(outcome, sum(part.failures for _, part in report.parts))
    done = session.run_file(file, overrides, out, fresh=fresh)
    terminal.show_run(done, as_json=as_json)
    stated = read_mapping(file, overrides).get("limits") or []
    outcome = _shown(check_limits(read_limits(stated), [done.summary]), stated, as_json=as_json)
    return _code(outcome, done.failures)


def _folder(out: str) -> Path:
    """Return the folder of a suite, which no address can hold.

    Raises:
        ConfigError: it is an address.
    """
    if is_address(out):
        raise ConfigError("a suite runs in a folder", where="--out", expected="a folder", got=out)
    return Path(out)


def estimates(file: Path, overrides: Sequence[str], out: str) -> list[TaskEstimate]:
    """Return what a run file, or every part of a suite, would cost."""
    if not is_suite(file):
        return session.estimate_file(file, overrides, out)
    suite = read_suite(file, overrides)
    return [
        task
        for part in suite.parts
        for task in session.estimate_run(
            session.assemble(part.run, suite.base, alone=False), _folder(out) / suite.name / part.label
        )
    ]


def _code(outcome: Outcome, failures: int) -> int:
    if outcome != "passed":
        return LIMIT_FAILED
    return FINISHED_WITH_FAILURES if failures else 0


def _shown(results: Sequence[Checked], stated: Sequence[Mapping[str, Any]], *, as_json: bool) -> Outcome:
    if stated and not as_json:
        terminal.show_limits(results)
    return worst(results)
