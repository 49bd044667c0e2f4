"""What a summary was made of: so that a finished run is not summarised again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import medground
from medground.benchmarks.base import Benchmark
from medground.identity import component_identity, file_hash, fingerprint_of
from medground.running.jsonable import plain
from medground.running.manifest import environment

NAME = "made_of"
"""Key, below a reading, of the file that holds the hash."""
_WITHOUT_EFFECT = ("name", "engine", "limits", "implausible")
_CODE = ("benchmarks", "metrics", "running")


def made_of(benchmark: Benchmark, config: Mapping[str, Any], seals: Sequence[str | None]) -> str:
    """Return a hash of rows, configuration, code and versions: of all that a summary depends on.

    Args:
        benchmark: that makes the summary.
        config: the run file.
        seals: of the receipts of all rows, in order.
    """
    given = {key: value for key, value in config.items() if key not in _WITHOUT_EFFECT}
    own = component_identity(type(benchmark), {})
    return fingerprint_of(plain(given), plain(benchmark.manifest()), list(seals), environment(), own, _code())


@cache
def _code() -> str:
    """Return a hash of the code between rows and summary: versions alone would miss a change in a working copy."""
    root = Path(medground.__file__).parent
    files = sorted(path for part in _CODE for path in (root / part).rglob("*.py"))
    return fingerprint_of([(path.relative_to(root).as_posix(), file_hash(path)) for path in files])
