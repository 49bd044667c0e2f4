"""What the terminal shows: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from medground.escaping import for_terminal

WIDE = 120
"""Columns of text that are printed without asking how wide the terminal is: what it wraps can still be read."""

if TYPE_CHECKING:
    import polars as pl

    from medground.benchmarks.doors import Audit
    from medground.benchmarks.limits import Checked
    from medground.benchmarks.results import Summary
    from medground.commands.compare import Comparison
    from medground.commands.import_ import Imported
    from medground.commands.score import Score
    from medground.commands.validate import Check
    from medground.running.estimate import TaskEstimate
    from medground.running.fsck import Integrity
    from medground.running.run import RunReport
    from medground.running.shard_session import ShardReport
    from medground.suite import SuiteReport
    from medground.verification.verify import CaseResult


@contextmanager
def waiting(what: str, after: float = 2.0) -> Iterator[None]:
    """Say on the error stream what is being done, and for how long, once it takes longer than a moment.

    Args:
        what: is done.
        after: seconds before anything is said; then again after five times as long.
    """
    from medground.running.progress import is_quiet

    done = threading.Event()

    def speak() -> None:
        spent = 0.0
        while not done.wait(after if not spent else 5 * after):
            spent += after if not spent else 5 * after
            print(f"{what} ... {spent:.0f} s", file=sys.stderr, flush=True)  # noqa: T201  (a stream that results are not on)

    speaker = None if is_quiet() else threading.Thread(target=speak, name="waiting", daemon=True)
    if speaker is not None:
        speaker.start()
    try:
        yield
    finally:
        done.set()


def show_run(report: RunReport, *, as_json: bool) -> None:
    """Show the summary of a run, where its time went, and where it lies."""
    if as_json:
        _print_json({"folder": str(report.folder), "summary": report.summary.to_json()})
        return
    show_summary(report.summary)
    _echo(f"\n{report.items} items, {report.failures} failed, {report.chunks} chunks ({report.reused} reused)")
    seconds = report.profile["total"].get("seconds", {})
    if seconds:
        _echo("seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in seconds.items()))
    _echo(f"run: {report.folder}\nreport: medground report {report.folder}")


def show_shard(report: ShardReport, *, as_json: bool) -> None:
    """Show what a shard has done, and what comes next."""
    shard = report.shard
    if as_json:
        counts = {"chunks": report.chunks, "reused": report.reused, "failures": report.failures}
        _print_json({"folder": str(report.folder), "shard": [shard.index, shard.of], **counts})
        return
    _echo(
        f"shard {shard.index} of {shard.of}: {report.chunks} chunks ({report.reused} reused), {report.failures} failed"
    )
    _echo(f"run: {report.folder}\nwhen every shard has ended: medground merge {report.folder}")


def show_suite(report: SuiteReport, *, as_json: bool) -> None:
    """Show the summaries of a suite, part after part, and where its trust report comes from."""
    if as_json:
        parts = {label: part.summary.to_json() for label, part in report.parts}
        _print_json({"folder": str(report.folder), "summaries": parts})
        return
    for label, part in report.parts:
        _echo(f"\n== {label}: {part.items} items, {part.failures} failed ==")
        show_summary(part.summary)
    _echo(f"\nsuite: {report.folder}\nreport: medground report {report.folder}")


def show_limits(results: Sequence[Checked]) -> None:
    """Show what the limits of a run file come to."""
    rows = [
        {
            "limit": checked.limit.in_words(),
            "model": checked.model,
            "on": checked.where,
            "measured": checked.figure,
            "outcome": f"{checked.outcome}{f': {checked.because}' if checked.because else ''}",
        }
        for checked in results
    ]
    _table("Limits", rows)


def show_estimates(estimates: Sequence[TaskEstimate], *, as_json: bool) -> None:
    """Show what a run would cost."""
    if as_json:
        _print_json([asdict(e) | {"path": list(e.path)} for e in estimates])
        return
    rows = [
        {
            "task": "/".join(e.path),
            "items": e.items,
            "left": e.items_left,
            "disk": "?" if e.bytes is None else f"{e.bytes / 1e6:.1f} MB",
            "time": "?" if e.seconds is None else f"{e.seconds:.0f} s",
        }
        for e in estimates
    ]
    _table("Dry run: nothing was written", rows)


def show_checks(checks: Sequence[Check], *, as_json: bool) -> None:
    """Show what was checked."""
    if as_json:
        _print_json([asdict(check) for check in checks])
        return
    for check in checks:
        _echo(f"{'ok  ' if check.ok else 'FAIL'} {check.what}")
        for line in check.details:
            _echo(f"       {line}")


def show_integrity(audit: Integrity, *, as_json: bool) -> None:
    """Show which files of a run are what was written, and which are not."""
    if as_json:
        _print_json(asdict(audit))
        return
    _echo(f"{audit.files:,} files are what was written; {len(audit.damaged):,} are not")
    for line in audit.damaged:
        _echo(f"  {line}")
    if audit.unfinished:
        _echo(f"  not finished, and computed again by the same command: {', '.join(audit.unfinished[:5])}")
    for name in audit.unsealed:
        _echo(f"  reading {name}: its summary and tables were written before sums were kept")


def show_import(imported: Imported, *, as_json: bool) -> None:
    """Show what a manifest holds, and what to do with it."""
    if as_json:
        _print_json(asdict(imported) | {"manifest": str(imported.manifest)})
        return
    known = "patients unknown" if imported.patients is None else f"{imported.patients:,} patients"
    _echo(f"{imported.manifest}: {imported.cases:,} pictures, {known}")
    for name, (present, absent, unknown, regions) in imported.findings.items():
        _echo(f"  {name}: {present:,} present, {absent:,} absent, {unknown:,} not annotated, {regions:,} regions")
    _echo(f"In a run file: datasets: [{{name: manifest, root: {imported.manifest}}}]")


def show_score(score: Score, *, as_json: bool) -> None:
    """Show scored maps."""
    if as_json:
        _print_json(score.as_json())
        return
    show_summary(score.summary)
    if score.folder is not None:
        _echo(f"\nscores: {score.folder}")


def show_comparison(comparison: Comparison, *, by_group: bool, as_json: bool) -> None:
    """Show paired differences, a table a pair of models; those of single groups (findings, types) where asked."""
    if as_json:
        _print_json(comparison.data)
        return
    for note in comparison.notes:
        _echo(note)
    table = comparison.table if by_group else comparison.overall
    for who, part in table.group_by("dataset", "first", "second", maintain_order=True):
        show_table(part.drop("dataset", "first", "second"), "{}: {} minus {}".format(*who))
    _echo("differences of shares in percentage points" + ("" if by_group else "; each group: --by-group"))


def show_audit(audit: Audit, *, as_json: bool) -> None:
    """Show what scorers that see no image make of items."""
    if as_json:
        _print_json(audit.data())
        return
    _echo(audit.in_words())


def show_verification(results: Sequence[CaseResult], *, as_json: bool) -> None:
    """Show the output of each golden case that comes closest to its tolerance, or misses it."""
    rows = [
        {
            "case": result.case,
            "worst output": result.worst.output,
            "largest difference": f"{result.worst.difference:.3g}",
            "tolerance": f"{result.worst.tolerance:.3g}",
            "passed": result.passed,
        }
        for result in results
    ]
    if as_json:
        _print_json(rows)
        return
    _table("Golden cases", rows)


def show_components(components: Mapping[str, Sequence[str]], what: Mapping[str, str], *, as_json: bool) -> None:
    """Show names by kind, each with one line of what it is."""
    if as_json:
        _print_json(components)
        return
    longest = max((len(name) for names in components.values() for name in names), default=0)
    for kind, names in components.items():
        _echo(f"{kind}:")
        for name in names:
            _echo(_hung(f"  {name:{longest}}  ", what.get(name, ""), longest + 4))
        if not names:
            _echo("  (none yet)")


def show_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Show facts, nested ones indented."""
    if as_json:
        _print_json(facts)
        return
    for key, value in facts.items():
        _fact(key, value, "")


def show_summary(summary: Summary) -> None:
    """Show how a summary was read and the tables that are made for a terminal; the first where there are none."""
    if summary.described:
        _echo(f"\n{summary.described}")
    for name in summary.shown or tuple(summary.tables)[:1]:
        table = summary.tables.get(name)
        if table is None or not len(table):
            continue
        if table.columns[0] == "dataset":
            for (dataset,), part in table.group_by("dataset", maintain_order=True):
                show_table(part.drop("dataset"), str(dataset))
        else:
            show_table(table, name.replace("_", " "))
    if summary.legend:
        _echo(summary.legend)


def show_table(table: pl.DataFrame, title: str) -> None:
    """Show a table of a summary; columns without any content, or undefined all over, are left out."""
    kept = [c for c in table.columns if set(table[c].to_list()) - {None, "", "undefined"}]
    _table(title, table.select(kept).to_dicts())


def _fact(key: str, value: Any, indent: str) -> None:
    if isinstance(value, Mapping):
        _echo(f"{indent}{key}:")
        for inner, content in value.items():
            _fact(str(inner), content, indent + "  ")
    elif isinstance(value, (list, tuple)):
        _echo(_hung(f"{indent}{key}: ", ", ".join(map(str, value)), len(indent) + 4))
    else:
        _echo(_hung(f"{indent}{key}: ", str(value), len(indent) + 4))


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    blocks = folded(_fitted(rows), _narrow())
    for number, block in enumerate(blocks):
        _block(title if number == 0 else "", block)


def _block(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=for_terminal(title) or None,
        title_justify="left",
        header_style="bold",
        pad_edge=False,
        padding=(0, 1),
        box=SIMPLE_HEAD,
    )
    narrow = _narrow()
    for column in rows[0] if rows else ():
        table.add_column(Text(for_terminal(str(column))), no_wrap=narrow is None, overflow="fold")
    for row in rows:
        # Text: names come from data, and must not be read as markup.
        table.add_row(*(Text("" if value is None else for_terminal(str(value))) for value in row.values()))
    # As wide as the table asks for where nobody says how wide the terminal is; no number is cut in either case.
    Console(width=narrow or max(Console().width, 300)).print(table, soft_wrap=narrow is None)


def folded(rows: Sequence[Mapping[str, Any]], width: int | None) -> list[Sequence[Mapping[str, Any]]]:
    """Return a table as several that fit a width, each with the first column; columns stay in order.

    Args:
        rows: of one table.
        width: of the terminal; None: it is as wide as it need be.

    Example:
        >>> folded([{"model": "clip", "auc": "81.2", "dice": "22.9"}], 13)
        [[{'model': 'clip', 'auc': '81.2'}], [{'model': 'clip', 'dice': '22.9'}]]
    """
    if not rows or width is None:
        return [rows]
    first, *columns = rows[0]
    need = {c: max(len(str(c)), *(len(str(row[c] if row[c] is not None else "")) for row in rows)) for c in rows[0]}
    blocks: list[list[str]] = [[]]
    for column in columns:
        taken = need[first] + sum(need[c] + _BETWEEN for c in (*blocks[-1], column))
        if blocks[-1] and taken > width:
            blocks.append([])
        blocks[-1].append(column)
    return [[{c: row[c] for c in (first, *block)} for row in rows] for block in blocks]


_BETWEEN = 3
"""Columns of text that part two columns of a table."""


def say(text: object, *, end: str = "\n") -> None:
    """Print what may hold names, paths and messages that came from data."""
    typer.echo(for_terminal(str(text)) + end, nl=False)


_echo = say


def _fitted(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return rows that fit the terminal: a table much wider than it, and than it is long, is turned."""
    if not rows or len(rows[0]) <= len(rows) + 1:
        return rows
    first, *columns = rows[0]
    width = sum(max(len(str(c)), *(len(str(row[c] or "")) for row in rows)) + 2 for c in rows[0])
    heads = [str(row[first]) for row in rows]
    if width <= max(_terminal_width(), WIDE) or len(set(heads)) < len(heads):
        return rows
    turned = ({first: column} | dict(zip(heads, (row[column] for row in rows), strict=True)) for column in columns)
    return [row for row in turned if any(list(row.values())[1:])]


def _terminal_width() -> int:
    return shutil.get_terminal_size().columns


def _narrow() -> int | None:
    """Return the width that tables are folded to; None where the output is no terminal and nobody says."""
    return _terminal_width() if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal() else None


def _hung(head: str, text: str, indent: int) -> str:
    """Return a line whose further lines hang below its text; one line where the width is not known."""
    width = _narrow()
    if width is None or width < indent + 20:
        return f"{head}{text}".rstrip()
    return textwrap.fill(
        f"{head}{text}", width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=1, sort_keys=True, allow_nan=False, default=str)
    sys.stdout.write("\n")
