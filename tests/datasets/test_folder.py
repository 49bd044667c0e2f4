"""What loaders of folders share: tables, vocabulary, names of files, masks."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from medground.datasets._folder.inside import Inside
from medground.datasets._folder.masks import read_mask
from medground.datasets._folder.pictures import Pictures
from medground.datasets._folder.tables import number, read_json, read_rows, read_table, truth
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.base import DatasetInfo
from medground.errors import DatasetError, RegionError

INFO = DatasetInfo(
    "A set",
    ("Lung Opacity", "Mass"),
    "free",
    True,
    "none",
    "here",
    aliases={"Airspace Opacity": "Lung Opacity"},
    further=("Edema",),
)


@pytest.mark.parametrize(
    "text",
    [
        "id,value\nx,1\n\ny,\n",
        "\ufeff id , value \n x , 1 \n y ,  \n",
        "value,other,ID\r\n1,z,x\r\n,z,y\r\n",
        'id,value,,\nx,1,,\n"y","",,\n',
        "id;value;;\nx;1;;\n y ; ;;\n",
        "id\tvalue\nx\t1\ny\t\n",
    ],
)
def test_tables_in_every_shape(folder, text):
    table = read_table(folder.write("t.csv", text), ["id", "value"], ["more"])
    assert table.rows() == [("x", "1", None), ("y", None, None)]


def test_a_line_that_is_cut_off_is_refused(folder):
    file = folder.write("t.csv", "id,value\nx,1\n\ny\n")
    with pytest.raises(DatasetError, match="fewer fields than its header") as caught:
        read_table(file, ["id", "value"])
    assert "line 4" in str(caught.value)


@pytest.mark.parametrize("row", ["x,1,surplus", 'x,"1, 2",3', "x,1,,3"])
def test_a_line_with_more_filled_fields_than_its_header_is_refused(folder, row):
    file = folder.write("t.csv", f"id,value\ny,2\n{row}\n")
    with pytest.raises(DatasetError, match="more fields than its header") as caught:
        read_table(file, ["id", "value"])
    assert "line 3" in str(caught.value)


@pytest.mark.parametrize("ending", ["", ".gz", ".zip"])
def test_tables_may_be_packed(folder, ending):
    content = b"id\nx\n"
    if ending == ".gz":
        content = gzip.compress(content)
    if ending == ".zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("t.csv", content)
            archive.writestr("__MACOSX/t.csv", b"")
        content = buffer.getvalue()
    assert read_table(folder.write(f"t.csv{ending}", content), ["id"]).rows() == [("x",)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "empty"),
        ("t.csv", b" \n \n", "empty"),
        ("t.csv", b"id,id \n1,2\n", "column twice"),
        ("t.csv", b"id,id\n1,2\n", "column twice"),
        ("t.csv", b"name\n1\n", "no column 'id'"),
        ("t.csv.gz", b"no gzip", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"id\nx\n" * 99, mtime=0)[:-20], "cannot be read"),
        ("t.csv.zip", b"no zip", "cannot be read"),
    ],
)
def test_bad_tables_are_named(folder, name, content, words):
    with pytest.raises(DatasetError, match=words) as caught:
        read_table(folder.write(name, content), ["id"])
    assert name in str(caught.value)


def test_an_archive_of_several_tables_is_refused(folder):
    with zipfile.ZipFile(folder.root / "t.csv.zip", "w") as archive:
        archive.writestr("a.csv", "id\n")
        archive.writestr("b.csv", "id\n")
    with pytest.raises(DatasetError, match="several files"):
        read_table(folder.root / "t.csv.zip", ["id"])


def test_absent_files_are_named(folder):
    for read in (read_rows, partial(read_json, kind=dict), partial(read_table, required=["id"])):
        with pytest.raises(DatasetError) as caught:
            read(folder.root / "absent")
        assert "absent" in str(caught.value)


def test_numbers_and_truths():
    assert [number(t) for t in ("1.5", " 2 ", "-3", "", "nan", "inf", "1,5", None)] == [1.5, 2, -3, *[None] * 5]
    assert [truth(t) for t in ("1", "1.0", "0", "-1", "0.5", "yes", None)] == [True, True, False, *[None] * 4]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive(value):
    assert number(repr(value)) == value


def test_the_vocabulary_knows_aliases_and_forgives_case_and_underscores():
    vocabulary = Vocabulary(INFO)
    assert vocabulary.get("airspace_opacity") == vocabulary.get(" LUNG  Opacity ") == "Lung Opacity"
    assert vocabulary.get("Opacity") is None
    assert vocabulary.pick(["Edema", "Airspace Opacity"]) == ("Edema", "Lung Opacity")
    assert vocabulary.pick([]) == ()


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["Masss"], "did you mean 'Mass'?"),
        (["Airspace Opacty"], "did you mean 'Airspace Opacity'?"),
        (["Mass", "mass"], "twice"),
        (["Lung Opacity", "Airspace Opacity"], "twice"),
    ],
)
def test_wrong_findings_are_refused(wanted, words):
    with pytest.raises(DatasetError) as caught:
        Vocabulary(INFO).pick(wanted)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "out/x", "a/link", "", ".", "a/..", "\0"])
def test_names_that_lead_outside_are_refused(folder, another, name):
    folder.picture("a/in.png")
    (folder.root / "out").symlink_to(another.root)
    (folder.root / "a/link").symlink_to(another.root / "x")
    inside = Inside(folder.root)
    with pytest.raises(DatasetError, match=r"outside|names no file"):
        inside(name)
    assert inside("a/in.png") == folder.root / "a/in.png"
    assert inside("a/../a/in.png") == folder.root / "a/in.png"
    assert inside("not/there.png") == folder.root / "not/there.png"


def test_allowed_folders_are_inside(folder, another):
    (folder.root / "out").symlink_to(another.root)
    assert Inside(folder.root, [another.root])("out/x") == another.root / "x"


@pytest.mark.parametrize("mode", ["1", "L", "I;16"])
def test_masks_of_one_channel(folder, mode):
    mask = np.random.default_rng(1).random((5, 9)) > 0.5
    values = mask if mode == "1" else mask.astype(np.uint8 if mode == "L" else np.uint16) * 200
    Image.fromarray(values).save(folder.root / "m.png")
    region = read_mask(folder.root / "m.png")
    assert np.array_equal(region.mask(), mask)
    assert read_mask(folder.root / "m.png", above=200).is_empty


def test_a_mask_that_would_fill_the_memory_is_refused(folder, monkeypatch):
    folder.picture("m.png", size=(300, 300))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(RegionError, match="cannot be decoded"):
        read_mask(folder.root / "m.png")


def test_a_link_in_a_circle_is_no_folder(folder):
    folder.picture("images/a.png")
    for name in ("loop", "loop.png"):
        (folder.root / "images" / name).symlink_to(name)
    pictures = Pictures(folder.root, ["images"], key=lambda path: path.stem)
    assert pictures.keys() == {"a", "loop"}
    with contextlib.suppress(DatasetError):  # Python tells a circle until 3.12
        assert not pictures.locate("loop").is_file()


def test_hidden_and_other_files_are_no_pictures(folder):
    folder.picture("images/a.png", "images/._a.png", "images/__MACOSX/a.png", "images/.cache/a.png")
    folder.write("images/a.json", b"{}")
    pictures = Pictures(folder.root, ["images"], key=lambda path: path.stem)
    assert pictures.keys() == {"a"}
    assert pictures.locate("a") == folder.root / "images/a.png"
    assert pictures.locate("b") is None


def test_copies_in_one_folder_cannot_be_chosen_by_folder(folder):
    folder.picture("images/a.png", "images/a.jpg")
    with pytest.raises(DatasetError, match="2 times") as caught:
        Pictures(folder.root, ["images"], key=lambda path: path.stem).locate("a")
    assert "remove all copies but one" in str(caught.value)


def test_a_folder_that_cannot_be_listed_is_named(folder, monkeypatch):
    folder.picture("images/a.png")

    def refuse(path):
        raise PermissionError(13, "no entry", str(path))

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(DatasetError, match="cannot be listed") as caught:
        Pictures(folder.root, ["images"], key=lambda path: path.stem)
    assert "no entry" in str(caught.value)
