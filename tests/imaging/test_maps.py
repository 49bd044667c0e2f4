import hashlib
import io
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image

from medground.errors import ImageError
from medground.imaging.maps import SUFFIXES, read_map

MAP = np.random.default_rng(0).normal(size=(5, 7))


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def png(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def saved(tmp_path):
    def save(data, name="x.npy"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return save


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, ">f8", np.int32, np.uint8, np.bool_])
def test_arrays_keep_their_values(kind, saved):
    array = (MAP * 3).astype(kind)
    for data in (npy(array), npy(array[None]), npz(map=array, other=array), npz(anything=array)):
        found, digest = read_map(saved(data))
        np.testing.assert_array_equal(found, array)
        assert found.dtype == (array.dtype if array.dtype in (np.float32, np.float64) else np.float64)
        assert digest == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("kind", "white"), [(np.uint8, 255), (np.uint16, 65535)])
def test_pngs_are_divided_by_their_depth(kind, white, saved):
    array = np.random.default_rng(0).integers(0, white, (5, 7)).astype(kind)
    found, _ = read_map(saved(png(array), "x.png"))
    np.testing.assert_array_equal(found, array / white)


def test_nan_is_kept(saved):
    assert np.isnan(read_map(saved(npy(np.full((2, 2), np.nan))))[0]).all()


def test_long_headers(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, MAP, version=(2, 0))
    np.testing.assert_array_equal(read_map(saved(buffer.getvalue()))[0], MAP)


def lying(shape):
    """An array file whose header promises more than follows."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + bytes(80)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "of another kind"),
        (b"text", "of another kind"),
        (npy(MAP)[:-1], "cannot be read"),
        (npz(map=MAP)[:-30], "cannot be read"),
        (npy(np.array([{"a": 1}], dtype=object), allow_pickle=True), "pickled objects"),
        (npy(np.array([["a", "b"]])), "not a picture of numbers"),
        (npy(MAP.astype(complex)), "not a picture of numbers"),
        (npy(MAP[0]), "not a picture of numbers"),
        (npy(np.zeros((0, 3))), "not a picture of numbers"),
        (npy(np.zeros((2, 2, 3))), "not a picture of numbers"),
        (npz(a=MAP, b=MAP), "several arrays"),
        (lying((10**6, 10**6)), "too large"),
        (lying((10, 10)), "cannot be read"),
        (png(np.zeros((4, 4, 3), np.uint8)), "not grey"),
        (png(np.zeros((4, 4), np.uint8))[:-20], "truncated"),
    ],
)
def test_what_is_no_map(data, match, saved):
    with pytest.raises(ImageError, match=match) as caught:
        read_map(saved(data))
    assert "x.npy" in caught.value.where


def test_a_compressed_bomb(saved):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("map.npy", lying((10**5, 10**4)) + bytes(10**7))
    with pytest.raises(ImageError, match="too large"):
        read_map(saved(buffer.getvalue(), "x.npz"))


def test_an_absent_file(tmp_path):
    with pytest.raises(ImageError, match="cannot be read"):
        read_map(tmp_path / "absent.npy")
    assert SUFFIXES == (".npy", ".npz", ".png")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([npy(MAP), npz(map=MAP), png(np.zeros((4, 4), np.uint8))]),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
)
@pytest.mark.filterwarnings("ignore")  # a damaged header may look like one of an old numpy, which warns
def test_any_damage_is_an_image_error_or_a_map(saved, data, damage):
    changed = bytearray(data)
    for place, value in damage:
        changed[place % len(changed)] = value
    path = saved(changed)
    try:
        found, _ = read_map(path)
    except ImageError:
        return
    assert found.ndim == 2


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (1, 1, 4, 3)])
def test_a_map_of_one_row_or_column_is_a_map(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.ones(shape))
    array, _ = read_map(tmp_path / "x.npy")
    assert array.shape == shape[-2:]
