"""What the terminal shows: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from medground.benchmarks.base import Summary
    from medground.commands.compare import Comparison
    from medground.commands.score import Score
    from medground.commands.validate import Check
    from medground.running.estimate import TaskEstimate
    from medground.running.run import RunReport
    from medground.verification.verify import CaseResult


def show_run(report: RunReport, *, as_json: bool) -> None:
    """Show the summary of a run, where its time went, and where it lies."""
    if as_json:
        _print_json({"folder": str(report.folder), "summary": report.summary.data})
        return
    data = report.summary.data
    if "protocol_in_words" in data:
        typer.echo(f"\n{data['protocol_in_words']}")
    show_glance(report.summary, "glance")
    show_side_by_side(report.summary)
    typer.echo(f"\n{report.items} items, {report.failures} failed, {report.chunks} chunks ({report.reused} reused)")
    seconds = report.profile["total"].get("seconds", {})
    if seconds:
        typer.echo("seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in seconds.items()))
    typer.echo(f"run: {report.folder}\nreport: medground report {report.folder}")


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
        typer.echo(f"{'ok  ' if check.ok else 'FAIL'} {check.what}")
        for line in check.details:
            typer.echo(f"       {line}")


def show_score(score: Score, *, as_json: bool) -> None:
    """Show scored maps."""
    if as_json:
        _print_json(score.as_json())
        return
    typer.echo(f"\n{score.protocol.in_words()}")
    for name in ("glance", "glance_by_class"):
        show_glance(score.summary, name)
    show_side_by_side(score.summary)
    if score.folder is not None:
        typer.echo(f"\nscores: {score.folder}")


def show_comparison(comparison: Comparison, *, by_finding: bool, as_json: bool) -> None:
    """Show paired differences, a table a pair of models; those of single findings where asked."""
    if as_json:
        _print_json(comparison.data)
        return
    for note in comparison.notes:
        typer.echo(note)
    table = comparison.table if by_finding else comparison.table.filter(comparison.table["group"] == "macro")
    for who, part in table.group_by("dataset", "first", "second", maintain_order=True):
        show_table(part.drop("dataset", "first", "second"), "{}: {} minus {}".format(*who))
    typer.echo("difference in percentage points" + ("" if by_finding else "; each finding: --by-finding"))


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


def show_components(found: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    """Show names by kind."""
    if as_json:
        _print_json(found)
        return
    for kind, names in found.items():
        typer.echo("\n  ".join([f"{kind}:", *(names or ["(none yet)"])]))


def show_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Show facts, nested ones indented."""
    if as_json:
        _print_json(facts)
        return
    for key, value in facts.items():
        _fact(key, value, "")


def show_glance(summary: Summary, name: str) -> None:
    """Show the table of a summary that is made for a terminal; the first one where a benchmark makes none."""
    table = summary.tables.get(name)
    if table is None and summary.tables:
        table = next(iter(summary.tables.values()))
    if table is None or not len(table):
        return
    if "dataset" in table.columns:
        for (dataset,), part in table.group_by("dataset", maintain_order=True):
            show_table(part.drop("dataset"), str(dataset))
    else:
        show_table(table, "")
    typer.echo(summary.data.get("legend", ""))


def show_side_by_side(summary: Summary) -> None:
    """Show several datasets beside each other where a summary does, turned to fit: its rows across."""
    table = summary.tables.get("table1")
    if table is None:
        return
    names, *columns = table.columns
    rows = [{"percent": c} | dict(zip(table[names], table[c], strict=True)) for c in columns if any(table[c])]
    _table("Datasets side by side", rows)


def show_table(table: pl.DataFrame, title: str) -> None:
    """Show a table of a summary; columns without any content are left out."""
    kept = [c for c in table.columns if table[c].null_count() < len(table) and set(table[c].to_list()) != {""}]
    _table(title, table.select(kept).to_dicts())


def _fact(key: str, value: Any, indent: str) -> None:
    if isinstance(value, Mapping):
        typer.echo(f"{indent}{key}:")
        for inner, content in value.items():
            _fact(str(inner), content, indent + "  ")
    elif isinstance(value, (list, tuple)):
        typer.echo(f"{indent}{key}: {', '.join(map(str, value))}")
    else:
        typer.echo(f"{indent}{key}: {value}")


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title or None, title_justify="left", header_style="bold", pad_edge=False, padding=(0, 1), box=SIMPLE_HEAD
    )
    for column in rows[0] if rows else ():
        table.add_column(Text(str(column)), no_wrap=True)
    for row in rows:
        # Text: names come from data, and must not be read as markup.
        table.add_row(*(Text("" if value is None else str(value)) for value in row.values()))
    # As wide as the table asks for: a narrow terminal wraps lines, but no number is cut.
    Console(width=max(Console().width, 300)).print(table, soft_wrap=True)


def _print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=1, sort_keys=True, allow_nan=False, default=str)
    sys.stdout.write("\n")
