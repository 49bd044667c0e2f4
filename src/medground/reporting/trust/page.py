"""The page of the trust report: one file, no chart library, nothing from the network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby

from markupsafe import Markup

from medground.benchmarks.limits import Checked, check_limits, read_limits
from medground.reporting.moments import Moment, within
from medground.reporting.page import environment, policy
from medground.reporting.runs import Run, unique_names
from medground.reporting.trust.audit import less_well, operating, subgroups
from medground.reporting.trust.board import CLASSES, TrustBoard
from medground.reporting.trust.sections import anchors, sections
from medground.reporting.trust.sentences import answer, hundreds, sentences
from medground.reporting.verdicts import NOTES, WORDS

TEMPLATE = "trust/trust.html"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def render(runs: Sequence[Run], details: str = "", moments: Sequence[Moment] = ()) -> str:
    """Return the trust report of runs as HTML.

    Args:
        runs: finished runs, one a benchmark or several; their summaries are all that is read.
        details: address of the page with cases and figures, relative to this one; empty where there is none.
        moments: best and worst items, as the reports of the benchmarks give them.
    """
    summaries = [run.summary for run in runs]
    board = TrustBoard(summaries)
    style, script = _read("trust.css"), _read("trust.js")
    models = [row for row in board.rows if not row.facts.baseline]
    page = environment().get_template(TEMPLATE)
    return page.render(
        title=f"Trust report: {_models(len(models) or len(board.rows))}",
        question=_question(len(models) or len(board.rows)),
        names=unique_names(runs),
        about=_about(runs),
        answer=answer(board),
        board=board,
        heads=[(name, len(list(of))) for name, of in groupby(board.columns, key=lambda column: column.benchmark)],
        anchors=anchors(summaries),
        letters=[(letter, NOTES[code]) for code, letter in board.letters.items()],
        signs=[(sign, WORDS[word]) for word, sign in CLASSES.items()],
        sentences=sentences(board),
        hundreds=hundreds(board),
        limits=_limits(runs),
        empty=sum(tile.answer in {"not asked", "cannot be told"} for row in board.rows for tile in row.tiles),
        sections=sections(summaries),
        moments=shown_moments(board, moments),
        operating=operating(summaries),
        groups=(groups := subgroups(summaries)),
        less_well=less_well(groups),
        runs=[_provenance(run, name) for run, name in zip(runs, unique_names(runs), strict=True)],
        details=details,
        policy=policy([script], [style]),
        style=Markup(style),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
    )


def shown_moments(
    board: TrustBoard, moments: Sequence[Moment]
) -> list[tuple[str, list[tuple[int, str, list[Moment]]]]]:
    """Return model -> (number of the question, its title, best and worst), in the order of the matrix."""
    kept = within(moments)
    shown = []
    for row in (row for row in board.rows if not row.facts.baseline):
        own = [
            (column.number, column.question.title, pair)
            for column in board.columns
            if (pair := [m for m in kept if (m.model, m.question) == (row.facts.label, column.question.key)])
        ]
        if own:
            shown.append((row.facts.label, own))
    return shown


def _models(n: int) -> str:
    word = NUMBERS[n] if n < len(NUMBERS) else str(n)
    return f"{word} model" + ("" if n == 1 else "s")


def _question(n: int) -> str:
    return "Does this model look at the evidence?" if n == 1 else f"Do these {_models(n)} look at the evidence?"


def _about(runs: Sequence[Run]) -> str:
    dates = sorted({run.date for run in runs if run.date})
    benchmarks = list(dict.fromkeys(run.benchmark for run in runs))
    when = f", {dates[0]}" if len(dates) == 1 else f", {dates[0]} to {dates[-1]}" if dates else ""
    return f"{', '.join(benchmarks)}{when}"


def _limits(runs: Sequence[Run]) -> list[Checked]:
    """Return what the limits of the run files come to; a limit that several state is held once."""
    stated = {limit: None for run in runs for limit in read_limits(run.config.get("limits") or [])}
    return check_limits(list(stated), [run.summary for run in runs])


def _provenance(run: Run, name: str) -> dict[str, object]:
    environment_of = run.manifest.get("environment", {})
    packages = environment_of.get("packages", {})
    versions = {"medground": environment_of.get("medground"), "python": environment_of.get("python")} | packages
    return {
        "name": name,
        "benchmark": run.benchmark,
        "sha256": run.summary_sha256,
        "failures": len(run.failures),
        "versions": ", ".join(f"{key} {value}" for key, value in versions.items() if value),
        "config": run.config_text,
    }


def _read(name: str) -> str:
    return files("medground.reporting").joinpath("trust", name).read_text(encoding="utf-8")
