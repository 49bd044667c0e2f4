"""The command line: one function a command; what it does lies elsewhere."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from medground.commands.build import Builds
from medground.commands.export import Exports
from medground.commands.train import app as train_app
from medground.errors import LimitError, MedgroundError

app = typer.Typer(
    name="medground",
    help="Does a medical vision-language model look at the evidence?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(
    typer.Typer(cls=Builds, no_args_is_help=True, help="Make the items of a benchmark, or a dataset, in a folder."),
    name="build",
)
app.add_typer(
    typer.Typer(cls=Exports, no_args_is_help=True, help="Write items of a benchmark as training conversations."),
    name="export",
)
app.add_typer(train_app, name="train")

RunFileArg = Annotated[Path, typer.Argument(metavar="FILE", help="the run file (YAML)")]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="a.b=c", help="override a key of the run file")]
Out = Annotated[Path, typer.Option("--out", help="folder of run folders")]
Place = Annotated[str, typer.Option("--out", help="folder of run folders, or an address such as s3://bucket/runs")]
Protocol = Annotated[str | None, typer.Option("--protocol", help="a name, a YAML file or '{base: xbench, ..}'")]
Reader = Annotated[str | None, typer.Option("--reader", help="what replies mean: a name or '{name: llm, ..}'")]
Judge = Annotated[str | None, typer.Option("--judge", help="who judges replies: a name or '{name: llm, ..}'")]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON")]


class Images(StrEnum):
    """Whether a report shows pictures."""

    auto = "auto"
    yes = "yes"
    no = "no"


class TableForm(StrEnum):
    """How a table is written."""

    text = "text"
    csv = "csv"
    md = "md"
    tex = "tex"


_MARKED = (TableForm.md, TableForm.tex)


class Form(StrEnum):
    """How annotations come."""

    coco = "coco"
    voc = "voc"
    yolo = "yolo"
    labelme = "labelme"
    folders = "folders"
    csv = "csv"


@app.command()
def run(
    file: RunFileArg,
    set_: Set = None,
    out: Place = "runs",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be done and how long it takes")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="ask the first N items of each task alone: a trial"),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="remove an earlier run of this name first")] = False,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="compute every N-th chunk; `medground merge` ends it")
    ] = None,
    json: Json = False,
) -> None:
    """Run a run file, or go on with it where it stopped."""
    from medground.commands import run as running

    overrides = running.limited(file, set_ or [], limit)
    if dry_run:
        from medground import terminal

        terminal.show_estimates(running.estimates(file, overrides, out), as_json=json)
        return
    if shard is not None:
        if fresh:
            raise typer.BadParameter("a shard cannot remove what others have computed", param_hint="--fresh")
        raise typer.Exit(running.run_shard(file, overrides, out, shard, as_json=json))
    raise typer.Exit(running.run(file, overrides, out, fresh=fresh, as_json=json))


@app.command()
def merge(
    run: Annotated[str, typer.Argument(metavar="RUN", help="a run folder, or the address of a run")],
    out: Annotated[
        Path, typer.Option("--out", help="folder of run folders, for a run that comes from an address")
    ] = Path("runs"),
    json: Json = False,
) -> None:
    """Make the summary of a run from its shards; nothing is computed, and what is missing is named."""
    from medground import terminal
    from medground.commands import merge as merging

    report = merging.merge_run(run, out)
    terminal.show_run(report, as_json=json)
    raise typer.Exit(3 if report.failures else 0)


@app.command()
def validate(
    file: RunFileArg,
    set_: Set = None,
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="page to write: cases as decoded, with regions and maps on them")
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="ask models and judges behind servers elsewhere too; it may cost money")
    ] = False,
    json: Json = False,
) -> None:
    """Open three cases, check boxes, labels, checkpoint keys and grid: seconds, not hours."""
    from medground import terminal
    from medground.commands import validate as validation

    with terminal.waiting("opening datasets, models and three cases"):
        checks = validation.validate_file(file, set_ or [], sheet, ask=ask)
    terminal.show_checks(checks, as_json=json)
    raise typer.Exit(0 if all(check.ok for check in checks) else 1)


@app.command()
def score(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="a finished run folder")] = None,
    protocol: Protocol = None,
    reader: Reader = None,
    judge: Judge = None,
    cases: Annotated[Path | None, typer.Option("--cases", help="cases with regions (a manifest)")] = None,
    maps: Annotated[Path | None, typer.Option("--maps", help="their heat maps: .npz, .json or a folder")] = None,
    json: Json = False,
) -> None:
    """Read what was said otherwise (protocol, reader, judge) without a model, or score heat maps made elsewhere."""
    from medground import terminal
    from medground.commands import score as scoring

    given = {"protocol": protocol, "reader": reader, "judge": judge}
    option, text = scoring.one_of(given)
    with terminal.waiting("measuring what was kept"):
        scored = scoring.score(run, option, scoring.read_choice(text, option), cases, maps)
    terminal.show_score(scored, as_json=json)


@app.command()
def fsck(run: Annotated[Path, typer.Argument(metavar="RUN", help="a run folder")], json: Json = False) -> None:
    """Hold every file of a run against its receipt, offline; nothing is computed or changed."""
    from medground import terminal
    from medground.running.fsck import check_folder

    with terminal.waiting("hashing every file of the run"):
        audit = check_folder(run)
    terminal.show_integrity(audit, as_json=json)
    raise typer.Exit(1 if audit.damaged else 0)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="run folders")],
    out: Annotated[
        Path | None, typer.Option("--out", help="the HTML file; by default in the run, for several here")
    ] = None,
    images: Annotated[Images, typer.Option("--images", help="auto: those that may be passed on")] = Images.auto,
    no_images: Annotated[bool, typer.Option("--no-images", help="the same as --images no")] = False,
    protocol: Protocol = None,
    reader: Reader = None,
    judge: Judge = None,
) -> None:
    """Write the HTML report of one run, or of several side by side; of another reading where one is named."""
    from medground.commands import readings, score as scoring
    from medground.reporting.report import summary_of, write_report
    from medground.terminal import say, waiting

    choice = scoring.any_of({"protocol": protocol, "reader": reader, "judge": judge})
    chosen = {} if choice is None else {run: readings.session_of(run, choice)[1] for run in runs}
    with waiting("reading the run and drawing its cases"):
        written = write_report(runs, out, "no" if no_images else images.value, chosen)
    say(written)
    if (summary := summary_of(written)).is_file():
        say(f"in one page: {summary}")


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="folders of finished runs")],
    models: Annotated[str | None, typer.Option("--models", help="labels, parted by commas: only these")] = None,
    by_group: Annotated[
        bool, typer.Option("--by-group", help="show each group (finding, type), not the whole alone")
    ] = False,
    protocol: Protocol = None,
    reader: Reader = None,
    judge: Judge = None,
    json: Json = False,
) -> None:
    """Compare models, each with each, inside a run or across runs: paired tests, corrected over what is compared."""
    from medground import terminal
    from medground.commands import compare as comparing, score as scoring

    choice = scoring.any_of({"protocol": protocol, "reader": reader, "judge": judge})
    chosen = [name.strip() for name in models.split(",") if name.strip()] if models else []
    with terminal.waiting("pairing items and testing differences"):
        comparison = comparing.compare_runs(*runs, models=chosen, choice=choice)
    terminal.show_comparison(comparison, by_group=by_group, as_json=json)


@app.command()
def table(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="folders of finished runs")],
    columns: Annotated[
        str | None, typer.Option("--columns", help="metrics, parted by commas; by default what verdicts rest on")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="rows of groups: class, view, size, depth, ...")] = "",
    models: Annotated[str | None, typer.Option("--models", help="labels, parted by commas: only these")] = None,
    form: Annotated[TableForm, typer.Option("--format", help="how it is written")] = TableForm.text,
    intervals: Annotated[bool, typer.Option("--intervals/--no-intervals")] = True,
    digits: Annotated[int | None, typer.Option("--digits", min=0, max=6, help="decimals of percentages")] = None,
    marks: Annotated[
        bool, typer.Option("--marks/--no-marks", help="md and tex: the best in bold, the second underlined")
    ] = True,
    caption: Annotated[str, typer.Option("--caption", help="md and tex: what stands with the table")] = "",
) -> None:
    """Put chosen figures of runs into one table: for a paper, a spreadsheet or the terminal."""
    from medground import terminal
    from medground.commands import table as tables

    wanted = tables.Wanted(_names(columns), by, _names(models), intervals, digits, marks and form in _MARKED)
    shown = tables.table_of(runs, wanted)
    if form is TableForm.text:
        terminal.show_table(shown, "")
    else:
        terminal.say(tables.written(shown, form.value, caption), end="")


@app.command("import")
def import_(
    form: Annotated[Form, typer.Argument(metavar="FORM", help="coco, voc, yolo, labelme, folders or csv")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="the file or folder of annotations")],
    out: Annotated[Path | None, typer.Option("--out", help="the manifest; by default beside the source")] = None,
    images: Annotated[Path | None, typer.Option("--images", help="folder of the pictures")] = None,
    map_: Annotated[
        list[str] | None, typer.Option("--map", metavar="THEIRS=OURS", help="a class, or a column of a table")
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="a class that is not annotated in a picture is absent there")
    ] = False,
    patient: Annotated[
        str | None,
        typer.Option("--patient", metavar="PATTERN", help="finds the patient in a picture's name: one group"),
    ] = None,
    first_pixel: Annotated[int, typer.Option("--first-pixel", min=0, max=1, help="of Pascal VOC: 1 or 0")] = 1,
    replace: Annotated[bool, typer.Option("--replace", help="write over a manifest that is there")] = False,
    json: Json = False,
) -> None:
    """Write a manifest from annotations in a usual form."""
    from medground import terminal
    from medground.commands.import_ import import_annotations, names_of
    from medground.importing.lines import Wishes

    folder = None if images is None else images.resolve()
    wishes = Wishes(folder, names_of(map_ or []), exhaustive, patient, first_pixel)
    with terminal.waiting("reading annotations and the headers of pictures"):
        imported = import_annotations(form, source, out, wishes, replace=replace)
    terminal.show_import(imported, as_json=json)


@app.command("list")
def list_(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="models, datasets, explainers, ...")] = None,
    json: Json = False,
) -> None:
    """List the components by name."""
    from medground import terminal
    from medground.commands import catalogue

    components = catalogue.components(kind)
    terminal.show_components(components, {} if json else catalogue.summaries(components), as_json=json)


@app.command()
def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a component, a class by its path, or protocol:NAME")],
    json: Json = False,
) -> None:
    """Say what a component or a protocol is: parameters, files, licence, citation."""
    from medground import terminal
    from medground.commands import catalogue

    terminal.show_facts(catalogue.describe(name), as_json=json)


@app.command()
def doctor(
    devices: Annotated[bool, typer.Option("--devices", help="ask torch for its devices, which takes seconds")] = False,
    json: Json = False,
) -> None:
    """Say what this machine has: versions, decoders, devices, disk."""
    from medground import terminal
    from medground.commands import catalogue

    terminal.show_facts(catalogue.doctor(devices=devices), as_json=json)


@app.command()
def demo(out: Out = Path("runs")) -> None:
    """Run phantoms, baselines and the reference model: no network, no data."""
    from medground.commands import demo as demonstration

    demonstration.run_demo(out)


@app.command()
def verify(
    model: Annotated[str, typer.Argument(metavar="MODEL")],
    cases: Annotated[Path, typer.Option("--cases", help="folder of golden cases of this model")],
    json: Json = False,
) -> None:
    """Compare a model with golden cases of its published architecture; exit with 1 on any miss."""
    from medground import terminal
    from medground.verification.verify import verify as verify_model

    with terminal.waiting("building the network and comparing its outputs"):
        results = verify_model(model, cases)
    terminal.show_verification(results, as_json=json)
    raise typer.Exit(0 if all(result.passed for result in results) else 1)


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="items, as a file or the folder of a build")],
    reference: Annotated[Path | None, typer.Option("--reference", help="true captions with their papers")] = None,
    language_model: Annotated[Path | None, typer.Option("--language-model", help="folder of a causal model")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    benchmark: Annotated[str | None, typer.Option("--benchmark", help="whose items, where several can tell")] = None,
    json: Json = False,
) -> None:
    """Say what can be solved without the image: blind scorers over the items of a benchmark."""
    from medground import terminal
    from medground.commands import audit as auditing

    with terminal.waiting("fitting and asking scorers that see no picture"):
        result = auditing.audit_file(file, reference, language_model, seed=seed, benchmark=benchmark)
    terminal.show_audit(result, as_json=json)


def _names(text: str | None) -> tuple[str, ...]:
    """Return the names that commas part."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"medground {version('medground')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001  (its callback shows it)
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="say the version and stop")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="no progress, no notes: results and errors alone")
    ] = False,
) -> None:
    """Does a medical vision-language model look at the evidence?"""
    if quiet:
        from medground.running.progress import be_quiet

        be_quiet()


def main() -> None:
    """Run the command line; a user's mistake is a message without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack a letter that a name from data has
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except MedgroundError as error:
        from medground.escaping import for_terminal

        typer.echo(f"error: {for_terminal(str(error))}", err=True)
        _exit(4 if isinstance(error, LimitError) else 1)
    except _TerminatedError:
        typer.echo("stopped by a signal; the same command goes on from there", err=True)
        _exit(143)
    except KeyboardInterrupt:
        typer.echo("stopped by the keyboard; the same command goes on from there", err=True)
        _exit(130)


def _exit(code: int) -> NoReturn:
    """End the process, even where a thread of the engine hangs in a model or on a disk."""
    if any(thread.name.startswith("medground") for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


class _TerminatedError(BaseException):
    """SIGTERM, treated as Ctrl-C is: what is finished is stored before the process ends.

    No KeyboardInterrupt: the library of the command line ends the process with 130 at one.
    """


def _terminate(*_: object) -> None:
    raise _TerminatedError
