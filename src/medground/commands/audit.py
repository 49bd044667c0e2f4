"""``medground audit``: what of a benchmark's items can be solved without the image."""

from __future__ import annotations

from pathlib import Path

from medground import registry
from medground.benchmarks.doors import Audit
from medground.errors import ConfigError


def audit_file(
    file: Path, reference: Path | None, language_model: Path | None, *, seed: int = 0, benchmark: str | None = None
) -> Audit:
    """Return what scorers that see no image make of items.

    Args:
        file: of items, or the folder of a build.
        reference: texts to learn from; by default the items' own other half.
        language_model: folder of a causal language model.
        seed: of halves and folds.
        benchmark: whose items they are; by default of the one benchmark that can be audited.

    Raises:
        ConfigError: several benchmarks can be audited and none is named.
        RegistryError: the benchmark has no audit.
        DataError: the items cannot be read.
    """
    names = [benchmark] if benchmark else registry.offering("audit")
    if len(names) != 1:
        raise ConfigError("whose items are these?", where="--benchmark", expected=", ".join(names), got=None)
    audit = registry.door(registry.load("benchmark", names[0]), "audit")
    result: Audit = audit(file, reference, language_model, seed=seed)
    return result
