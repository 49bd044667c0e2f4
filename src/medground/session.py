"""From a run file to a benchmark that is ready to run: the one place where components, benchmark and engine meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from medground import registry
from medground.benchmarks.base import Benchmark, Entry, Role, Setting, forget_shared
from medground.benchmarks.first import Shortened
from medground.benchmarks.repeats import Repeating
from medground.config import Component, RunFile, parse_components, parse_run_file, read_run_file
from medground.datasets.plausible import doubts, turned
from medground.declared import read_declared, refuse_idle
from medground.errors import ConfigError, DatasetError, RunError, did_you_mean
from medground.identity import component_identity
from medground.imaging.reading import read_radiograph
from medground.models.chat.remote.upload import refuse_upload
from medground.models.controls.repeated import members_of
from medground.running.estimate import TaskEstimate, estimate
from medground.running.options import Options
from medground.running.progress import Progress, progress_on
from medground.running.run import RunReport, execute
from medground.running.shard_session import ShardReport, execute_shard
from medground.running.shards import Shard
from medground.shard_replies import replies_of_shard
from medground.storage import open_storage
from medground.storage.opening import joined

_REBUILD = "medground.session:benchmark_of"


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


def run_file(
    file: Path, overrides: Sequence[str] = (), out: Path | str = Path("runs"), *, fresh: bool = False
) -> RunReport:
    """Run a run file in ``out/<name>``, or go on with it; what ``medground run`` does.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    run = read_run_file(file, overrides)
    place = joined(out, run.name)
    return run_session(assemble(run, file.resolve().parent), place, fresh=fresh, progress=progress_on())


def run_shard(file: Path, shard: Shard, overrides: Sequence[str] = (), out: Path | str = Path("runs")) -> ShardReport:
    """Compute one shard of a run file in ``out/<name>``; what ``medground run --shard`` does.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    run = read_run_file(file, overrides)
    session, place, progress = assemble(run, file.resolve().parent), joined(out, run.name), progress_on()
    for note in [*session.benchmark.notes(), *plausible(session)]:
        progress.say(note)
    with replies_of_shard(open_storage(place), shard):
        return execute_shard(
            session.benchmark,
            place,
            shard,
            config=session.run.model_dump(mode="json", exclude_none=True),
            options=engine_options(session.run),
            rebuild=_REBUILD,
            progress=progress,
        )


def run_session(
    session: Session,
    folder: Path | str,
    *,
    fresh: bool = False,
    own: bool = True,
    merging: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Carry out an assembled run in a folder or behind an address.

    Args:
        session: the run.
        folder: where.
        fresh: remove an earlier run first.
        own: whether this is the run file's own reading; else another reading of the run that is there.
        merging: whether shards have computed everything.
        progress: what is told about it.
    """
    progress = progress or Progress()
    for note in session.benchmark.notes():
        progress.say(note)

    def look() -> None:
        for line in plausible(session):
            progress.say(line)

    return execute(
        session.benchmark,
        folder,
        config=session.run.model_dump(mode="json", exclude_none=True),
        options=engine_options(session.run),
        fresh=fresh,
        own=own,
        merging=merging,
        rebuild=_REBUILD,
        progress=progress,
        before=look,
    )


def plausible(session: Session) -> list[str]:
    """Return in a line each what makes no sense in the data.

    Raises:
        DatasetError: something cannot be right, and the run file does not accept it.
    """
    lines: list[str] = []
    cls = registry.load("benchmark", session.run.benchmark.name)
    read = registry.door(cls, "pictures")(session.benchmark) if "pictures" in cls.doors else read_radiograph
    for entry in session.datasets:
        cases = entry.shared().cases()
        doubtful = [*turned(cases), *doubts(cases, read)]
        certain = [doubt for doubt in doubtful if doubt.certain]
        if certain and session.run.implausible == "refuse":
            raise DatasetError(
                f"{entry.label} cannot be right: {certain[0]}",
                where=entry.label,
                got="; ".join(map(str, certain[1:3])) or None,
                fix="medground validate FILE lists it all; `implausible: accept` in the run file runs all the same",
            )
        lines += [f"{entry.label}: {doubt}" for doubt in doubtful]
    return lines


def estimate_file(file: Path, overrides: Sequence[str] = (), out: Path | str = Path("runs")) -> list[TaskEstimate]:
    """Return what a run would cost: every unfinished task is opened and its first batch is timed."""
    run = read_run_file(file, overrides)
    return estimate_run(assemble(run, file.resolve().parent), joined(out, run.name))


def estimate_run(session: Session, folder: Path | str) -> list[TaskEstimate]:
    """Return what an assembled run would cost in a folder."""
    return estimate(session.benchmark, folder, options=engine_options(session.run), measure=True)


def engine_options(run: RunFile) -> Options:
    """Return the options of the engine."""
    given = run.engine.model_dump(exclude={"name", "batch_size", "devices", "chunk"})
    chunk = None if run.engine.chunk == "auto" else run.engine.chunk
    return Options(chunk=chunk, engine=run.engine.name, devices=tuple(map(str, run.engine.devices)), **given)


def benchmark_of(run: Mapping[str, Any]) -> Benchmark:
    """Return the benchmark of a resolved run file, as workers in other processes make it."""
    return assemble(parse_run_file(run)).benchmark


def read_session(folder: Path, reading: Mapping[str, Any] | None = None) -> Session:
    """Assemble the run that a run folder holds.

    Args:
        folder: the run folder.
        reading: ``protocol``, ``reader`` or ``judge`` -> the choice that takes the place of the run file's.

    Raises:
        RunError: the folder holds no run.
        ConfigError: its benchmark cannot be read so.
    """
    if not (folder / "run.yaml").is_file():
        raise RunError("this is not a run folder", where=folder, expected="a run.yaml", fix="medground run FILE")
    run = read_run_file(folder / "run.yaml")
    for option, choice in (reading or {}).items():
        run = _read_otherwise(run, option, choice)
    return assemble(run)


def _read_otherwise(run: RunFile, option: str, choice: Any) -> RunFile:
    """Return a run file with another protocol, reader or judge."""
    cls: Any = registry.load("benchmark", run.benchmark.name)
    if option not in cls.readings:
        raise ConfigError(
            f"{run.benchmark.name} has no {option} to choose",
            where=f"--{option}",
            expected=", ".join(f"--{name}" for name in cls.readings) or "it is read in one way alone",
        )
    place = cls.readings[option]
    if isinstance(choice, Mapping) and f"{place}s" in cls.roles:
        place = f"{place}s"  # a component with parts of its own plays a role
    data = run.model_dump(mode="json", exclude_none=True)
    if place in cls.roles:
        data.setdefault("roles", {})[place] = {"name": choice} if isinstance(choice, str) else choice
    else:
        data["benchmark"][place] = choice
    return parse_run_file(data)


def assemble(run: RunFile, base: Path | None = None, *, alone: bool = True) -> Session:
    """Check every component of a run file and bind them; no weights, tables or images are read.

    Args:
        run: the run file.
        base: folder that relative paths start from (the run file's).
        alone: whether the options of the engine are this run's own; those of a suite serve all its parts.

    Raises:
        RegistryError: a component does not exist.
        ConfigError: a parameter is wrong.
    """
    forget_shared()
    cls: Any = registry.load("benchmark", run.benchmark.name)
    given = dict(run.benchmark.parameters)
    lists = {role: given.pop(role) for role in _LISTED if role in cls.roles and role in given}
    checked = registry.check(cls, given, where="benchmark", base=base)
    model_entries, model_specs = _models(run, base)
    model_entries, further, firsts = _members(model_entries)
    entries: dict[str, list[Entry]] = {}
    spec = {"name": run.benchmark.name} | _written_out(cls, checked)
    for role, listed in lists.items():
        where = f"benchmark.{role}"
        kind = cls.roles[role].kind
        entries[role], spec[role] = _entries(kind, parse_components(listed, where=where), where, base)
    roles, role_specs = _roles(cls.roles, run, base)
    benchmark = cls(**checked)
    setting = Setting(
        model_entries, seed=run.seed, batch_size=run.engine.batch_size, prompts=run.prompts, roles=roles, **entries
    )
    refuse_idle(cls, model_entries)
    _refuse_wrong_numbers(cls.roles, {"models": model_entries, **entries, **roles})
    if alone:
        _refuse_unused_batch_size(
            run.engine.batch_size, [*model_entries, *(e for some in roles.values() for e in some)]
        )
    benchmark.bind(setting)
    shown = [entry for role, played in roles.items() if cls.roles[role].sees for entry in played]
    if further:
        benchmark = cast("Benchmark", Repeating(benchmark, registry.door(cls, "compare"), further, firsts))
    if run.first is not None:
        benchmark = cast("Benchmark", Shortened(benchmark, run.first))
    refuse_upload([*model_entries, *shown], benchmark.withheld)
    resolved = run.model_dump(mode="json") | {"benchmark": spec, "models": model_specs, "roles": role_specs}
    return Session(parse_run_file(resolved), benchmark, model_entries, entries.get("datasets", []))


def _refuse_unused_batch_size(batch_size: int | None, asked: Sequence[Entry]) -> None:
    if batch_size is not None and all(_limits_itself(entry) for entry in asked):
        raise ConfigError(
            "a batch size has no effect: whoever is asked takes requests as they come",
            where="engine.batch_size",
            expected="a model that runs on this machine",
            got=", ".join(entry.label for entry in asked),
            fix="remove it; `concurrency` of a model says how many requests are under way at once",
        )


def _limits_itself(player: Entry | registry.Part) -> bool:
    """Return whether a component is given whole rounds of requests, itself or by the one inside it."""
    inner = player.parameters.get("of")
    return getattr(player.cls, "concurrent", False) or (isinstance(inner, registry.Part) and _limits_itself(inner))


def _members(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry], dict[str, str]]:
    """Part repeated models: the first member of each in its place, the further ones, and how the first is called."""
    first, further, called = [], [], {}
    for entry in entries:
        main, *others = members_of(entry.cls, entry.parameters)
        first.append(replace(entry, cls=main.cls, parameters=main.parameters))
        if others:
            called[entry.label] = main.name
        further += [
            Entry(
                f"{entry.label}, {m.name}", entry.name, m.cls, m.parameters, None, entry.declared, entry.label, m.name
            )
            for m in others
        ]
    return first, further, called


_LISTED = ("datasets", "explainers")
"""Roles that stand in the benchmark's own mapping; ``models`` stands at the top, every other below ``roles:``."""


def _roles(
    known: Mapping[str, Role], run: RunFile, base: Path | None
) -> tuple[dict[str, list[Entry]], dict[str, list[dict[str, Any]]]]:
    """Return the entries of the roles below ``roles:``, defaults where nobody is named, and their specifications."""
    free = [name for name in known if name != "models" and name not in _LISTED]
    strange = [name for name in run.roles if name not in free]
    if strange:
        raise ConfigError(
            f"{run.benchmark.name} has no role {strange[0]!r}",
            where="roles",
            expected=", ".join(free) or "no roles",
            fix=did_you_mean(strange[0], free),
        )
    entries: dict[str, list[Entry]] = {}
    specs: dict[str, list[dict[str, Any]]] = {}
    for name in free:
        default = known[name].default
        listed = run.roles.get(name) or ([Component.model_validate(default)] if default else [])
        entries[name], specs[name] = _entries(known[name].kind, listed, f"roles.{name}", base)
    return entries, {name: listed for name, listed in specs.items() if listed}


def _refuse_wrong_numbers(roles: Mapping[str, Role], entries: Mapping[str, Sequence[Entry]]) -> None:
    for name, role in roles.items():
        given = len(entries.get(name, ()))
        if given < role.least or (role.most is not None and given > role.most):
            most = "" if role.most is None else f" and at most {role.most}"
            raise ConfigError(
                f"the run file names {given} {name}", where=name, expected=f"at least {role.least}{most}", got=given
            )


def _models(run: RunFile, base: Path | None) -> tuple[list[Entry], list[dict[str, Any]]]:
    takes_prompts = [
        "prompts" in {p.name for p in registry.parameters(registry.load("model", m.name))} for m in run.models
    ]
    if run.prompts and not any(takes_prompts):
        raise ConfigError("the run file gives prompts, and none of its models takes any", where="prompts")
    shared = [{"prompts": run.prompts} if run.prompts and takes else {} for takes in takes_prompts]
    known = [{p.name for p in registry.parameters(registry.load("model", m.name))} for m in run.models]
    plain = [
        Component(name=m.name, label=m.label, **m.given(names)) for m, names in zip(run.models, known, strict=True)
    ]
    entries, specs = _entries("model", plain, "models", base, shared=shared)
    declarations = [m.declared(names) for m, names in zip(run.models, known, strict=True)]
    places = [f"models.{i} ({m.name})" for i, m in enumerate(run.models)]
    read = [read_declared(one, base, place) for one, place in zip(declarations, places, strict=True)]
    declared = [declared for declared, _ in read]
    apart = [bool(one.get("isolate")) and one["isolate"] for one in declarations]
    entries = [replace(e, declared=d, isolate=i) for e, d, i in zip(entries, declared, apart, strict=True)]
    own = {entry.label: entry.declared for entry in entries}
    # A blind twin has seen, is kept from and calls by name what the model has whose it is; its kind stays its own.
    entries = [
        replace(entry, declared=replace(own[entry.twin_of], kind=None))
        if entry.twin_of and not entry.declared and own[entry.twin_of]
        else entry
        for entry in entries
    ]
    return entries, [spec | resolved for spec, (_, resolved) in zip(specs, read, strict=True)]


def _entries(
    kind: str,
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
        entries.append(Entry(label, component.name, cls, extra | checked))
        specs.append({"name": component.name, "label": label} | _written_out(cls, checked))
    return [_with_twin(entry, entries) for entry in entries], specs


def _with_twin(entry: Entry, entries: Sequence[Entry]) -> Entry:
    """Note of a blind twin whose it is, where that model is in the run too."""
    of = entry.parameters.get("of")
    if not isinstance(of, registry.Part):
        return entry
    same = [e.label for e in entries if e.cls is of.cls and e.identity() == component_identity(of.cls, of.parameters)]
    return replace(entry, twin_of=same[0]) if same else entry


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
    """Make parameters fit for YAML: paths as text, tuples as lists, parts as they are written."""
    if isinstance(value, registry.Part):
        return {"name": value.name} | _written_out(value.cls, value.parameters)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
