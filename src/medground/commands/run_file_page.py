"""Writes docs/run_file.md from the types of the run file: ``python -m medground.commands.run_file_page``."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from medground import registry
from medground.benchmarks.doors import RunFileSection
from medground.config import Component, EngineOptions, ModelComponent, RunFile

HEAD = """# The run file

Made from the types that check it, by `python -m medground.commands.run_file_page`; a test holds it to them.

```yaml
name: nih-grounding
benchmark: {name: xbench, protocol: xbench, datasets: [{name: nih_chestxray14, root: /data/nih}]}
models:
  - {name: carzero, checkpoint: /weights/CARZero_best_model.ckpt, text_model: /weights/BioClinicalMPBERT}
  - {name: my_lab.models:OurModel, checkpoint: /weights/ours.safetensors, label: ours}
prompts: {Infiltration: "There is infiltration"}
engine: {batch_size: 8, chunk: 64, workers: 2, on_error: skip}
seed: 0
```

An unknown key is an error that names the nearest right one. Relative paths start from the run file's folder; a file
that is only found from the working directory is taken from there. `--set a.b=c` overrides a key,
`--set models.0.label=x` one in a list. The resolved file, every default written out, is `run.yaml` in the run's folder.
"""


SUITE = """
## A suite: `benchmarks` in place of `benchmark`

`benchmarks` is a list of components; everything else is shared. Each model is asked what its class says that it can do;
who could not be asked, and why, stands in `suite.json` and in the trust report. An entry may name its `models` by their
labels, and its `roles`. Every benchmark has a run folder of its own in the suite's, the same command goes on where it
stopped, and `medground report runs/<name>` writes the trust report. `examples/phantom_suite.yaml` is one.
"""

DECLARED = """
Each is held against the data, and the counts stand on the terminal, in the manifest and in the report. A dataset may be
named by its component, by its label in the run, or by the collection that its pictures come from. Ids are compared
without leading zeros, without the ending of a picture and without regard to upper case; names of images in a list of
patients stand for their cases. A list of which nobody is in the data is an error. `exclude_patients` and `findings` are
heeded by `xbench`; elsewhere they are refused. A constructor that takes one of these names itself is handed it.
"""

LIMITS = """## `limits`

A list of mappings: `metric` or `question`, one bound (`at_least`, `at_most`, `above_floor_by`, in percent where the
figure is one), and, where wanted, `model`, `dataset`, `scope`, `group`. The whole interval must lie on the right side
to pass. With a limit that failed or cannot be told the command ends with exit code 5.
"""


def run_file_reference() -> str:
    """Return the reference as Markdown."""
    parts = [
        HEAD,
        "## Top level\n",
        *_table(RunFile),
        "\n## A component: `benchmark`, an entry of `models` or of `benchmark.datasets`\n",
        *_table(Component),
        "\nEvery further key is a parameter of the component's constructor; `medground describe NAME` lists them.\n",
        "## What is known of a model: further keys of an entry of `models`\n",
        *_table(ModelComponent, set(ModelComponent.model_fields) - set(Component.model_fields)),
        DECLARED,
        "## `engine`\n",
        *_table(EngineOptions),
        SUITE,
        LIMITS,
        *(line for name in registry.names("benchmark") for line in _benchmark(name)),
        *(line for name in registry.offering("run_file") for section in _sections(name) for line in _section(section)),
    ]
    return "\n".join(parts) + "\n"


def _sections(benchmark: str) -> list[RunFileSection]:
    sections: list[RunFileSection] = registry.door(registry.load("benchmark", benchmark), "run_file")()
    return sections


def _section(section: RunFileSection) -> Iterator[str]:
    yield f"\n## {section.heading}\n"
    yield f"{section.text}\n"
    yield from _table(section.model)


def _benchmark(name: str) -> Iterator[str]:
    """Yield the parameters of a benchmark, and the components that stand beside them."""
    yield f"\n## `benchmark: {{name: {name}, ...}}`\n"
    yield from _parameters(name)
    for role, needed in registry.load("benchmark", name).roles.items():
        if role in {"datasets", "explainers"}:
            default = "required" if needed.least else "its own" if role == "explainers" else "none"
            yield f"| `{role}` | list of components | {default} | the {role}, each with its parameters |"


def _table(model: type[BaseModel], chosen: Collection[str] | None = None) -> Iterator[str]:
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, field in model.model_fields.items():
        if chosen is not None and name not in chosen:
            continue
        yield f"| `{name}` | {_type(field.annotation)} | {_default(field)} | {field.description or ''} |"


def _parameters(benchmark: str) -> Iterator[str]:
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for p in registry.parameters(registry.load("benchmark", benchmark)):
        kind = p.annotation.replace("|", "or")
        yield f"| `{p.name}` | {kind} | `{p.default!r}` | {p.meaning} |"


def _type(annotation: Any) -> str:
    plain = isinstance(annotation, type) and not get_args(annotation)
    text = annotation.__name__ if plain else str(annotation)
    text = re.sub(r"typing\.|medground\.[\w.]+\.", "", text).replace(" | ", " or ").replace("NoneType", "None")
    text = re.sub(r"Literal\[([^]]*)\]", lambda match: match[1].replace(", ", " or ").replace("'", "`"), text)
    return re.sub(r"^Union\[(.*), ([^,]*)\]$", r"\1 or \2", text)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return "" if value is PydanticUndefined else f"`{value!r}`"


if __name__ == "__main__":
    sys.stdout.write(run_file_reference())
