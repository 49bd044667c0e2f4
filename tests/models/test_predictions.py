"""Predictions made elsewhere: every form that people have, held against the data and the picture."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from medground.errors import DataError, ImageError, ModelError
from medground.imaging import rle
from medground.imaging.reading import Radiograph
from medground.imaging.shapes import hold_shape
from medground.models.precomputed import Precomputed
from medground.models.predictions.maps import Maps
from medground.models.predictions.pickles import map_of_pickle
from medground.models.predictions.scores import read_scores

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 12


def picture(case_id: str, width: int = 40, height: int = 30) -> Radiograph:
    return Radiograph(np.zeros((height, width), dtype=np.float32), case_id=case_id)


def saved(path: Path, array: NDArray[Any] = VALUES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return path


def chexlocalize_pickle() -> bytes:
    tensor = torch.from_numpy(VALUES)[None, None]
    return pickle.dumps({"map": tensor, "prob": 0.3, "task": "Edema", "gt": 1, "cxr_dims": (40, 30)})


@pytest.mark.parametrize("form", ["npy", "npz", "png", "pkl", "table", "one npz", "json", "segmentation", "boxes"])
def test_one_map_in_every_form(form: str, tmp_path: Path) -> None:
    root = tmp_path / "maps"
    expected: NDArray[Any] = VALUES
    if form == "npy":
        saved(root / "a/Mass.npy")
    elif form == "npz":
        saved(root / "a/Mass.npy").unlink()
        np.savez(root / "a/Mass.npz", map=VALUES)
    elif form == "png":
        (root / "a").mkdir(parents=True)
        Image.fromarray(np.array([[0, 255], [51, 102]], dtype=np.uint8)).save(root / "a/Mass.png")
        expected = np.array([[0, 1], [0.2, 0.4]])
    elif form == "pkl":
        root.mkdir()
        (root / "a_Mass_map.pkl").write_bytes(chexlocalize_pickle())
    elif form == "table":
        saved(root / "files/1.npy")
        (root / "maps.csv").write_text("case_id;finding;file\na;Mass;files/1.npy\n")
    elif form == "one npz":
        root = tmp_path / "maps.npz"
        np.savez(root, **{"a/Mass": VALUES})
    elif form == "json":
        root = tmp_path / "maps.json"
        root.write_text(json.dumps({"a/Mass": VALUES.tolist()}))
    elif form == "segmentation":
        root = tmp_path / "pred_segmentations.json"
        expected = (VALUES > 0.5).astype(float)
        code = rle.string_from_counts(rle.counts_from_mask(expected > 0))
        root.write_text(json.dumps({"a": {"img_size": [3, 4], "Mass": {"size": [3, 4], "counts": code}}}))
    else:
        root.mkdir()
        (root / "boxes.csv").write_text(
            "case_id,finding,x0,y0,x1,y1,width,height,score\na,Mass,0,0,2,1,4,3,0.5\na,Mass,1,0,3,2,4,3,0.9\n"
        )
        expected = np.array([[0.5, 0.9, 0.9, 0], [0, 0.9, 0.9, 0], [0, 0, 0, 0]])
    said = Precomputed(root).predict([picture("a")], ["Mass"])
    assert said.saliency is not None
    np.testing.assert_allclose(said.saliency[0][0], expected, atol=1e-7)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("what", ["tensor", "array", "view", "doubles", "alone"])
def test_pickles_give_the_numbers_that_unpickling_would(what: str, protocol: int) -> None:
    tensor: Any = {
        "tensor": torch.from_numpy(VALUES),
        "array": VALUES.copy(),
        "view": torch.from_numpy(np.tile(VALUES, (2, 2)))[::2, 1::3],
        "doubles": torch.from_numpy(VALUES.astype(np.float64)),
        "alone": VALUES.T.copy(),
    }[what]
    data = pickle.dumps(tensor if what == "alone" else {"map": tensor, "prob": np.float32(0.1)}, protocol=protocol)
    np.testing.assert_array_equal(map_of_pickle(data), np.asarray(tensor))


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    data = pickle.dumps({"map": VALUES, "prob": Trap(tmp_path / "ran")})
    np.testing.assert_array_equal(map_of_pickle(data), VALUES)
    with pytest.raises(ImageError, match="no array"):
        map_of_pickle(pickle.dumps({"map": Trap(tmp_path / "ran")}))
    assert not (tmp_path / "ran").exists()
    for broken in (b"", b"\x80\x04", chexlocalize_pickle()[:-40], pickle.dumps({"x": 1}), pickle.dumps([1])):
        with pytest.raises(ImageError):
            map_of_pickle(broken)


def test_names_are_found_however_they_are_written(tmp_path: Path) -> None:
    saved(tmp_path / "00000032/lung_opacity.npy")
    model = Precomputed(tmp_path)
    assert not model.predict([picture("32")], ["Lung Opacity"]).absent
    (line,) = model.joined([("32", "Lung Opacity")], [("32", "Lung Opacity")])
    assert line == "maps: 1 of 1 localised cases and findings found; 1 of them once ids were written one way"


def test_what_is_missing_and_extra_is_said(tmp_path: Path) -> None:
    for name in ("a/Mass", "b/Mass", "z/Mass"):
        saved(tmp_path / f"{name}.npy")
    (tmp_path / "scores.csv").write_text("case_id,finding,score\na,Mass,0.5\n")
    asked = [(case, finding) for case in "abc" for finding in ("Mass", "Nodule")]
    said, maps, scores = Precomputed(tmp_path).joined([("a", "Mass"), ("c", "Nodule")], asked)
    assert "taken for probabilities" in said
    assert maps == (
        "maps: 1 of 2 localised cases and findings found; 1 missing (c, Nodule); 1 of its entries fits none (z, Mass)"
    )
    assert scores.startswith("scores.csv: 1 of 6 cases and findings found; 5 missing")


def test_maps_in_the_wrong_order_and_scores_of_other_cases_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "Mass/a.npy")
    with pytest.raises(DataError, match="nothing in maps fits") as caught:
        Precomputed(tmp_path).joined([("a", "Mass")], [("a", "Mass")])
    assert "turned round" in str(caught.value)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/scores.csv").write_text("case_id,finding,score\nx-1,Mass,0.5\n")
    with pytest.raises(DataError, match=r"nothing in scores\.csv fits"):
        Precomputed(tmp_path / "other").joined([], [("a", "Mass")])


@pytest.mark.parametrize("second", ["a/Mass.png", "a/Mass.npz", "a/mass.npy", "maps.csv"])
def test_two_maps_of_one_case_and_finding_are_refused(second: str, tmp_path: Path) -> None:
    saved(tmp_path / "a/Mass.npy")
    if second == "maps.csv":
        saved(tmp_path / "b/1.npy")
        (tmp_path / second).write_text("case_id,finding,file\na,Mass,b/1.npy\n")
    else:
        (tmp_path / second).write_bytes(b"x")
    with pytest.raises(DataError, match=r"twice|become one"):
        Precomputed(tmp_path).predict([picture("a")], ["Mass"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("case_id,finding,score\na,Mass,1\na,Mass,2\n", "two lines"),
        ("case_id,finding,score\na,Mass\n", "fewer fields"),
        ("case_id,finding,score\na,Mass,high\n", r"no number[\s\S]*line 2, column score"),
        ("case_id,finding,score,probability\na,Mass,1,1.5\n", r"leaves \[0, 1\]"),
        ("case_id,score\na,1\n", "no column 'finding'"),
        ("case_id\na\n", "no score"),
        ("case_id,Mass\na,1\na,2\n", "two lines"),
    ],
)
def test_tables_of_scores_that_cannot_be_right(table: str, words: str, tmp_path: Path) -> None:
    import re

    (tmp_path / "scores.csv").write_text(table)
    with pytest.raises(ModelError) as caught:
        read_scores(tmp_path / "scores.csv")
    assert re.search(words, str(caught.value))


def test_the_scale_of_scores_is_declared_or_decided_for_a_column_and_said(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("case_id,Mass,Nodule\na,0.2,-1\nb,0.9,0.5\n")
    read = read_scores(path)
    assert read.values["a", "Mass"] == (0.2, 0.2)
    assert np.isnan([read.values[c, "Nodule"][1] for c in "ab"]).all()
    assert "scores of Mass are taken for probabilities" in read.remarks[0]
    assert "scores of Nodule are taken for a ranking" in read.remarks[1]
    assert read_scores(path, "logit").values["b", "Nodule"] == (0.5, pytest.approx(1 / (1 + np.exp(-0.5))))
    assert np.isnan(read_scores(path, "ranking").values["a", "Mass"][1])
    with pytest.raises(ModelError, match="leaves"):
        read_scores(path, "probability")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_scores_in_other_encodings(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_bytes("case_id;finding;score\nä;Mass;0.5\n".encode(encoding))
    assert Precomputed(tmp_path).predict([picture("ä")], ["Mass"]).scores[0, 0] == 0.5


@pytest.mark.parametrize(
    ("shape", "size"),
    [((400, 200), (400, 200)), ((14, 7), (400, 200)), ((800, 400), (401, 200)), ((1022, 1042), (1022, 1042))],
)
def test_a_turned_map_is_recognised(shape: tuple[int, int], size: tuple[int, int]) -> None:
    with pytest.raises(ImageError, match="turned"):
        hold_shape(shape, size, "m")
    hold_shape(shape[::-1], size, "m")


@pytest.mark.parametrize(("cells", "side"), [(196, 14), (197, 14), (49, 7), (576, 24), (577, 24)])
@pytest.mark.parametrize("turned", [False, True])
def test_an_unfolded_map_is_recognised(cells: int, side: int, turned: bool, tmp_path: Path) -> None:
    row = np.zeros((cells, 1) if turned else (1, cells))
    saved(tmp_path / "a/Mass.npy", row)
    with pytest.raises(ImageError, match=f"a grid of {side} x {side} cells that was unfolded"):
        Precomputed(tmp_path).predict([picture("a")], ["Mass"])


@pytest.mark.parametrize(
    ("shape", "size"),
    [((14, 14), (400, 200)), ((7, 7), (200, 400)), ((5, 6), (64, 80)), ((1, 5), (500, 100)), ((224, 224), (90, 100))],
)
def test_grids_that_models_have_are_left_alone(shape: tuple[int, int], size: tuple[int, int]) -> None:
    hold_shape(shape, size, "m")


def test_boxes_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    head = "case_id,finding,x0,y0,x1,y1,width,height,score\n"
    for rows, words in (
        ("a,Mass,0,0,2,1,4,3,-1\n", "below 0"),
        ("a,Mass,0,0,2,1,4,3,1\na,Mass,0,0,2,1,8,6,1\n", "several frames"),
        ("a,Mass,5,5,9,9,4,3,1\n", "outside its frame"),
    ):
        (tmp_path / "boxes.csv").write_text(head + rows)
        maps = Maps(tmp_path)
        with pytest.raises(DataError, match=words):
            maps.read("a/Mass")


def test_an_archive_that_unpacks_beyond_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medground.models.predictions import maps

    monkeypatch.setattr(maps, "_MOST", 100)
    out = io.BytesIO()
    np.savez_compressed(out, **{"a/Mass": np.zeros((200, 200))})
    (tmp_path / "m.npz").write_bytes(out.getvalue())
    with pytest.raises(DataError, match="more memory"):
        Maps(tmp_path / "m.npz")
