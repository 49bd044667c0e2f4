"""The run file: what to run, on what, how. Every key is typed; an unknown one is an error that names the nearest."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from medground.benchmarks.limits import read_limits
from medground.errors import ConfigError, did_you_mean


class Component(BaseModel):
    """A component by name; every further key is a parameter of its constructor."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(description="a name from `medground list`, or package.module:Class")
    label: str | None = Field(None, description="how tables call it; by default its name")

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the component's constructor."""
        return dict(self.__pydantic_extra__ or {})


class ModelComponent(Component):
    """A model, and what is known of it that its files do not tell."""

    kind: Literal["zero-shot", "supervised", "baseline", "unknown"] | None = Field(
        None, description="what it was trained on: `unknown` where neither its class nor you say"
    )
    seen: dict[str, str] | None = Field(
        None, description="dataset -> what of it the model has seen in training (`images`, `labels`, `boxes`)"
    )
    exclude_patients: str | dict[str, str] | None = Field(
        None, description="a file of patients to leave out, one a line or in a column `patient_id`; or one a dataset"
    )
    findings: dict[str, str] | None = Field(None, description="finding of a dataset -> what the model calls it")
    isolate: bool | float | None = Field(
        None,
        description="work in a process of its own, which is ended and started again where it crashes; a number: also "
        "where one call takes more seconds",
    )

    def given(self, parameters: Collection[str]) -> dict[str, Any]:
        """Return the parameters of a constructor; a declaration that it takes itself is one of them."""
        own = {name: getattr(self, name) for name in DECLARATIONS if name in parameters}
        return self.parameters | {name: value for name, value in own.items() if value is not None}

    def declared(self, parameters: Collection[str]) -> dict[str, Any]:
        """Return what is declared here rather than handed to a constructor with these parameters."""
        own = {name: getattr(self, name) for name in DECLARATIONS if name not in parameters}
        return {name: value for name, value in own.items() if value is not None}


DECLARATIONS = ("kind", "seen", "exclude_patients", "findings", "isolate")


class EngineOptions(BaseModel):
    """How the work is carried out.

    Nothing here changes a result, except ``batch_size`` and ``torch_threads`` in the last bits of floating-point sums;
    both are part of the record.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["local", "processes", "ray"] = Field(
        "local",
        description="`local`: threads of this process; `processes`: workers of this machine, one a device; "
        "`ray`: workers of a cluster",
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        description="requests a call of a local model; by default 8, or as many as a benchmark says",
    )
    chunk: int | Literal["auto"] = Field(
        "auto",
        description="items a file of rows: at most this much is repeated after a kill; `auto`: 64, or as many as make "
        "800 chunks of a task",
    )
    workers: int | None = Field(
        None,
        ge=0,
        description="threads that decode and measure while the model runs; 0: none; by default one a core. "
        "Of `processes` and `ray`: how many workers",
    )
    threads: int | None = Field(
        None, ge=0, description="of `processes` and `ray`: threads of a worker; by default its share of the cores"
    )
    devices: tuple[str | int, ...] = Field(
        (), description="of `processes`: one a worker, `cpu` or the number of a GPU, the only one that it sees"
    )
    address: str = Field("auto", description="of `ray`: the cluster; `auto`: this machine's, or one is started here")
    gpus_per_worker: float = Field(0.0, ge=0, description="of `ray`: GPUs a worker, or a share of one")
    memory_items: int | None = Field(
        None, ge=1, description="decoded items in memory at once; by default three batches and one a worker"
    )
    torch_threads: int | None = Field(
        None, ge=1, description="threads of torch on the CPU; by default those the run began with, or one a core"
    )
    on_error: Literal["stop", "skip"] = Field("stop", description="what to do with a case that cannot be read")
    retry_failed: bool = Field(False, description="try again the cases that an earlier session could not read")
    max_failures: int | float | None = Field(
        None, ge=0, description="cases that may fail before the run ends: a count, or a share below 1 (`1%`)"
    )
    deadline: float | None = Field(None, gt=0, description="seconds that one session of the run may take")
    budget_tokens: int | None = Field(
        None, gt=0, description="most tokens of models behind servers, of all together and over all sessions of the run"
    )
    budget_money: float | None = Field(
        None, gt=0, description="most money for them, alike: each names its `prices`, all in one currency"
    )

    @model_validator(mode="after")
    def _belongs_to_the_engine(self) -> EngineOptions:
        owners = {"threads": ("processes", "ray"), "devices": ("processes",)}
        owners |= {"address": ("ray",), "gpus_per_worker": ("ray",)}
        owners |= {"budget_tokens": ("local",), "budget_money": ("local",)}  # processes cannot share one
        for key, names in owners.items():
            if self.name not in names and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key} belongs to the engine {' or '.join(names)}, and this is {self.name}")
        return self

    @field_validator("chunk")
    @classmethod
    def _at_least_one(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("a chunk holds at least one item")
        return value

    @field_validator("max_failures", mode="before")
    @classmethod
    def _per_cent(cls, value: Any) -> Any:
        if isinstance(value, str) and re.fullmatch(r"\s*\d+(\.\d+)?\s*%\s*", value):
            return float(value.strip().rstrip("%")) / 100
        return value


class RunFile(BaseModel):
    """A run file, resolved."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="the run's name, and its folder below runs/")
    benchmark: Component = Field(description="the benchmark and its parameters")
    models: tuple[ModelComponent, ...] = Field(min_length=1, description="the models, each with its parameters")
    prompts: dict[str, str] = Field(
        default_factory=dict, description="finding -> prompt, handed to every model that takes `prompts`"
    )
    roles: dict[str, tuple[Component, ...]] = Field(
        default_factory=dict,
        description="who else takes part (`judge`, ...): a component or a list",
    )
    engine: EngineOptions = Field(default_factory=EngineOptions, description="how the work is carried out")
    limits: tuple[dict[str, Any], ...] = Field(
        (), description="limits that the figures are held against: metric or question, and a bound"
    )
    implausible: Literal["refuse", "accept"] = Field(
        "refuse", description="what to do with data that cannot make sense, as `medground validate` lists it"
    )
    first: int | None = Field(
        None, ge=1, description="only so many items of each task, the first ones: a trial, as `--limit N` makes it"
    )
    seed: int = Field(0, ge=0, description="seed of everything random: bootstrap, folds, random baselines")

    @field_validator("roles", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: [one] if isinstance(one, (dict, Component)) else one for name, one in value.items()}

    @field_validator("limits")
    @classmethod
    def _are_limits(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        read_limits(value)
        return value

    @field_validator("name")
    @classmethod
    def _is_a_folder_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
            raise ValueError("a name of letters, digits, '.', '_' and '-' that starts with a letter or digit")
        return value


def read_run_file(path: Path, overrides: Sequence[str] = ()) -> RunFile:
    """Read a YAML run file and apply ``a.b=c`` overrides.

    Raises:
        ConfigError: the file is absent, not YAML, or has a key or value that is not right.
    """
    return parse_run_file(read_mapping(path, overrides), where=str(path))


def read_mapping(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the plain data of a run file with ``a.b=c`` overrides applied; its keys are not checked.

    Raises:
        ConfigError: the file is absent or no YAML mapping, or an override leads nowhere.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the run file cannot be read", where=path, got=str(error)) from error
    data = read_yaml(text, "the run file", where=path)
    if not isinstance(data, dict):
        raise ConfigError("the run file is not a mapping", where=path, expected="name:, benchmark:, models:")
    for override in overrides:
        _set(data, override)
    return data


def read_yaml(text: str, what: str, *, where: object) -> Any:
    """Return the plain data of a YAML text; ``what`` is how a message calls it.

    Raises:
        ConfigError: it is not YAML, a key stands twice in one mapping, or it is larger than any run file, anchors
            written out.
    """
    if len(text) > MOST_TEXT:
        raise ConfigError(f"{what} is too long", where=where, expected=f"at most {MOST_TEXT:,} characters")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if (size := _written_out(node, {})) > MOST_VALUES:
            raise yaml.YAMLError(f"{size:,} values once its anchors are written out, of at most {MOST_VALUES:,}")
        return loader.construct_document(node)
    # Beside its own errors, the parser lets through those of Python for dates, long numbers and deep nesting.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{what} is not YAML", where=where, got=str(error)) from error


MOST_TEXT = 1 << 20
MOST_VALUES = 50_000
"""A run file of a hundred models has some thousand values; anchors in anchors can stand for billions."""


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for once every alias is written out.

    Raises:
        YAMLError: it holds itself.
    """
    if id(node) in known:
        if known[id(node)] == 0:
            raise yaml.YAMLError("an anchor holds itself")
        return known[id(node)]
    known[id(node)] = 0
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        inner = node.value
    elif isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    known[id(node)] = 1 + sum(_written_out(part, known) for part in inner)
    return known[id(node)]


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping: the later one would silently win."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        met: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and met.setdefault(key.value, key) is not key:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark)
        return node


def parse_run_file(data: Mapping[str, Any], *, where: str = "run file") -> RunFile:
    """Return a checked run file from plain data.

    Raises:
        ConfigError: a key or value is not right.
    """
    try:
        return RunFile.model_validate(data)
    except ValidationError as error:
        raise _explained(error, where) from error


def parse_components(given: Any, *, where: str) -> list[Component]:
    """Return checked components from plain data.

    Raises:
        ConfigError: it is no list of components.
    """
    if not isinstance(given, list) or not all(isinstance(g, dict) and isinstance(g.get("name"), str) for g in given):
        raise ConfigError(f"{where} is not a list of components", where=where, expected="[{name: ..., ...}]", got=given)
    try:
        return [Component.model_validate(g) for g in given]
    except ValidationError as error:
        raise _explained(error, where) from error


def dump_run_file(run: RunFile) -> str:
    """Return the resolved run file as YAML, every default written out."""
    return yaml.safe_dump(run.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True)


def _explained(error: ValidationError, where: str) -> ConfigError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    key = str(first["loc"][-1]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        owner = EngineOptions if first["loc"][0] == "engine" else RunFile
        known = list(owner.model_fields)
        return ConfigError(
            f"the run file has no key {key!r}",
            where=f"{where}: {place}",
            expected=", ".join(known),
            fix=did_you_mean(key, known),
        )
    got = None if first["type"] == "missing" else repr(first["input"])
    return ConfigError(f"the run file is not right: {first['msg'].lower()}", where=f"{where}: {place}", got=got)


def _set(data: dict[str, Any], override: str) -> None:
    """Apply one ``a.b=c``; a number walks into a list, the value is read as YAML."""
    path, sign, value = override.partition("=")
    if not sign or not path:
        raise ConfigError("an override is not of the form a.b=c", got=override, fix="--set engine.batch_size=4")
    content = read_yaml(value, "the value of an override", where=f"--set {override}")
    keys = path.split(".")
    node: Any = data
    for key in keys[:-1]:
        node = _step(node, key, override)
    last = keys[-1]
    if isinstance(node, list):
        _step(node, last, override)
        node[int(last)] = content
    elif isinstance(node, dict):
        node[last] = content
    else:
        raise ConfigError(f"{path!r} leads into a value, not into a mapping or a list", where=f"--set {override}")


def _step(node: Any, key: str, override: str) -> Any:
    if isinstance(node, list):
        if key.isdecimal() and int(key) < len(node):
            return node[int(key)]
        raise ConfigError(
            f"{key!r} is no place in a list of {len(node)}",
            where=f"--set {override}",
            expected="a number from 0",
        )
    if isinstance(node, dict):
        return node.setdefault(key, {})
    raise ConfigError(f"{key!r} leads into a value, not into a mapping or a list", where=f"--set {override}")
