"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of expected numbers."""
    return GOLDEN


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real sample data, or a skip that says how to have it."""
    named = os.environ.get("MEDGROUND_TEST_DATA")
    if not named:
        pytest.skip("MEDGROUND_TEST_DATA does not name the folder of sample data")
    root = Path(named)
    if not root.is_dir():
        pytest.skip(f"MEDGROUND_TEST_DATA names {root}, which is not a folder")
    return root
