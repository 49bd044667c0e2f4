"""From a run file to a benchmark that is ready to run: the one place where components, benchmark and engine meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from medground import registry
from medground.benchmarks.base import Benchmark, Entry, Setting
from medground.config import Component, RunFile, parse_components, parse_run_file, read_run_file
from medground.errors import ConfigError, RunError
from medground.running.estimate import TaskEstimate, estimate
from medground.running.options import Options
from medground.running.progress import Progress, progress_on
from medground.running.run import RunReport, execute


@dataclass(frozen=True)
class Session:
    """A resolved run.

    Attributes:
        run: the run file with absolute paths, as written to ``run.yaml``.
        benchmark: bound to its models and datasets; nothing is loaded yet.
        models: one entry a model.
        datasets: one entry a dataset.
    """

    run: RunFile
    benchmark: Benchmark
    models: Sequence[Entry]
    datasets: Sequence[Entry]


def run_file(file: Path, overrides: Sequence[str] = (), out: Path = Path("runs"), *, fresh: bool = False) -> RunReport:
    """Run a run file in ``out/<name>``, or go on with it; what ``medground run`` does.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    run = read_run_file(file, overrides)
    return run_session(assemble(run, file.resolve().parent), out / run.name, fresh=fresh, progress=progress_on())


def run_session(session: Session, folder: Path, *, fresh: bool = False, progress: Progress | None = None) -> RunReport:
    """Carry out an assembled run in a folder."""
    progress = progress or Progress()
    for note in session.benchmark.notes():
        progress.say(note)
    return execute(
        session.benchmark,
        folder,
        config=session.run.model_dump(mode="json", exclude_none=True),
        options=engine_options(session.run),
        fresh=fresh,
        progress=progress,
    )


def estimate_file(file: Path, overrides: Sequence[str] = (), out: Path = Path("runs")) -> list[TaskEstimate]:
    """Return what a run would cost: every unfinished task is opened and its first batch is timed."""
    run = read_run_file(file, overrides)
    session = assemble(run, file.resolve().parent)
    return estimate(session.benchmark, out / run.name, options=engine_options(run), measure=True)


def engine_options(run: RunFile) -> Options:
    """Return the options of the local engine."""
    return Options(**run.engine.model_dump(exclude={"name", "batch_size"}))


def read_session(folder: Path) -> Session:
    """Assemble the run that a run folder holds.

    Raises:
        RunError: the folder holds no run.
    """
    if not (folder / "run.yaml").is_file():
        raise RunError("this is not a run folder", where=folder, expected="a run.yaml", fix="medground run FILE")
    return assemble(read_run_file(folder / "run.yaml"))


def assemble(run: RunFile, base: Path | None = None) -> Session:
    """Check every component of a run file and bind them; no weights, tables or images are read.

    Args:
        run: the run file.
        base: folder that relative paths start from (the run file's).

    Raises:
        RegistryError: a component does not exist.
        ConfigError: a parameter is wrong.
    """
    cls: Any = registry.load("benchmark", run.benchmark.name)
    given = dict(run.benchmark.parameters)
    lists = {kind: given.pop(kind) for kind in _KINDS if kind in getattr(cls, "takes", ()) and kind in given}
    checked = registry.check(cls, given, where="benchmark", base=base)
    model_entries, model_specs = _models(run, base)
    entries: dict[str, list[Entry]] = {}
    spec = {"name": run.benchmark.name} | _written_out(cls, checked)
    for kind, listed in lists.items():
        where = f"benchmark.{kind}"
        entries[kind], spec[kind] = _entries(_KINDS[kind], parse_components(listed, where=where), where, base)
    benchmark = cls(**checked)
    benchmark.bind(
        Setting(model_entries, seed=run.seed, batch_size=run.engine.batch_size, prompts=run.prompts, **entries)
    )
    resolved = run.model_dump(mode="json") | {"benchmark": spec, "models": model_specs}
    return Session(parse_run_file(resolved), benchmark, model_entries, entries.get("datasets", []))


_KINDS: Mapping[str, registry.Kind] = {"datasets": "dataset", "explainers": "explainer"}
"""Lists of components in a benchmark's mapping -> what they hold."""


def _models(run: RunFile, base: Path | None) -> tuple[list[Entry], list[dict[str, Any]]]:
    takes_prompts = [
        "prompts" in {p.name for p in registry.parameters(registry.load("model", m.name))} for m in run.models
    ]
    if run.prompts and not any(takes_prompts):
        raise ConfigError("the run file gives prompts, and none of its models takes any", where="prompts")
    shared = [{"prompts": run.prompts} if run.prompts and takes else {} for takes in takes_prompts]
    return _entries("model", run.models, "models", base, shared=shared)


def _entries(
    kind: registry.Kind,
    components: Sequence[Component],
    where: str,
    base: Path | None,
    shared: Sequence[Mapping[str, Any]] | None = None,
) -> tuple[list[Entry], list[dict[str, Any]]]:
    """Check components; return their entries, and what the resolved run file says of them."""
    entries, specs = [], []
    for i, (component, label) in enumerate(zip(components, unique_labels(components, where), strict=True)):
        cls: Any = registry.load(kind, component.name)
        place = f"{where}.{i} ({component.name})"
        checked = registry.check(cls, component.parameters, where=place, base=base)
        extra = dict(shared[i]) if shared else {}
        entries.append(Entry(label, component.name, getattr(cls, "info", None), partial(cls, **(extra | checked))))
        specs.append({"name": component.name, "label": label} | _written_out(cls, checked))
    return entries, specs


def unique_labels(components: Sequence[Component], where: str) -> list[str]:
    """Return how tables and folders call components: their labels, or names made unique by a number.

    Raises:
        ConfigError: two of them are still alike, upper and lower case taken as one.
    """
    wanted = [c.label or c.name.rpartition(":")[2] for c in components]
    labels = [w if wanted.count(w) == 1 else f"{w}-{wanted[: i + 1].count(w)}" for i, w in enumerate(wanted)]
    folded = [label.casefold() for label in labels]
    for label in labels:
        if folded.count(label.casefold()) > 1:
            raise ConfigError("two components have one label", where=where, got=label, fix="label: another name")
    return labels


def _written_out(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as the resolved run file shows them: defaults too, so that it says what was done."""
    every = {p.name: p.default for p in registry.parameters(cls) if not p.required} | dict(given)
    return {name: _plain(value) for name, value in every.items() if value is not None}


def _plain(value: Any) -> Any:
    """Make parameters fit for YAML: paths as text, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
