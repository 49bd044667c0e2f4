"""The folder: layout, bytes, and the dataset that reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.datasets.manifest import Manifest
from medground.datasets.phantom import Phantom
from medground.errors import ConfigError, DatasetError
from medground.imaging.regions import Region
from medground.worlds.phantom.build import build
from medground.worlds.phantom.drawing import ANATOMIES, draw
from medground.worlds.phantom.scene import make_scene


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("phantoms") / "set", cases=30, size=64, seed=9)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_bytes_do_not_depend_on_the_workers(folder: Path, tmp_path: Path) -> None:
    assert contents(build(tmp_path / "other", cases=30, size=64, seed=9, workers=2)) == contents(folder)


def test_the_population_of_tasks_is_built_too(folder: Path, tmp_path: Path) -> None:
    one = build(tmp_path / "one", cases=26, size=64, seed=9, population="tasks")
    assert contents(build(tmp_path / "two", cases=26, size=64, seed=9, population="tasks", workers=2)) == contents(one)
    truths = [json.loads(line) for line in (one / "truth.jsonl").read_text().splitlines()]
    assert {fact["label"] for truth in truths for fact in truth["tasks"].values()} == {0, 1, None}
    dataset = Phantom(cases=26, size=64, seed=9, population="tasks", root=one)
    assert dataset.cases()[0].case_id == "phantom_tasks_9_00000"
    with pytest.raises(DatasetError, match="holds other phantoms"):
        Phantom(cases=30, size=64, seed=9, population="tasks", root=folder).cases()
    with pytest.raises(ConfigError, match="cannot be drawn"):
        build(tmp_path / "three", cases=2, size=64, population="task")


def test_the_manifest_dataset_reads_the_folder(folder: Path) -> None:
    cases = Manifest(folder).cases()
    assert len(cases) == 30
    for number, case in enumerate(cases):
        drawing = draw(make_scene(9, number), 64)
        assert case.view == drawing.scene.anatomy.view
        assert np.array_equal(np.asarray(Image.open(case.image)), drawing.pixels)
        assert {f for f, present in case.labels.items() if present} == set(drawing.findings)
        for finding, region in case.regions.items():
            assert np.array_equal(region.mask(), drawing.findings[finding])


def test_the_truth_is_complete(folder: Path) -> None:
    for number, line in enumerate((folder / "truth.jsonl").read_text().splitlines()):
        facts, drawing = json.loads(line), draw(make_scene(9, number), 64)
        assert tuple(facts["anatomies"]) == ANATOMIES
        for anatomy, code in facts["anatomies"].items():
            assert np.array_equal(Region.from_coco(**code).mask(), drawing.anatomies[anatomy])
        assert facts["landmarks"].keys() == drawing.landmarks.keys()
        assert facts["measurements"] == pytest.approx(drawing.measurements, abs=1e-4)


def test_the_component_takes_a_built_folder(folder: Path) -> None:
    dataset = Phantom(cases=30, size=64, seed=9, root=folder)
    assert [case.case_id for case in dataset.cases()] == [f"phantom_9_{n:05d}" for n in range(30)]
    assert tuple(dataset.findings) == dataset.info.findings
    assert dataset.info.redistributable
    assert len({case.patient_id for case in dataset.cases()}) == 30


def test_the_component_draws_into_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDGROUND_CACHE", str(tmp_path))
    first = Phantom(cases=3, size=64, seed=1)
    assert len(first.cases()) == 3
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    again = Phantom(cases=3, size=64, seed=1)
    assert again.fingerprint() == first.fingerprint()
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
    assert Phantom(cases=3, size=64, seed=2).fingerprint() != first.fingerprint()


def test_the_fingerprint_does_not_depend_on_the_place(folder: Path, tmp_path: Path) -> None:
    elsewhere = Phantom(cases=30, size=64, seed=9, root=tmp_path / "new")
    assert elsewhere.fingerprint() == Phantom(cases=30, size=64, seed=9, root=folder).fingerprint()


def test_another_recipe_in_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds other phantoms"):
        Phantom(cases=31, size=64, seed=9, root=folder).cases()
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(DatasetError, match="holds no phantoms"):
        Phantom(cases=3, size=64, root=tmp_path).cases()


def test_a_full_folder_and_wrong_numbers_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not empty"):
        build(folder, cases=1, size=64)
    with pytest.raises(ConfigError, match="cannot be drawn"):
        build(tmp_path / "x", cases=0)


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("medground.worlds.phantom.build.draw", broken)
    with pytest.raises(OSError, match="disk full"):
        build(tmp_path / "set", cases=2, size=64)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_process_finished_first_is_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(out: Path, **_: object) -> Path:
        shutil.copytree(folder, out)
        return build(out, cases=30, size=64, seed=9)

    monkeypatch.setattr("medground.datasets.phantom.build", beaten)
    assert len(Phantom(cases=30, size=64, seed=9, root=tmp_path / "late").cases()) == 30


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DatasetError, match="cannot be written"):
        Phantom(cases=2, size=64, root=tmp_path / "file" / "below").cases()
