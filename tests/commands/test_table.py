"""A table for a paper: figures are the cells', rows are told apart by what differs, what is not there is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from medground.benchmarks.results import Cell, ModelFacts, Summary, Verdict
from medground.commands import table
from medground.commands.table import Wanted, table_of, written
from medground.errors import ConfigError
from medground.metrics.spec import MetricSpec
from medground.reporting.runs import Run

SPECS = (MetricSpec("auc", "AUC", digits=2), MetricSpec("dice", "Dice", searched=True, digits=2))


def cell(model: str, metric: str, value: float | None, **more: object) -> Cell:
    given = {"n": 8, "dataset": "d", "reason": None if value is not None else "no region"} | more
    return Cell(benchmark="b", model=model, metric=metric, value=value, **given)  # type: ignore[arg-type]  # a test's own


def run(name: str, *cells: Cell, verdicts: tuple[Verdict, ...] = ()) -> Run:
    summary = Summary(cells=cells, verdicts=verdicts, benchmark="b", metrics=SPECS)
    return Run(Path(name), {"name": name}, "", {"benchmark": {"name": "b"}}, summary, "", [])


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    headline = cell("m", "auc", 0.8, low=0.7, high=0.9, scope="macro")
    roles = {"headline": headline}
    verdict = Verdict(benchmark="b", question="points", model="m", answer="yes", because="", roles=roles)
    first = run(
        "one",
        headline,
        cell("m", "dice", 0.25, scope="pairs", n=7),
        cell("m", "auc", 0.6, scope="class", group="=Mass"),
        cell("k", "auc", None, scope="macro"),
        verdicts=(verdict,),
    )
    runs = {Path("one"): first, Path("two"): run("two", cell("m", "auc", 0.5, scope="macro"))}
    monkeypatch.setattr(table, "read_run", runs.__getitem__)
    return list(runs)


def test_figures_are_the_cells_with_their_intervals(folders: list[Path]) -> None:
    made = table_of(folders[:1], Wanted(columns=("auc", "dice")))
    assert made.to_dicts() == [
        {"model": "m", "AUC": "80.00 [70.00, 90.00]", "Dice (optimistic)": "25.00", "n": 8},
        {"model": "k", "AUC": "undefined: no region", "Dice (optimistic)": None, "n": 8},
    ]
    plain = table_of(folders[:1], Wanted(columns=("auc",), models=("m",), intervals=False, digits=1))
    assert plain.to_dicts() == [{"model": "m", "AUC": "80.0", "n": 8}]


def test_runs_stand_side_by_side_under_their_names(folders: list[Path]) -> None:
    made = table_of(folders, Wanted(columns=("auc",), models=("m",)))
    assert made.select("run", "model").rows() == [("one", "m"), ("two", "m")]


def test_without_columns_the_headlines_of_the_verdicts_are_shown(folders: list[Path]) -> None:
    assert table_of(folders[:1], Wanted()).columns == ["model", "AUC", "n"]


def test_a_run_without_a_headline_shows_its_first_metrics(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert table_of(folders[1:], Wanted()).to_dicts() == [{"model": "m", "AUC": "50.00", "n": 8}]
    # Of groups alone nothing stands for everything.
    parted = run("parts", cell("m", "dice", 0.5, scope="class", group="Mass"))
    monkeypatch.setattr(table, "read_run", {Path("parts"): parted}.__getitem__)
    with pytest.raises(ConfigError, match="no column"):
        table_of([Path("parts")], Wanted())


def test_groups_are_rows_and_no_spreadsheet_computes_their_names(folders: list[Path]) -> None:
    made = table_of(folders[:1], Wanted(columns=("auc",), scope="class"))
    assert made["AUC"].to_list() == ["60.00"]
    two = table_of(folders[:1], Wanted(columns=("auc",)))
    assert written(made.with_columns(group=made["model"] + "=Mass").select("group"), "csv") == "group\nm=Mass\n"
    assert "=Mass" not in written(two, "tex")


def test_every_form_is_written(folders: list[Path]) -> None:
    made = table_of(folders[:1], Wanted(columns=("auc",)))
    assert written(made, "csv").startswith("model,AUC,n\n")
    assert written(made, "md").startswith("| model | AUC | n |")
    assert "\\toprule" in written(made, "tex")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(columns=("aux",)), "metric 'aux'"),
        (Wanted(columns=("auc",), scope="clas"), "scope 'clas'"),
        (Wanted(columns=("auc",), models=("z",)), "model 'z'"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(folders: list[Path], wanted: Wanted, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        table_of(folders[:1], wanted)
    assert caught.value.expected


def test_the_best_is_bold_and_the_second_underlined(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"scope": "macro"}
    values = {"a": 0.7, "b": 0.9, "c": 0.8, "floor": 0.95, "old": 0.99}
    cells = [cell(model, "auc", value, **whole) for model, value in values.items()]
    cells += [cell("a", "dice", 0.5, **whole), cell("b", "dice", 0.4, **whole, n=7)]
    facts = [ModelFacts(label="floor", kind="baseline"), ModelFacts(label="old", seen={"d": "images"})]
    made = run("one", *cells)
    monkeypatch.setattr(table, "read_run", lambda _: replace(made, summary=replace(made.summary, models=facts)))
    shown = table_of([Path("one")], Wanted(columns=("auc", "dice"), marks=True))
    text = written(shown, "tex", caption="AUC & Dice")
    assert r"b & \textbf{90.00}" in text
    assert r"c & \underline{80.00}" in text
    assert text.count("textbf") == text.count("underline") == 1, "neither yardsticks nor other numbers of items"
    top = [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering", r"\caption{AUC \& Dice}"]
    assert text.splitlines()[:4] == top
    assert text.splitlines()[-2:] == [r"\end{tabular}", r"\end{table}"]
    assert "| b | **90.00** |" in written(shown, "md")
    plain = table_of([Path("one")], Wanted(columns=("auc", "dice")))
    assert "textbf" not in written(plain, "tex")


def test_where_less_is_better_the_least_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = (MetricSpec("loss", "Loss", unit="none", direction="lower", digits=2),)
    made = run("one", cell("a", "loss", 0.7), cell("b", "loss", 0.2))
    monkeypatch.setattr(table, "read_run", lambda _: replace(made, summary=replace(made.summary, metrics=specs)))
    shown = table_of([Path("one")], Wanted(columns=("loss",), marks=True))
    assert r"b & \textbf{0.20}" in written(shown, "tex")
