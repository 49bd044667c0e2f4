from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable


@pytest.fixture(scope="session")
def heal_golden(golden: Path) -> Path:
    return golden / "heal_medvqa"


@pytest.fixture(scope="session")
def drawn_tables(heal_golden: Path) -> Mapping[str, Any]:
    """Twenty made-up relation tables as they stand in the golden file."""
    return json.loads((heal_golden / "questions/images.json").read_text())


@pytest.fixture(scope="session")
def table_from() -> Callable[..., RelationTable]:
    return _table


@pytest.fixture(scope="session")
def table(drawn_tables: Mapping[str, Any]) -> RelationTable:
    return _table(drawn_tables)


def _table(given: Mapping[str, Any], images: list[Mapping[str, Any]] | None = None) -> RelationTable:
    """Return a relation table from the golden form, of all its images or some."""
    return RelationTable(
        tuple(given["anatomies"]),
        tuple(given["diseases"]),
        tuple(
            ImageFacts(
                one["image_id"],
                frozenset(map(tuple, one["related"])),
                frozenset(map(tuple, one["partial"])),
                frozenset(one["present_without_region"]),
                frozenset(one["not_annotated"]),
                one["source"],
                one["split"],
            )
            for one in (given["images"] if images is None else images)
        ),
    )
