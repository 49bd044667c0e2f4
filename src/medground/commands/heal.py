"""``medground build heal_medvqa``: questions with their perturbations from phantoms or a dataset with masks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from medground import registry
from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.benchmarks.heal_medvqa.folder import build_folder
from medground.errors import ConfigError


def mapping(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return ``a.b=value`` texts as a nested mapping; values are read as YAML.

    Raises:
        ConfigError: a text without ``=``, or a value that is no YAML.
    """
    made: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError("an option is no KEY=VALUE", got=pair, expected="such as masks.source=thirds")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError("a value is no YAML", where=key, got=text) from error
        *above, last = key.split(".")
        place = made
        for name in above:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ConfigError("an option is given twice", where=key)
        place[last] = value
    return made


def build(
    out: Path, dataset: str, options: dict[str, Any], given: dict[str, Any], *, seed: int, pictures: bool
) -> Path:
    """Build into a folder.

    Args:
        out: where.
        dataset: its name.
        options: of the dataset, as a run file gives them.
        given: of the benchmark, as a run file gives them.
        seed: of every choice.
        pictures: write perturbed pictures too.

    Raises:
        MedgroundError: whatever a user can mend.
    """
    checked = registry.check(HealMedVQA, given, where="build heal_medvqa", base=Path.cwd())
    made = registry.create("dataset", dataset, options, where=f"--dataset {dataset}", base=Path.cwd())
    return build_folder(out, made, HealMedVQA(**checked).choices(seed), pictures=pictures)
