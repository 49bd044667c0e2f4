"""``medground score``: golden cases through the two files of the command line, and runs under other protocols."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medground.benchmarks.xbench.elsewhere import read_maps
from medground.commands.score import read_choice, score
from medground.errors import ConfigError, DataError, MedgroundError, RunError
from medground.session import run_file as run_a_file


def write(folder: Path, cases: list[dict[str, Any]], maps: dict[str, Any]) -> tuple[Path, Path]:
    (folder / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    np.savez(folder / "maps.npz", **maps)
    return folder / "cases.jsonl", folder / "maps.npz"


@pytest.fixture
def heatmaps(golden: Path, tmp_path: Path) -> tuple[Path, Path]:
    folder = golden / "metrics" / "heatmaps"
    items = json.loads((folder / "items.json").read_text())
    arrays = np.load(folder / "inputs.npz")["maps"]
    cases = [
        {"case_id": f"{i:02d}", "frame": [1024, 1024], "boxes_xywh": {item["class"]: item["boxes_xywh"]}}
        for i, item in enumerate(items)
    ]
    return write(tmp_path, cases, {f"{i:02d}": array for i, array in enumerate(arrays)})


@pytest.mark.parametrize(
    ("name", "dice", "iou", "pointing"),
    [
        ("xbench", "dice", "iou", "pointing"),
        ("chexlocalize", "dice", "iou_true_positive_only", "pointing"),
        ("medklip", "dice_raw_map", "iou_raw_map", "pointing_any"),
    ],
)
def test_the_golden_heat_maps(
    golden: Path, heatmaps: tuple[Path, Path], name: str, dice: str, iou: str, pointing: str
) -> None:
    expected = json.loads((golden / "metrics" / "heatmaps" / "expected.json").read_text())
    found = score(None, "protocol", {"base": name, "search_mean": "pairs"}, *heatmaps).as_json()
    for item, want in zip(sorted(found["items"], key=lambda i: i["case_id"]), expected["items"], strict=True):
        assert (item["finding"], item["state"]) == (want["class"], "ok")
        assert item["pointing"] == want[name][pointing]
        assert item["dice"] == pytest.approx(want[name][dice], abs=1e-7)
        for got, right in zip(item["iou"], want[name][iou], strict=True):
            assert (got is None) if right is None else got == pytest.approx(right, abs=1e-7)
    (threshold,) = [t for t in found["summary"]["data"]["thresholds"] if t["subset"] == "main"]
    assert threshold["tau"] == expected["aggregate"][name]["best_tau"]
    (macro,) = [c for c in found["summary"]["cells"] if (c["scope"], c["metric"]) == ("pairs", "dice@best")]
    assert macro["value"] == pytest.approx(expected["aggregate"][name]["dice_at_best"], abs=1e-7)


def test_flat_and_invalid_maps_from_the_command_line(golden: Path, tmp_path: Path) -> None:
    arrays = np.load(golden / "metrics" / "starred" / "T04_flat_and_nan" / "input.npz")
    mask = {"rows": arrays["mask"].astype(int).tolist()}
    maps = {name: arrays[name] for name in ("zero", "equal", "nan", "negative")}
    cases, file = write(tmp_path, [{"case_id": name, "masks": {"x": mask}} for name in maps], maps)
    command = [sys.executable, "-m", "medground", "score", "--cases", str(cases), "--maps", str(file), "--json"]
    done = subprocess.run([*command, "--protocol", "{base: xbench, grid: [14, 14]}"], capture_output=True, check=True)
    items = {item["case_id"]: item for item in json.loads(done.stdout)["items"]}
    assert {name: item["state"] for name, item in items.items()} == {
        "zero": "flat", "equal": "flat", "nan": "invalid", "negative": "ok",
    }  # fmt: skip
    assert items["nan"]["pointing"] is None
    assert set(items["nan"]["dice"]) == {None}
    assert items["zero"]["dice"][0] > 0
    assert set(items["zero"]["dice"][1:]) == {0}
    assert items["zero"]["ties"] == 196


def test_an_empty_region_is_undefined(golden: Path, tmp_path: Path) -> None:
    arrays = np.load(golden / "metrics" / "starred" / "T05_empty_class" / "input.npz")
    cases = [
        {"case_id": f"c{i}", "masks": {"x": {"rows": mask.astype(int).tolist()}}} for i, mask in enumerate(arrays["gt"])
    ]
    maps = {f"c{i}": mask.astype(np.float32) for i, mask in enumerate(arrays["pred_wrong"])}
    found = score(None, "protocol", {"base": "xbench", "grid": [8, 8]}, *write(tmp_path, cases, maps))
    items = found.as_json()["items"]
    assert [item["dice"][50] for item in items if item["dice"][50] is not None] == [0.0]
    assert sum(item["state"] == "vanished" for item in items) == 2


def test_maps_as_json_and_as_a_folder(heatmaps: tuple[Path, Path], tmp_path: Path) -> None:
    cases, npz = heatmaps
    arrays = read_maps(npz)
    (tmp_path / "maps.json").write_text(json.dumps({k: v.tolist() for k, v in arrays.items()}))
    (tmp_path / "folder").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / "folder" / f"{name}.npy", array)
    whole = score(None, "protocol", "xbench", cases, npz).as_json()["items"]
    for other in (tmp_path / "maps.json", tmp_path / "folder"):
        assert score(None, "protocol", "xbench", cases, other).as_json()["items"] == whole


def test_a_missing_map_is_absent_and_a_strange_one_is_refused(heatmaps: tuple[Path, Path], tmp_path: Path) -> None:
    cases, npz = heatmaps
    arrays = read_maps(npz)
    first = next(iter(arrays))
    np.savez(tmp_path / "fewer.npz", **{k: v for k, v in arrays.items() if k != first})
    items = score(None, "protocol", "xbench", cases, tmp_path / "fewer.npz").as_json()["items"]
    (absent,) = [item for item in items if item["case_id"] == first]
    assert (absent["state"], absent["pointing"], absent["reason"]) == (
        "absent", None, "no map of this case and finding",
    )  # fmt: skip
    np.savez(tmp_path / "more.npz", **arrays, strange=np.eye(2))
    with pytest.raises(DataError, match="belong to no case"):
        score(None, "protocol", "xbench", cases, tmp_path / "more.npz")


@pytest.mark.parametrize("names", [["a", "a/x"], ["a/x/y"]])
def test_a_map_belongs_to_one_case_and_finding(tmp_path: Path, names: list[str]) -> None:
    rows = {"rows": [[0, 1], [1, 1]]}
    cases = [{"case_id": "a", "masks": {"x": rows}}, {"case_id": "a/x", "masks": {"y": rows, "x": rows}}]
    cases += [{"case_id": "a/x/y", "masks": {"z": rows}}]
    files = write(tmp_path, cases, {name: np.eye(2) for name in names})
    with pytest.raises(DataError, match=r"two maps belong to one|stands for several cases"):
        score(None, "protocol", "xbench", *files)


def test_one_map_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a/Mass.npy", np.eye(2))
    np.savez(tmp_path / "a/Mass.npz", np.eye(2))
    with pytest.raises(DataError, match="there twice"):
        read_maps(tmp_path)


@pytest.mark.parametrize("text", ['{"a": [[1, 2]], "a": [[2, 1]]}', "[]", '{"a": [[1], [2, 3]]}', '{"a": [["x"]]}'])
def test_json_that_holds_no_maps_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "maps.json").write_text(text)
    with pytest.raises(DataError):
        read_maps(tmp_path / "maps.json")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04", pickle.dumps([1])])
def test_damaged_maps_are_explained(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "maps.npz").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_maps(tmp_path / "maps.npz")
    assert "allow_pickle" not in str(caught.value)


def test_arrays_that_are_no_maps_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "maps.npz", a=np.zeros((2, 2, 3)))
    with pytest.raises(DataError, match="not a picture of numbers"):
        read_maps(tmp_path / "maps.npz")


def test_a_run_is_scored_again_as_if_it_had_been_run_so(run_file: Path, tmp_path: Path) -> None:
    run_a_file(run_file, out=tmp_path / "runs")
    again = score(tmp_path / "runs/tiny", "protocol", "chexlocalize", None, None)
    run_a_file(run_file, ["name=other", "benchmark.protocol=chexlocalize"], out=tmp_path / "runs")
    direct = json.loads(next((tmp_path / "runs/other").rglob("summary.json")).read_text())
    assert again.summary.to_json()["cells"] == direct["cells"]
    assert again.summary.data["thresholds"] == direct["data"]["thresholds"]
    assert json.loads((again.folder / "summary.json").read_text()) == direct
    assert (again.folder / "tables/overview.csv").is_file()
    assert len(list((tmp_path / "runs/tiny/readings").glob("*/summary.json"))) == 2


def test_a_dataset_that_changed_since_the_run_is_not_scored(tiny_manifest: Path, tmp_path: Path) -> None:
    data = shutil.copytree(tiny_manifest, tmp_path / "data")
    (tmp_path / "run.yaml").write_text(
        f"name: own\nbenchmark: {{name: xbench, replicates: 0, datasets: [{{name: manifest, root: {data}}}]}}\n"
        "models: [{name: baseline_centre}]\n"
    )
    run_a_file(tmp_path / "run.yaml", out=tmp_path / "runs")
    first, *others = (data / "manifest.jsonl").read_text().splitlines()
    for lines in (others, [json.dumps({**json.loads(first), "boxes": {"Mass": [[0, 0, 3, 3]]}}), *others]):
        (data / "manifest.jsonl").write_text("\n".join(lines))
        with pytest.raises(RunError, match="has changed since the run"):
            score(tmp_path / "runs/own", "protocol", "xbench", None, None)


def test_maps_made_elsewhere_are_read_again_and_must_not_have_changed(tiny_manifest: Path, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    rng = np.random.default_rng(0)
    for line in (tiny_manifest / "manifest.jsonl").read_text().splitlines():
        record = json.loads(line)
        for finding in record["boxes"]:
            (maps / record["case_id"]).mkdir(parents=True, exist_ok=True)
            np.save(maps / record["case_id"] / f"{finding}.npy", rng.random((5, 6)).astype(np.float32))
    (tmp_path / "run.yaml").write_text(
        "name: pre\n"
        f"benchmark: {{name: xbench, replicates: 0, datasets: [{{name: manifest, root: {tiny_manifest}}}]}}\n"
        f"models: [{{name: precomputed, maps: {maps}}}]\n"
    )
    before = run_a_file(tmp_path / "run.yaml", out=tmp_path / "runs").summary
    again = score(tmp_path / "runs/pre", "protocol", "xbench", None, None).summary
    assert again.cells == before.cells
    changed = next(maps.rglob("*.npy"))
    np.save(changed, np.eye(3, dtype=np.float32))
    with pytest.raises(RunError, match="has changed"):
        score(tmp_path / "runs/pre", "protocol", "xbench", None, None)


def test_choices_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{base: medklip, ties: first}")
    assert read_choice(str(tmp_path / "mine.yaml"), "protocol") == {"base": "medklip", "ties": "first"}
    assert read_choice("chexlocalize", "protocol") == "chexlocalize"
    for wrong in ("3", "{base: ", "[a]"):
        with pytest.raises(ConfigError):
            read_choice(wrong, "protocol")


def test_a_run_is_read_only_in_ways_that_its_benchmark_has(run_file: Path, tmp_path: Path) -> None:
    run_a_file(run_file, out=tmp_path / "runs")
    with pytest.raises(ConfigError, match="xbench has no judge to choose"):
        score(tmp_path / "runs/tiny", "judge", "evidence", None, None)


def test_score_takes_a_run_or_two_files(tmp_path: Path) -> None:
    for arguments in ((None, None, None), (tmp_path, tmp_path, tmp_path), (None, tmp_path, None)):
        with pytest.raises(ConfigError, match="a run folder, or cases and maps"):
            score(arguments[0], "protocol", "xbench", arguments[1], arguments[2])
    with pytest.raises(MedgroundError):
        score(tmp_path / "nothing", "protocol", "xbench", None, None)
