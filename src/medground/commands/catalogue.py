"""What there is: components by name, their facts, and what this machine has."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from medground import registry
from medground.commands import source_facts
from medground.errors import ConfigError, did_you_mean
from medground.models import presets

PLURALS: Mapping[str, registry.Kind] = {f"{kind}s": kind for kind in registry.KINDS}
PROTOCOLS = "protocols"
PROTOCOL = "protocol:"
"""What stands before a protocol's name where a dataset has the same: ``medground describe protocol:chexlocalize``."""

CORE = (
    *("numpy", "numba", "pillow", "pydicom", "polars", "pydantic", "typer", "scipy", "torch"),
    *("safetensors", "transformers", "jinja2", "plotly"),
)
DECODERS = {
    "JPEG 2000": ("openjpeg", "pylibjpeg pylibjpeg-openjpeg"),
    "JPEG-LS": ("jpeg_ls", "pyjpegls"),
}


def components(kind: str | None = None) -> dict[str, list[str]]:
    """Return plural of a kind -> names; nothing is imported.

    Raises:
        ConfigError: there is no such kind.
    """
    known = [*PLURALS, PROTOCOLS]
    # Protocols are listed on request: they are objects, and making them imports a benchmark.
    wanted = list(PLURALS) if kind is None else [k for k in known if kind in (k, k.removesuffix("s"))]
    if not wanted:
        raise ConfigError(f"there is no kind {kind!r}", expected=", ".join(known), fix=did_you_mean(str(kind), known))
    return {k: list(_protocols()) if k == PROTOCOLS else registry.names(PLURALS[k]) for k in wanted}


def summaries(listed: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return name -> the first line of its documentation, read from its file: nothing is imported."""
    lines: dict[str, str] = {}
    if PROTOCOLS in listed:
        lines |= {name: f"Of {of}. {facts.get('in words', '')}".strip() for name, (of, facts) in _protocols().items()}
    for plural, names in listed.items():
        kind = PLURALS.get(plural)
        modules = registry.builtin(kind) if kind else {}
        lines |= {name: _first_line(modules[name], name) for name in names if name in modules}
        lines |= {name: _preset(name)["what"] for name in names if kind == "model" and name in registry.presets(kind)}
    return lines


def _preset(name: str) -> dict[str, Any]:
    """Return the facts of a preset: its model's, with its own card and defaults."""
    content = presets.read(name)
    base = content["of"].rpartition(".")[2]
    read = source_facts.facts_of(registry.builtin("model")[base], base)
    changed = {key: repr(value) for key, value in content["parameters"].items()}
    parameters = {
        f"{p.name}: {registry.short_type(p.annotation)}": _described(
            changed.get(p.name, p.default), read["meanings"].get(p.name, "")
        )
        for p in read["parameters"]
    }
    what = f"{content['info']['title']}: {base} with parameters of its own."
    return {"model": name, "what": what, **_told(content["info"]), "parameters": parameters}


def _first_line(module: str, name: str) -> str:
    root = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    path = root / "__init__.py" if root.is_dir() else root.with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and any(_declares(statement, name) for statement in node.body):
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def _declares(statement: ast.stmt, name: str) -> bool:
    """Whether a statement of a class is ``name = "<name>"``, with or without a type."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, ast.Constant) and value.value == name


def describe(name: str) -> dict[str, Any]:
    """Return the facts of a component or protocol: what it is, its parameters, files, licence and citation.

    Raises:
        RegistryError: no component has that name.
    """
    if name in registry.presets("model"):
        return _preset(name)
    if name.startswith(PROTOCOL):
        return _protocol(name.removeprefix(PROTOCOL))
    kind = next((kind for kind in registry.KINDS if name in registry.builtin(kind)), None)
    if kind is not None:
        try:
            return _from_source(kind, name)
        except source_facts.NotPlainError:
            return from_class(name)
    if ":" not in name and not any(name in registry.names(kind) for kind in registry.KINDS) and name in _protocols():
        return _protocol(name)
    return from_class(name)


def _protocol(name: str) -> dict[str, Any]:
    """Return the choices of a protocol.

    Raises:
        ConfigError: no benchmark has one of that name.
    """
    known = _protocols()
    if name not in known:
        raise ConfigError(f"there is no protocol {name!r}", expected=", ".join(known), fix=did_you_mean(name, known))
    benchmark, choices = known[name]
    return {"protocol": name, "of": benchmark, **choices}


def _from_source(kind: registry.Kind, name: str) -> dict[str, Any]:
    """Return the facts of a component that ships with medground, without importing it."""
    read = source_facts.facts_of(registry.builtin(kind)[name], name)
    parameters = {
        f"{p.name}: {registry.short_type(p.annotation)}": _described(p.default, read["meanings"].get(p.name, ""))
        for p in read["parameters"]
    }
    return {kind: name, "what": read["what"], **_told(read["info"]), "parameters": parameters}


def from_class(name: str) -> dict[str, Any]:
    """Return the facts of a component from its class, which is imported."""
    kind = registry.kind_of(name) if ":" not in name else _kind_by_path(name)
    cls = registry.load(kind, name)
    info = getattr(cls, "info", None)
    return {
        kind: name,
        "what": (cls.__doc__ or "").strip().splitlines()[0] if cls.__doc__ else "",
        **(_told(asdict(info)) if is_dataclass(info) and not isinstance(info, type) else {}),
        "parameters": {
            f"{p.name}: {p.annotation}": _described(None if p.required else repr(p.default), p.meaning)
            for p in registry.parameters(cls)
        },
    }


def _told(info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in info.items() if value not in (None, "", (), {}, [])}


def _described(default: str | None, meaning: str) -> str:
    return ("required. " if default is None else f"default {default}. ") + meaning


def doctor(*, devices: bool = False) -> dict[str, Any]:
    """Return what this machine has; torch, which takes seconds to import, is asked only for its devices."""
    versions = {name: _version(name) for name in CORE}
    decoders = {
        what: "yes" if importlib.util.find_spec(module) else f"no: pip install {package}"
        for what, (module, package) in DECODERS.items()
    }
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    return {
        "medground": _version("medground"),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "versions": versions,
        "compressed DICOM": decoders,
        "devices": _devices() if devices else ["not asked for: medground doctor --devices"],
        "free disk here": f"{free:.1f} GB",
        "executable": Path(sys.executable).name,
    }


def _devices() -> list[str]:
    if not importlib.util.find_spec("torch"):
        return ["torch is not installed: baselines and precomputed maps work, models do not"]
    import torch

    cuda = [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    return [f"cpu ({torch.get_num_threads()} threads)", *cuda]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _protocols() -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return name of a protocol -> whose it is, and its facts."""
    return {
        name: (benchmark, facts)
        for benchmark in registry.offering(PROTOCOLS)
        for name, facts in registry.door(registry.load("benchmark", benchmark), PROTOCOLS)().items()
    }


def _kind_by_path(name: str) -> registry.Kind:
    """A class named by its path says by its methods what it is."""
    cls = registry.load("model", name)
    methods = {name for base in cls.__mro__ for name in vars(base)}
    return next((kind for kind, method in _OF_KIND.items() if method in methods), "model")


_OF_KIND: Mapping[str, registry.Kind] = {
    "dataset": "cases",
    "benchmark": "tasks",
    "explainer": "explain",
    "tool": "run",
}
"""Kind -> the method by which a class of the user's is known as one."""
