"""What is run: small run files of three benchmarks, each with its own way through the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PHANTOMS = {"name": "phantom", "cases": 12, "size": 224}

SUBJECTS: Mapping[str, Mapping[str, Any]] = {
    # One round an item, decoded by threads, batch after batch.
    "xbench": {
        "benchmark": {"name": "xbench", "replicates": 0, "datasets": [_PHANTOMS]},
        "models": [{"name": "reference"}, {"name": "baseline_random"}],
        "engine": {"chunk": 3, "batch_size": 2},
    },
    # Independent items in processes, journalled one by one.
    "gridvqa_x": {
        "benchmark": {
            "name": "gridvqa_x",
            "per_bucket": 3,
            "replicates": 0,
            "explainers": [{"name": "emap"}, {"name": "multiviz"}],
        },
        "models": [{"name": "gridvqa_rule"}],
        "engine": {},
    },
    # Dialogues: round after round, the items of a chunk side by side.
    "cxreasondial": {
        "benchmark": {"name": "cxreasondial", "phantoms": 12, "size": 128},
        "models": [{"name": "small_chat"}],
        "engine": {"chunk": 1},
    },
}


def run_file(subject: str, workers: int) -> dict[str, Any]:
    """Return the run file of a subject for so many workers."""
    parts = SUBJECTS[subject]
    engine = {**parts["engine"], "workers": workers, "torch_threads": 1}
    return {"name": subject, **parts, "engine": engine}
