import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.errors import ImageError
from medground.imaging import _files
from medground.imaging.reading import Radiograph, image_size, read_radiograph

STARRED = Path(__file__).parents[1] / "golden" / "metrics" / "starred"


def expected_of(case):
    return json.loads((STARRED / case / "expected.json").read_text())["expected"]


@pytest.mark.parametrize("name", ["plain", "window", "negative_slope", "monochrome2_window"])
def test_starred_monochrome1(name):
    picture = read_radiograph(STARRED / "T07_monochrome1" / f"{name}.dcm")
    np.testing.assert_allclose(picture.pixels, expected_of("T07_monochrome1")["display_0_1"][name], atol=1e-7)
    assert picture.steps.count("inverted: MONOCHROME1") == (name != "monochrome2_window")


def test_starred_bit_depth():
    expected = expected_of("T08_bit_depth")
    for name, values in expected["display_0_1"].items():
        picture = read_radiograph(STARRED / "T08_bit_depth" / name)
        np.testing.assert_allclose(picture.pixels, values, atol=1e-7)
        assert list(picture.value_range) == expected["range_recorded"][name]


def test_a_radiograph_carries_its_ids_and_its_source(tmp_path):
    path = tmp_path / "deep" / "x.png"
    path.parent.mkdir()
    Image.new("L", (5, 4), 51).save(path)
    picture = read_radiograph(str(path), case_id="c1", patient_id="p1")
    assert (picture.case_id, picture.patient_id, picture.source) == ("c1", "p1", "x.png")
    assert picture.size == (5, 4)
    other = picture.with_ids("c2", None)
    assert (other.case_id, other.patient_id, other.source) == ("c2", None, "x.png")
    assert other.pixels is picture.pixels
    with pytest.raises(ValueError, match="read-only"):
        picture.pixels[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        picture.case_id = "c3"


def test_a_radiograph_can_be_made_by_hand():
    picture = Radiograph(np.zeros((2, 3), np.float32))
    assert picture.size == (3, 2)
    assert picture != Radiograph(np.zeros((2, 3), np.float32))  # compared by identity, not by pixels


def test_the_kind_is_told_by_content(tmp_path, dicom):
    Image.new("L", (5, 4)).save(tmp_path / "a.png")
    names = [("a.png", "a.dcm"), ("a.png", "nameless")]
    for old, new in names:
        (tmp_path / new).write_bytes((tmp_path / old).read_bytes())
        assert read_radiograph(tmp_path / new).size == (5, 4)
    path = dicom(np.zeros((4, 5), np.uint8), name="x.png")
    assert read_radiograph(path).size == image_size(path) == (5, 4)


@pytest.mark.parametrize("read", [read_radiograph, image_size])
@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"\x89PN", "neither"),
        (b"GIF89a" + bytes(200), "neither"),
        (b"BM" + bytes(200), "neither"),
        (b"II*\0" + bytes(200), "neither"),
        (b"RIFF\0\0\0\0WEBP" + bytes(200), "neither"),
        (bytes(128) + b"DICM", "transfer syntax"),
    ],
)
def test_what_is_no_picture(read, content, match, tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=match) as caught:
        read(path)
    assert caught.value.where.startswith("x.png")


@pytest.mark.parametrize("read", [read_radiograph, image_size])
def test_files_that_cannot_be_read(read, tmp_path, monkeypatch):
    for path in (tmp_path / "absent.png", tmp_path, "a\0b.png"):
        with pytest.raises(ImageError):
            read(path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ImageError, match="no file"):
        read(pipe)
    Image.new("L", (5, 4)).save(tmp_path / "x.png")
    monkeypatch.setattr(_files, "MAX_BYTES", 20)
    with pytest.raises(ImageError, match="too large"):
        read_radiograph(tmp_path / "x.png")


def test_image_size_reads_headers_alone(tmp_path, dicom):
    path = tmp_path / "x.png"
    Image.effect_noise((300, 400), 90).save(path)
    path.write_bytes(path.read_bytes()[:40])
    assert image_size(path) == (300, 400)
    path = dicom(np.zeros((400, 300), np.uint16))
    path.write_bytes(path.read_bytes()[:1500])
    assert image_size(path) == (300, 400)


def test_threads_change_nothing(tmp_path, dicom, recwarn):
    rng = np.random.default_rng(0)
    paths = []
    for i in range(12):
        # A width of more than 16 characters breaks the standard; pydicom warns, which the tests make an error.
        stored = rng.integers(0, 4096, (20, 30), dtype=np.uint16)
        paths.append(dicom(stored, bits=12, name=f"{i}.dcm"))
        data = paths[-1].read_bytes()
        marker = b"(\0\x02\x01US\x02\0"  # High Bit; a window is put behind Pixel Representation
        place = data.find(b"(\0\x03\x01US\x02\0") + 10
        assert marker in data
        window = b"(\0\x50\x10DS\x14\0" + b"2000.000000000000000" + b"(\0\x51\x10DS\x14\0" + b"3000.000000000000000"
        paths[-1].write_bytes(data[:place] + window + data[place:])
    serial = [read_radiograph(path) for path in paths]
    assert all("window centre 2000 width 3000" in picture.steps for picture in serial)
    with ThreadPoolExecutor(6) as pool:
        parallel = list(pool.map(read_radiograph, paths * 5))
    for first, second in zip(serial * 5, parallel, strict=True):
        np.testing.assert_array_equal(first.pixels, second.pixels)
    assert not recwarn.list


def facts_of(folder):
    expected = json.loads((folder / "expected.json").read_text())
    found = expected.get("images") or expected["files"]
    return [item for item in (found.values() if isinstance(found, dict) else found) if item.get("file")]


@pytest.mark.parametrize("dataset", ["rsna", "vindr"])
def test_displayed_values_of_the_sample_files(dataset, data_root):
    folder = data_root / dataset
    items = [item for item in facts_of(folder) if "display_mean_0_1" in item]
    assert items
    for item in items:
        picture = read_radiograph(folder / item["file"])
        assert list(picture.size) == list(image_size(folder / item["file"])) == item["size_wh"]
        assert picture.pixels.mean(dtype=np.float64) == pytest.approx(item["display_mean_0_1"], abs=item["tolerance"])
        for point in item["display_at_points_xy"]:
            x, y = point["xy"]
            assert picture.pixels[y, x] == pytest.approx(point["value_0_1"], abs=item["tolerance"])


@pytest.mark.parametrize("dataset", ["rsna", "vindr"])
def test_stored_values_of_lossless_sample_files(dataset, data_root, monkeypatch):
    from medground.imaging import _grey

    seen = []
    original = _grey.displayed
    monkeypatch.setattr(_grey, "displayed", lambda stored, *rest: (seen.append(stored), original(stored, *rest))[1])
    for item in facts_of(data_root / dataset):
        if "stored_sha256_uint16_le" in item:
            read_radiograph(data_root / dataset / item["file"])
            assert hashlib.sha256(seen[-1].astype("<u2").tobytes()).hexdigest() == item["stored_sha256_uint16_le"]
    assert seen


def test_siim_sample_files_look_like_their_source(data_root):
    for item in facts_of(data_root / "siim"):
        picture = read_radiograph(data_root / "siim" / item["file"])
        assert picture.size == (1024, 1024)
        assert 0.2 < picture.pixels.mean() < 0.8


def test_nih_sample_files(data_root):
    folder = data_root / "nih-chestxray14"
    files = sorted([*folder.rglob("*.png"), *folder.rglob("*.jpg")])
    assert files
    for path in files[:: max(1, len(files) // 60)]:
        assert read_radiograph(path).size == image_size(path)


def test_covid_masks_are_grey_pictures(data_root):
    files = sorted((data_root / "covid-rural").rglob("*.png"))
    assert files
    for path in files:
        assert set(np.unique(read_radiograph(path).pixels)) <= {0.0, 1.0}
