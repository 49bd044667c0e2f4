"""Annotations in usual forms become a manifest whose regions are the same pixels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image
from typer.testing import CliRunner

from medground.cli import app
from medground.commands.import_ import FORMS, import_annotations, names_of
from medground.datasets.manifest import Manifest
from medground.errors import ConfigError, DataError
from medground.importing.lines import Wishes
from medground.importing.yolo import read as read_yolo

FRAME = (40, 30)


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[str], Path]:
    """Write a picture of 40 x 30 below the folder."""

    def write(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros(FRAME[::-1], np.uint8)).save(path)
        return path

    return write


def masks(manifest: Path) -> dict[str, dict[str, np.ndarray]]:
    """The regions of a manifest as masks of the pictures, through the dataset that reads it."""
    cases = Manifest(manifest).cases()
    return {case.case_id: {f: np.asarray(case.regions[f].mask(FRAME)) for f in case.regions} for case in cases}


def block(x0: int, y0: int, x1: int, y1: int) -> np.ndarray:
    mask = np.zeros(FRAME[::-1], bool)
    mask[y0:y1, x0:x1] = True
    return mask


def coco(folder: Path, **changes: Any) -> Path:
    content = {
        "images": [{"id": 7, "file_name": "a.png", "width": 40, "height": 30}],
        "categories": [{"id": 2, "name": "nodule"}, {"id": 5, "name": "effusion"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 2, "bbox": [3, 4, 10, 5]},
            {
                "id": 2,
                "image_id": 7,
                "category_id": 5,
                "segmentation": {"size": [30, 40], "counts": [0, 30, 1170]},
                "bbox": [0, 0, 1, 30],
            },
        ],
    } | changes
    path = folder / "instances.json"
    path.write_text(json.dumps(content))
    return path


def test_coco_gives_boxes_and_codes(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("images/a.png")
    imported = import_annotations("coco", coco(tmp_path), None, Wishes(names={"nodule": "Nodule"}))
    assert imported.manifest == tmp_path / "manifest.jsonl"
    assert imported.findings == {"Nodule": (1, 0, 0, 1), "effusion": (1, 0, 0, 1)}
    held = masks(imported.manifest)["a"]
    assert np.array_equal(held["Nodule"], block(3, 4, 13, 9))
    assert np.array_equal(held["effusion"], block(0, 0, 1, 30))


def test_an_outline_of_coco_is_its_region(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("a.png")
    outline = {
        "id": 1,
        "image_id": 7,
        "category_id": 2,
        "segmentation": [[5, 6, 14, 6, 14, 12, 5, 12]],
        "bbox": [0] * 4,
    }
    imported = import_annotations("coco", coco(tmp_path, annotations=[outline]), None, Wishes(exhaustive=True))
    assert imported.findings["effusion"] == (0, 1, 0, 0)
    # Outlines are filled with their edge.
    assert np.array_equal(masks(imported.manifest)["a"]["nodule"], block(5, 6, 15, 13))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"annotations": [{"image_id": 8, "category_id": 2, "bbox": [0, 0, 1, 1]}]}, "refers to nothing"),
        ({"annotations": [{"image_id": 7, "category_id": 2}]}, "no region"),
        ({"annotations": [{"image_id": 7, "category_id": 2, "bbox": [0, 0, "x", 1]}]}, "no number"),
        ({"images": [{"id": 7, "file_name": "../../etc/passwd", "width": 1, "height": 1}]}, "outside"),
        ({"images": [{"id": 7, "file_name": "b.png", "width": 1, "height": 1}]}, "no such picture"),
        ({"images": [{"id": 7, "file_name": "a.png"}]}, "no size"),
        ({"categories": [{"id": 2, "name": "x"}, {"id": 2, "name": "y"}]}, "no id of its own"),
        ({"categories": None}, "no COCO file"),
    ],
)
def test_a_coco_file_that_is_wrong_is_refused(
    picture: Callable[[str], Path], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    picture("a.png")
    with pytest.raises(DataError, match=words):
        import_annotations("coco", coco(tmp_path, **changes), None, Wishes())
    assert not (tmp_path / "manifest.jsonl").exists()


VOC = """<annotation><filename>{name}</filename><size><width>40</width><height>30</height></size>
<object><name>nodule</name><bndbox><xmin>4</xmin><ymin>5</ymin><xmax>13</xmax><ymax>9</ymax></bndbox></object>
</annotation>"""


def test_voc_counts_pixels_from_one_and_holds_the_last(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("JPEGImages/a.png")
    (tmp_path / "Annotations").mkdir()
    (tmp_path / "Annotations/a.xml").write_text(VOC.format(name="a.png"))
    imported = import_annotations("voc", tmp_path, None, Wishes())
    assert np.array_equal(masks(imported.manifest)["a"]["nodule"], block(3, 4, 13, 9))
    again = import_annotations("voc", tmp_path, None, Wishes(first_pixel=0), replace=True)
    assert np.array_equal(masks(again.manifest)["a"]["nodule"], block(4, 5, 14, 10))


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation/>",
        "<annotation>",
        "<other/>",
        VOC.format(name="../a.png"),
        VOC.format(name="a.png").replace("<name>nodule</name>", ""),
    ],
)
def test_an_annotation_of_voc_that_is_wrong_is_refused(
    picture: Callable[[str], Path], tmp_path: Path, text: str
) -> None:
    picture("a.png")
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(DataError):
        import_annotations("voc", tmp_path, None, Wishes())


def yolo(folder: Path, text: str) -> Path:
    (folder / "labels").mkdir(exist_ok=True)
    (folder / "labels/a.txt").write_text(text)
    (folder / "data.yaml").write_text("names: {0: nodule, 1: effusion}\n")
    return folder


def test_yolo_gives_boxes_in_pixels(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("images/a.png")
    picture("images/bare.png")
    source = yolo(tmp_path, "0 0.25 0.5 0.5 0.2\n")
    imported = import_annotations("yolo", source, None, Wishes(exhaustive=True))
    assert imported.cases == 2
    # A picture without a text file was not annotated, whatever is said of those that were.
    assert imported.findings == {"nodule": (1, 0, 1, 1), "effusion": (0, 1, 1, 0)}
    assert np.array_equal(masks(imported.manifest)["a"]["nodule"], block(0, 12, 20, 18))


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.integers(0, 38)] * 2, *[st.integers(0, 28)] * 2))
def test_a_box_survives_its_shares(tmp_path_factory: pytest.TempPathFactory, corners: tuple[int, ...]) -> None:
    (x0, x1), (y0, y1) = sorted(corners[:2]), sorted(corners[2:])
    x1, y1 = x1 + 1, y1 + 1
    folder = tmp_path_factory.mktemp("yolo")
    (folder / "images").mkdir()
    Image.fromarray(np.zeros(FRAME[::-1], np.uint8)).save(folder / "images/a.png")
    shares = [(x0 + x1) / 80, (y0 + y1) / 60, (x1 - x0) / 40, (y1 - y0) / 30]
    yolo(folder, "1 " + " ".join(f"{share:.6f}" for share in shares))
    (line,) = read_yolo(folder, Wishes())
    np.testing.assert_allclose(line.regions["boxes"]["effusion"], [[x0, y0, x1, y1]], atol=1e-3)


@pytest.mark.parametrize(
    "text", ["2 0.5 0.5 0.1 0.1", "0 0.5 0.5 0.1", "0 5 5 2 2", "x 0.5 0.5 0.1 0.1", "0 nan 0 0 0"]
)
def test_a_line_of_yolo_that_is_wrong_is_refused(picture: Callable[[str], Path], tmp_path: Path, text: str) -> None:
    picture("images/a.png")
    with pytest.raises(DataError) as caught:
        import_annotations("yolo", yolo(tmp_path, text), None, Wishes())
    assert "line 1" in str(caught.value)


def test_labelme_gives_rectangles_outlines_and_circles(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("a.png")
    shapes = [
        {"label": "nodule", "shape_type": "rectangle", "points": [[13, 9], [3, 4]]},
        {"label": "mass", "shape_type": "polygon", "points": [[5, 6], [14, 6], [14, 12], [5, 12]]},
        {"label": "disc", "shape_type": "circle", "points": [[20, 15], [20, 25]]},
    ]
    content = {"imagePath": "..\\elsewhere\\a.png", "imageWidth": 40, "imageHeight": 30, "shapes": shapes}
    (tmp_path / "a.json").write_text(json.dumps(content))
    held = masks(import_annotations("labelme", tmp_path, None, Wishes()).manifest)["a"]
    assert np.array_equal(held["nodule"], block(3, 4, 13, 9))
    assert np.array_equal(held["mass"], block(5, 6, 15, 13))
    assert abs(int(held["disc"].sum()) - np.pi * 10.5**2) < 25
    (tmp_path / "a.json").write_text(json.dumps(content | {"shapes": [shapes[0] | {"shape_type": "point"}]}))
    with pytest.raises(DataError, match="no area"):
        import_annotations("labelme", tmp_path, None, Wishes(), replace=True)


def test_folders_give_each_picture_its_class_and_no_other(picture: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("pneumonia/p1_a.png", "normal/p1_a.png", "normal/p2_b.png"):
        picture(name)
    wishes = Wishes(names={"normal": "", "pneumonia": "Pneumonia"}, patient=r"^(p\d+)_")
    imported = import_annotations("folders", tmp_path, None, wishes)
    assert (imported.cases, imported.patients) == (3, 2)
    assert imported.findings == {"Pneumonia": (1, 2, 0, 0)}
    assert [(c.case_id, c.patient_id, c.labels["Pneumonia"]) for c in Manifest(imported.manifest).cases()] == [
        ("normal/p1_a", "p1", False),
        ("normal/p2_b", "p2", False),
        ("pneumonia/p1_a", "p1", True),
    ]
    with pytest.raises(DataError, match="no patient"):
        import_annotations("folders", tmp_path, None, Wishes(patient=r"^(q\d+)"), replace=True)


def test_a_table_of_columns_of_labels(picture: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(name)
    (tmp_path / "t.csv").write_text("File;Person;Pl. Eff.;Nodule\na.png;p1;1;0\nb.png;p2;-1;\n")
    pairs = names_of(["File=image", "Person=patient_id", "Pl. Eff.=Effusion", "Nodule=Nodule"])
    imported = import_annotations("csv", tmp_path / "t.csv", None, Wishes(names=pairs))
    assert imported.findings == {"Effusion": (1, 0, 1, 0), "Nodule": (0, 1, 1, 0)}
    assert imported.patients == 2


def test_a_table_of_one_finding_a_row(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("a.png")
    (tmp_path / "t.csv").write_text("image,finding,x0,y0,x1,y1\na.png,Nodule,3,4,13,9\na.png,Mass,,,,\n")
    imported = import_annotations("csv", tmp_path / "t.csv", None, Wishes())
    assert imported.findings == {"Nodule": (1, 0, 0, 1), "Mass": (1, 0, 0, 0)}
    assert np.array_equal(masks(imported.manifest)["a"]["Nodule"], block(3, 4, 13, 9))


@pytest.mark.parametrize(
    ("text", "names", "error"),
    [
        ("image,Nodule\na.png,maybe\n", {"Nodule": "Nodule"}, DataError),
        ("image,Nodule\na.png,1\na.png,0\n", {"Nodule": "Nodule"}, DataError),
        ("image,patient_id,Nodule\na.png,p,1\na.png,q,1\n", {"Nodule": "Nodule"}, DataError),
        ("image,finding,label,x0,y0,x1,y1\na.png,Mass,0,1,1,2,2\n", {}, DataError),
        ("image,Nodule\na.png,1\n", {"Mass": "Mass"}, ConfigError),
        ("image,Nodule\na.png,1\n", {}, ConfigError),
        ("File,Nodule\na.png,1\n", {"Nodule": "Nodule"}, ConfigError),
        ("image,File,Nodule\na.png,a.png,1\n", {"File": "image", "Nodule": "Nodule"}, ConfigError),
    ],
)
def test_a_table_that_is_wrong_is_refused(
    picture: Callable[[str], Path], tmp_path: Path, text: str, names: dict[str, str], error: type[Exception]
) -> None:
    picture("a.png")
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(error):
        import_annotations("csv", tmp_path / "t.csv", None, Wishes(names=names))


def test_the_command_says_what_the_manifest_holds(picture: Callable[[str], Path], tmp_path: Path) -> None:
    picture("pneumonia/a.png")
    picture("normal/b.png")
    call = ["import", "folders", str(tmp_path), "--map", "normal="]
    first = CliRunner().invoke(app, call)
    assert first.exit_code == 0, first.output
    assert "pneumonia: 1 present, 1 absent" in first.output
    assert "name: manifest" in first.output
    assert CliRunner().invoke(app, call).exit_code != 0
    shown = CliRunner().invoke(app, [*call, "--replace", "--json"])
    assert json.loads(shown.output)["cases"] == 2


def test_every_form_has_its_reader() -> None:
    folder = Path(import_annotations.__code__.co_filename).parents[1] / "importing"
    assert {path.stem for path in folder.glob("*.py")} == {*FORMS, "lines", "__init__"}
