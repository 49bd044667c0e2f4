"""Several benchmarks for the same models in one run file: every model is asked what it can, and the rest is said.

::

    name: demo
    benchmarks:
      - {name: xbench, datasets: [{name: phantom}]}
      - {name: gridvqa_x, models: [rule, counter]}
    models: [...]

A suite is a folder with a run folder a benchmark, and ``suite.json``, which says what could not be asked of whom.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medground import registry
from medground.benchmarks.base import Role
from medground.benchmarks.limits import Checked, check_limits, read_limits
from medground.config import RunFile, parse_components, parse_run_file, read_mapping
from medground.errors import ConfigError, RunError, did_you_mean
from medground.models.capabilities import capabilities_of
from medground.running.progress import Progress
from medground.running.run import RunReport
from medground.session import assemble, run_session, unique_labels
from medground.storage.files import write_atomic

FORMAT = 1
FILE = "suite.json"
KEY = "benchmarks"


@dataclass(frozen=True)
class SuitePart:
    """One benchmark of a suite.

    Attributes:
        label: its folder in the suite's.
        run: its own run file.
        left_out: label of a model -> the capabilities of which it has none.
    """

    label: str
    run: RunFile
    left_out: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Suite:
    """A resolved suite; ``unasked``: benchmarks that none of the models can be asked."""

    name: str
    parts: tuple[SuitePart, ...]
    unasked: tuple[str, ...]
    base: Path


@dataclass(frozen=True)
class SuiteReport:
    """A finished suite: its folder, and (label, what the run reports) of every part."""

    folder: Path
    parts: tuple[tuple[str, RunReport], ...]

    def limits(self, stated: Sequence[Mapping[str, Any]]) -> list[Checked]:
        """Hold limits against every summary of the suite."""
        return check_limits(read_limits(stated), [report.summary for _, report in self.parts])


def is_suite(file: Path) -> bool:
    """Whether a run file lists several benchmarks."""
    return file.is_file() and KEY in read_mapping(file)


def read_suite(file: Path, overrides: Sequence[str] = ()) -> Suite:
    """Read a suite's run file.

    Raises:
        ConfigError: it is no suite, or a part of it is not right.
    """
    data = read_mapping(file, overrides)
    return suite_of(data, file.resolve().parent)


def suite_of(data: Mapping[str, Any], base: Path) -> Suite:
    """Return the suite that plain data describes; relative paths start from ``base``.

    Raises:
        ConfigError: no benchmark is listed, one beside them stands under ``benchmark``, or a label is not known.
    """
    listed = parse_components(data.get(KEY), where=KEY)
    if not listed or "benchmark" in data:
        raise ConfigError("a suite lists its benchmarks in one place", where=KEY, expected="benchmarks: [{name: ..}]")
    models = parse_components(data.get("models"), where="models")
    labels = unique_labels(models, "models")
    named = dict(zip(labels, models, strict=True))
    shared = {key: value for key, value in data.items() if key not in {KEY, "models", "name", "prompts"}}
    parts: list[SuitePart] = []
    unasked: list[str] = []
    for component, label in zip(listed, unique_labels(listed, KEY), strict=True):
        own = component.model_dump(exclude_none=True, exclude={"label"})
        wanted, roles = own.pop("models", None), own.pop("roles", None)
        chosen = _chosen(labels, wanted, f"{KEY}.{label}.models")
        asked, left_out = _able(registry.load("benchmark", component.name), {m: named[m].name for m in chosen})
        if not asked:
            unasked.append(label)
            continue
        given = {"name": f"{data.get('name', 'suite')}-{label}", "benchmark": own, **shared}
        given["models"] = [named[m].model_dump(exclude_none=True) | {"label": m} for m in asked]
        given |= {"roles": roles} if roles else {}
        given |= {"prompts": data["prompts"]} if data.get("prompts") and _takes_prompts(named, asked) else {}
        parts.append(SuitePart(label, parse_run_file(given, where=f"{KEY}.{label}"), left_out))
    if not parts:
        raise ConfigError("no model of the suite can be asked any of its benchmarks", where="models")
    return Suite(_name(data), tuple(parts), tuple(unasked), base)


def run_suite(suite: Suite, out: Path, *, fresh: bool = False, progress: Progress | None = None) -> SuiteReport:
    """Run every part of a suite in ``out/<name>/<label>``, or go on where it stopped.

    Raises:
        MedgroundError: whatever a user can mend; finished parts stay, and the same command goes on.
    """
    progress = progress or Progress()
    folder = out / suite.name
    _write(suite, folder)
    for label in suite.unasked:
        progress.say(f"{label} is asked of nobody: none of the models can do what it needs")
    reports: list[tuple[str, RunReport]] = []
    for part in suite.parts:
        progress.say(f"{part.label}: {', '.join(model.label or model.name for model in part.run.models)}")
        for model, lacks in part.left_out.items():
            progress.say(f"{part.label} is not asked of {model}: it has no {' or '.join(lacks)}")
        session = assemble(part.run, suite.base, alone=False)
        reports.append((part.label, run_session(session, folder / part.label, fresh=fresh, progress=progress)))
    return SuiteReport(folder, tuple(reports))


def parts_of(folder: Path) -> dict[Path, dict[str, tuple[str, ...]]]:
    """Return run folder -> (model -> capabilities that it lacks) of a suite's folder; empty where it is none.

    Raises:
        RunError: ``suite.json`` is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}, not {FORMAT}")
        entries = {folder / _plain(part["label"]): part["left_out"] for part in content["parts"]}
        return {run: {m: tuple(map(str, lacks)) for m, lacks in left.items()} for run, left in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "run the suite again: it is rewritten"
        raise RunError("the suite's list of parts is damaged", where=path, got=error, fix=fix) from error


def _plain(label: str) -> str:
    if Path(label).name != label:
        raise ValueError(f"{label!r} is no name of a folder")
    return label


def _write(suite: Suite, folder: Path) -> None:
    parts = [{"label": p.label, "left_out": {m: list(lacks) for m, lacks in p.left_out.items()}} for p in suite.parts]
    content = {"format": FORMAT, "name": suite.name, "parts": parts, "unasked": list(suite.unasked)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / FILE, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise RunError("the suite's folder cannot be written", where=folder, got=error.strerror or error) from error


def _name(data: Mapping[str, Any]) -> str:
    if not isinstance(data.get("name"), str):
        raise ConfigError("a suite has a name", where="name", expected="letters, digits, '.', '_' and '-'")
    return str(data["name"])


def _chosen(labels: Sequence[str], wanted: Any, where: str) -> list[str]:
    if wanted is None:
        return list(labels)
    if not isinstance(wanted, list):
        raise ConfigError("the models of a benchmark are a list of labels", where=where, got=wanted)
    for label in wanted:
        if label not in labels:
            raise ConfigError(
                f"the suite has no model {label!r}",
                where=where,
                expected=", ".join(labels),
                fix=did_you_mean(str(label), labels),
            )
    return [str(label) for label in wanted]


def _able(benchmark: Any, models: Mapping[str, str]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Part models into those that have one of the capabilities that the role asks for, and the others."""
    role: Role = benchmark.roles["models"]
    able = {label: capabilities_of(registry.load("model", name)) for label, name in models.items()}
    asked = [label for label, own in able.items() if not role.capability or own & set(role.capability)]
    return asked, {label: tuple(role.capability) for label in models if label not in asked}


def _takes_prompts(named: Mapping[str, Any], asked: Sequence[str]) -> bool:
    return any("prompts" in set(_parameters(named[label].name)) for label in asked)


def _parameters(model: str) -> Iterator[str]:
    for parameter in registry.parameters(registry.load("model", model)):
        yield parameter.name
