"""Maps made elsewhere: found by case and finding, never invented, never read from outside the folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.errors import DatasetError, ImageError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder
from medground.models.precomputed import Precomputed


def picture(case_id: str) -> Radiograph:
    return Radiograph(np.zeros((20, 30), dtype=np.float32), case_id=case_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for case in ("a", "b"):
        (tmp_path / case).mkdir()
    np.save(tmp_path / "a/Mass.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.savez(tmp_path / "a/Nodule.npz", map=np.ones((4, 4)), other=np.zeros(3))
    Image.fromarray(np.array([[0, 65535], [32768, 1]], dtype=np.uint16)).save(tmp_path / "b/Mass.png")
    return tmp_path


def test_maps_are_found_by_case_and_finding(folder: Path) -> None:
    model = Precomputed(folder)
    assert isinstance(model, Grounder)
    said = model.predict([picture("a"), picture("b")], ["Mass", "Nodule"])
    assert said.saliency is not None
    np.testing.assert_array_equal(said.saliency[0][0], np.arange(6).reshape(2, 3))
    np.testing.assert_allclose(said.saliency[1][0], [[0, 1], [32768 / 65535, 1 / 65535]])
    assert said.saliency[0][1].shape == (4, 4)
    assert said.absent == {(1, 1): "no map in the folder"}
    digest = hashlib.sha256((folder / "a/Mass.npy").read_bytes()).hexdigest()
    assert said.origin[0, 0] == ("a/Mass.npy", digest)
    assert np.isnan(said.scores).all()


def test_a_table_names_maps_and_scores(folder: Path) -> None:
    (folder / "maps.csv").write_text("case_id,finding,file\nc/1,Mass,b/Mass.png\n")
    (folder / "scores.csv").write_text("case_id,finding,score,probability\nc/1,Mass,0.25,\na,Mass,3,0.9\nb,Mass,4,\n")
    said = Precomputed(folder).predict([picture("c/1"), picture("a"), picture("b")], ["Mass"])
    assert not said.absent
    np.testing.assert_array_equal(said.scores[:, 0], [0.25, 3, 4])
    np.testing.assert_array_equal(said.probabilities[:, 0], [np.nan, 0.9, np.nan])


def test_the_scale_belongs_to_the_column(folder: Path) -> None:
    # Of logits between -3 and 3.5, four lie in [0, 1]: none of them is a probability.
    logits = [-3.0, -1.5, 0.2, 0.4, 0.9, 1.0, 1.7, 2.2, 3.0, 3.5]
    lines = "\n".join(f"c{i},Mass,{x}" for i, x in enumerate(logits))
    (folder / "scores.csv").write_text(f"case_id,finding,score\n{lines}\n")
    said = Precomputed(folder).predict([picture(f"c{i}") for i in range(10)], ["Mass"])
    np.testing.assert_array_equal(said.scores[:, 0], logits)
    assert np.isnan(said.probabilities).all()
    lines = "\n".join(f"c{i},Mass,{x / 10}" for i, x in enumerate(range(10)))
    (folder / "scores.csv").write_text(f"case_id,finding,score\n{lines}\n")
    said = Precomputed(folder).predict([picture(f"c{i}") for i in range(10)], ["Mass"])
    np.testing.assert_array_equal(said.probabilities, said.scores)


def test_other_files_are_another_model(folder: Path) -> None:
    before = Precomputed(folder).fingerprint()
    assert Precomputed(folder).fingerprint() == before
    np.save(folder / "b/Nodule.npy", np.ones((2, 2)))
    assert Precomputed(folder).fingerprint() != before


def test_a_table_cannot_lead_outside(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.npy"
    np.save(outside, np.ones((2, 2)))
    for name in ("../../etc/passwd", str(outside)):
        (folder / "maps.csv").write_text(f"case_id,finding,file\nq,Mass,{name}\n")
        with pytest.raises(DatasetError, match="outside"):
            Precomputed(folder).predict([picture("q")], ["Mass"])
    (folder / "maps.csv").unlink()
    (folder / "a/Mass.npy").unlink()
    (folder / "a/Mass.npy").symlink_to(outside)
    with pytest.raises(DatasetError, match="outside"):
        Precomputed(folder).predict([picture("a")], ["Mass"])
    assert Precomputed(folder).predict([picture("../outside")], ["x"]).absent


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", b"not numpy"),
        ("x.npy", b""),
        ("x.npz", b"PK\x03\x04 broken"),
        ("x.png", b"\x89PNG\r\n\x1a\n broken"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_bytes(content)
    with pytest.raises(ImageError, match="cannot be read"):
        Precomputed(tmp_path).predict([picture("a")], ["x"])


def test_what_is_no_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a/x.npy", np.eye(2))
    model = Precomputed(tmp_path)
    for array in (np.ones((2, 2, 3)), np.ones(4), np.array([["a"]]), np.zeros((0, 3)), np.array([[1j]])):
        np.save(tmp_path / "a/x.npy", array)
        with pytest.raises(ImageError, match="not a picture of numbers"):
            model.predict([picture("a")], ["x"])
    np.save(tmp_path / "a/x.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(ImageError, match="cannot be read"):
        model.predict([picture("a")], ["x"])
    (tmp_path / "a/x.npy").unlink()
    np.savez(tmp_path / "a/x.npz", one=np.ones((2, 2)), two=np.ones((2, 2)))
    with pytest.raises(ImageError, match="several arrays"):
        Precomputed(tmp_path).predict([picture("a")], ["x"])
    (tmp_path / "a/x.npz").unlink()
    Image.new("RGB", (3, 3)).save(tmp_path / "a/x.png")
    with pytest.raises(ImageError, match="not grey"):
        Precomputed(tmp_path).predict([picture("a")], ["x"])


def test_wrong_tables_and_folders_are_explained(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        Precomputed(tmp_path / "no")
    (tmp_path / "empty/a").mkdir(parents=True)
    with pytest.raises(ModelError, match="no maps and no scores"):
        Precomputed(tmp_path / "empty")
    (folder / "scores.csv").write_text("case,finding,score\n")
    with pytest.raises(ModelError, match="no column"):
        Precomputed(folder)
    (folder / "scores.csv").write_text("case_id,finding,score\na,Mass,high\n")
    with pytest.raises(ModelError, match="no number"):
        Precomputed(folder)
    (folder / "scores.csv").unlink()
    (folder / "maps.csv").write_text("case_id,finding,file\nq,Mass,gone.npy\n")
    with pytest.raises(ImageError, match="not there"):
        Precomputed(folder).predict([picture("q")], ["Mass"])
