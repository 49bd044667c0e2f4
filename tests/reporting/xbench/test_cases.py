"""The case viewer's data: measured as the summary measured, pictures only where they may be shown, and bounded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medground.benchmarks.xbench.protocol import Protocol
from medground.errors import RunError
from medground.reporting.runs import read_run
from medground.reporting.sources import Images, open_source
from medground.reporting.xbench import cases
from medground.reporting.xbench.cases import viewer_data
from medground.reporting.xbench.measured import MeasuredTask
from medground.reporting.xbench.pool import Pooled, pools

from ..conftest import box_of


def viewed(folder: Path, images: Images = "auto") -> dict[str, Any]:
    (pool,) = pools([read_run(folder)])
    return viewer_data(pool, {"Ours": open_source(pool.runs[0], "Ours", images)})


@pytest.fixture(scope="module")
def data(finished: Path) -> dict[str, Any]:
    return viewed(finished, "yes")


def test_values_of_pairs_average_to_the_cells_of_the_summary(finished: Path) -> None:
    run = read_run(finished)
    (pool,) = pools([run])
    task = MeasuredTask.read(run, "Looker", "Ours", Protocol.model_validate(run.data["protocol"]))
    columns = {"pointing": "pointing", "dice@best": "dice", "iou@best": "iou", "dice_floor": "dice_floor"}
    for metric, column in columns.items():
        values = [row[column] for row in task.rows.values() if row[column] is not None]
        cell = pool.cell("Looker", "Ours", metric, "pairs")
        assert cell is not None
        assert np.mean(values) == pytest.approx(cell.value)
        assert len(values) == cell.n
    outcomes = [task.outcome(key) for key in task.rows]
    assert {o: outcomes.count(o) for o in ("flat", "undefined", "failed")} == {"flat": 1, "undefined": 2, "failed": 1}
    assert outcomes.count("hit") == sum(row["pointing"] == 1 for row in task.rows.values())


def test_every_pair_of_a_small_run_is_there_with_every_model(data: dict[str, Any]) -> None:
    assert len(data["pairs"]) == 45
    assert data["datasets"][0]["total"] == 45
    assert all(set(pair["answers"]) == {0, 1, 2, 3} for pair in data["pairs"])
    assert data["baselines"] == [2, 3]
    assert {entry["model"] for entry in data["lists"]} == {0, 1, 2, 3}


def test_the_outline_is_the_true_region_and_the_map_covers_the_picture(data: dict[str, Any]) -> None:
    pair = next(p for p in data["pairs"] if (p["case"], p["finding"]) == ("case02", "Nodule"))
    x0, y0, x1, y1 = box_of(2, 0)
    assert pair["outline"] == (f"M{x0} {y0}L{x1} {y0}L{x1} {y1}L{x0} {y1}Z", (120, 96))
    assert pair["size"] == (120, 96)
    looker = pair["answers"][0]
    assert looker["outcome"] == "hit"
    assert looker["at"] == pytest.approx([0, 0, 1, 1])
    assert looker["grid"] == [15, 12]
    assert looker["cuts"]["fixed"] == 127.5
    px, py = looker["peak"][0] * 120, looker["peak"][1] * 96
    assert x0 <= px < x1
    assert y0 <= py < y1


def test_what_has_no_map_shows_none_and_says_why(data: dict[str, Any]) -> None:
    by_case = {(p["case"], p["finding"]): p for p in data["pairs"]}
    absent = by_case["case04", "Nodule"]["answers"][0]
    assert (absent["outcome"], absent["reason"], absent["dice"]) == ("undefined", "no map in the folder", None)
    assert "map" not in absent
    assert by_case["case08", "Nodule"]["answers"][0]["reason"] == "the map holds NaN or infinite values"
    flat = by_case["case06", "Nodule"]["answers"][0]
    assert (flat["outcome"], flat["peak"]) == ("flat", None)
    failed = by_case["case29", "Effusion"]
    assert failed["answers"][0]["outcome"] == "failed"
    assert failed["picture"] is None
    assert failed["note"] == "a PNG is truncated"


def test_a_picture_is_kept_once_for_all_findings_of_its_case(data: dict[str, Any]) -> None:
    of_case = {p["case"]: p["picture"] for p in data["pairs"]}
    assert sorted(v for v in of_case.values() if v is not None) == list(range(len(data["pictures"])))
    assert len(data["pictures"]) == 29


@pytest.mark.parametrize(("images", "reason"), [("auto", "may not be passed on"), ("no", "left out on request")])
def test_pictures_that_may_not_be_passed_on_are_left_out(finished: Path, images: Images, reason: str) -> None:
    found = viewed(finished, images)
    assert found["pictures"] == []
    assert reason in found["datasets"][0]["why_not"]
    assert all(pair["picture"] is None and pair["note"] for pair in found["pairs"])
    assert found["pairs"][0]["outline"]


def test_pictures_that_may_be_passed_on_are_shown(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from medground.datasets.manifest import Manifest

    monkeypatch.setattr(Manifest, "info", replace(Manifest.info, redistributable=True))
    assert len(viewed(finished, "auto")["pictures"]) == 29
    assert viewed(finished, "no")["pictures"] == []


def test_a_dataset_that_moved_leaves_maps_and_scores(run_copy: Path) -> None:
    text = (run_copy / "run.yaml").read_text()
    (run_copy / "run.yaml").write_text(text.replace("-files/data", "-gone/data"))
    found = viewed(run_copy)
    assert "cannot be opened here" in found["datasets"][0]["why_not"]
    assert found["pairs"][0]["outline"] is None
    assert any("map" in pair["answers"][2] for pair in found["pairs"])


def test_a_map_that_changed_since_the_run_is_not_shown(run_copy: Path, finished: Path, tmp_path: Path) -> None:
    files = finished.parent / "small-files" / "looker"
    copied = Path(shutil.copytree(files, tmp_path / "maps"))
    config = (run_copy / "run.yaml").read_text().replace(str(files), str(copied))
    (run_copy / "run.yaml").write_text(config)
    np.save(copied / "2-0.npy", np.ones((3, 3), dtype=np.float32))
    (copied / "0-0.npy").unlink()
    by_case = {(p["case"], p["finding"]): p for p in viewed(run_copy)["pairs"]}
    assert "map" not in by_case["case02", "Nodule"]["answers"][0]
    assert "map" not in by_case["case00", "Nodule"]["answers"][0]
    assert "map" in by_case["case12", "Nodule"]["answers"][0]


def test_the_album_stays_within_its_bounds(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_PICTURES", 9)
    few = viewed(finished, "yes")
    assert 0 < len(few["pictures"]) <= 9
    monkeypatch.setattr(cases._Album, "__init__", lambda self: self.__dict__.update(pictures=[], left=4000))
    tight = viewed(finished, "yes")
    size = sum(map(len, tight["pictures"])) + sum(
        len(a.get("map", "")) for p in tight["pairs"] for a in p["answers"].values()
    )
    assert size <= 4000
    assert any(pair["note"] == "the report has reached its size" for pair in tight["pairs"])


def test_nothing_is_measured_for_a_report(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medground.benchmarks.xbench import grounding, pairs

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a report measures nothing")

    for module, name in ((grounding, "grounding_values"), (pairs, "overlap"), (pairs, "search_thresholds")):
        monkeypatch.setattr(module, name, refuse)
    assert len(viewed(finished)["pairs"]) == 45


def test_a_summary_without_its_items_says_how_they_are_made(run_copy: Path) -> None:
    (file,) = (run_copy / "readings").glob("*/items/pairs.parquet")
    (file.parents[1] / "sums.json").unlink(missing_ok=True)
    file.unlink()
    with pytest.raises(RunError, match="without its items"):
        viewed(run_copy)


def test_lists_name_pairs_of_their_finding(data: dict[str, Any]) -> None:
    for entry in data["lists"]:
        for finding, groups in entry["of"].items():
            for places in groups.values():
                assert all(finding in {"", data["pairs"][k]["finding"]} for k in places)
    looker = next(entry for entry in data["lists"] if entry["model"] == 0)["of"][""]
    dice = [data["pairs"][k]["answers"][0]["dice"] for k in looker["worst"]]
    assert dice == sorted(dice)
    assert len(looker["failed"]) == 3
    json.dumps(data)


def test_pools_keep_models_of_one_name_apart(finished: Path) -> None:
    run = read_run(finished)
    assert Pooled.of([run, run]).models == Pooled.of([run]).models
