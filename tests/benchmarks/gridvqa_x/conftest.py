import json
from pathlib import Path

import pytest

from medground.worlds.gridvqa.records import from_neutral


@pytest.fixture(scope="session")
def grid_golden(golden: Path) -> Path:
    return golden / "gridvqa_x"


@pytest.fixture(scope="session")
def golden_scenes(grid_golden: Path) -> list[tuple[dict, object]]:
    """Golden records of both variants with the scenes read from them."""
    lines = [
        line
        for variant in ("pure", "spurious")
        for line in (grid_golden / "scenes" / f"{variant}.jsonl").read_text().splitlines()
    ]
    records = [json.loads(line) for line in lines]
    return [(record, from_neutral(record)) for record in records]
