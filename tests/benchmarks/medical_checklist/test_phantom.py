"""Mirrored scene pairs: true by construction, and nothing to gain without the picture."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.medical_checklist import items as item_files, phantom
from medground.benchmarks.medical_checklist.audit.run import audit
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.twin_scenes import KINDS
from medground.errors import ConfigError
from medground.worlds.phantom import statements as language


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return phantom.build(tmp_path_factory.mktemp("made") / "p", phantom.Recipe(pairs=26, size=64, seed=5))


def test_members_mirror_each_other(folder: Path) -> None:
    held = item_files.read(folder / "items.jsonl")
    assert len(held) == 52
    by_pair: dict[str, list[item_files.ChecklistItem]] = {}
    for item in held:
        by_pair.setdefault(item.pair, []).append(item)
    for a, b in by_pair.values():
        assert (a.positive, a.negative) == (b.negative, b.positive)
        assert (a.term_positive, a.tui) == (b.term_negative, b.tui)
        assert a.image != b.image
        assert a.positive[: a.start] == b.positive[: b.start] or a.tui == "T074"  # "a" and "an" before a device
        assert (folder / str(a.image)).is_file()
        assert str(a.pair) not in str(a.image)
        assert language.said(a.positive)


def test_every_blind_scorer_is_at_exactly_one_half(folder: Path) -> None:
    held = item_files.read(folder / "items.jsonl")
    report = audit([i.as_pair for i in held])
    overall = {r.scorer: r for r in report.results if r.group == "all"}
    # Cross-fitted word counts differ between halves, never inside a pair.
    assert {r.accuracy for r in overall.values()} == {0.5}
    for credit in report.credits.values():
        assert np.all((credit >= 0) & (credit <= 1))
    assert report.needs_the_image == "yes"
    assert "needs the image" in report.sentence


def test_the_build_says_what_it_cannot_test(folder: Path) -> None:
    report = json.loads((folder / "build.json").read_text())
    buildable = {kind.split()[0] for kind in KINDS}
    assert set(report["items_per_type"]) <= buildable
    assert buildable.isdisjoint(report["not_buildable"])
    assert buildable | set(report["not_buildable"]) == set(TYPES)


def test_the_same_bytes_on_two_workers(folder: Path, tmp_path: Path) -> None:
    other = phantom.build(tmp_path / "q", phantom.Recipe(pairs=26, size=64, seed=5), workers=2)
    for name in ("items.jsonl", "reference.jsonl"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()
    assert {p.name for p in (folder / "images").iterdir()} == {p.name for p in (other / "images").iterdir()}


def test_a_full_folder_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="not empty"):
        phantom.build(folder, phantom.Recipe(pairs=1))


def test_no_sentence_says_two_things() -> None:
    said = Counter(text.lower() for text, _ in language._all())
    meanings: dict[str, set[language.Statement]] = {}
    for text, statement in language._all():
        meanings.setdefault(text.lower(), set()).add(statement)
    assert all(len(m) == 1 for m in meanings.values())
    assert len(said) > 1000
