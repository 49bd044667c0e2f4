"""The golden cases and the small lexicon that they were made with."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary
from medground.benchmarks.medical_checklist.terminologies import tsv
from medground.benchmarks.medical_checklist.terminologies.base import Terminology


class Golden:
    """Reads the files below tests/golden/medical_checklist."""

    root = Path(__file__).parents[2] / "golden" / "medical_checklist"

    def load(self, name: str) -> Any:
        text = (self.root / name).read_text("utf-8")
        if name.endswith(".jsonl"):
            return [json.loads(line) for line in text.split("\n") if line]
        return json.loads(text)

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.root / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def lexicon(self) -> Terminology:
        return tsv.read(self.root / "lexicon" / "lexicon.tsv")


@pytest.fixture(scope="session")
def golden() -> Golden:
    return Golden()


@pytest.fixture(scope="session")
def lexicon(golden: Golden) -> Terminology:
    return golden.lexicon()


@pytest.fixture(scope="session")
def dictionary(lexicon: Terminology) -> Dictionary:
    return Dictionary(lexicon)
