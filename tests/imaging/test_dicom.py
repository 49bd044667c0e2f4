import warnings
import zlib
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydicom.encaps import encapsulate
from pydicom.pixels.decoders.base import Decoder

from medground.errors import ImageError
from medground.imaging import _dicom
from medground.imaging.reading import image_size, read_radiograph

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
FILES = sorted(path for path in BUNDLED.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"})
STORED = np.arange(48, dtype=np.uint16).reshape(6, 8)


def attempted(read, path):
    """What a file gives: a result, or an ImageError; nothing else may come out."""
    try:
        return read(path), None
    except ImageError as error:
        return None, error


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(BUNDLED).as_posix())
def test_every_bundled_file_is_a_picture_or_a_clear_error(path):
    picture, error = attempted(read_radiograph, path)
    if error is not None:
        assert path.name in error.where
        return
    assert 0 <= picture.pixels.min() <= picture.pixels.max() <= 1
    assert image_size(path) == picture.size


@pytest.mark.parametrize(
    "name",
    [
        "dicomdirtests/77654033/CR1/6154",
        "dicomdirtests/77654033/CR2/6247",
        "dicomdirtests/77654033/CR3/6278",
        "MR_small_jpeg_ls_lossless.dcm",
        "JPEGLSNearLossless_08.dcm",
        "JPEGLSNearLossless_16.dcm",
        "MR_small_jp2klossless.dcm",
        "J2K_pixelrep_mismatch.dcm",
        "JPEG2000.dcm",
        "693_J2KI.dcm",
        "SC_rgb_jpeg_gdcm.dcm",
        "MR_small_RLE.dcm",
        "SC_rgb_rle_16bit.dcm",
        "image_dfl.dcm",
        "MR_small_bigendian.dcm",
        "MR_small_implicit.dcm",
        "MR_small_padded.dcm",
        "examples_overlay.dcm",
        "liver_1frame.dcm",
    ],
)
def test_listed_files_are_decoded(name):
    if "jpeg_ls" in name or "JPEGLS" in name:
        pytest.importorskip("jpeg_ls")
    picture = read_radiograph(BUNDLED / name)
    assert np.ptp(picture.pixels) > 0


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("MR_truncated.dcm", "decoded"),
        ("badVR.dcm", "NumberOfFrames"),
        ("examples_palette.dcm", "PALETTE COLOR"),
        ("examples_ybr_color.dcm", "several frames"),
        ("JPGExtended.dcm", "pylibjpeg-libjpeg"),
        ("rtplan.dcm", "no pixels"),
        ("meta_missing_tsyntax.dcm", "transfer syntax"),
    ],
)
def test_listed_files_are_refused_with_a_reason(name, match):
    with pytest.raises(ImageError) as caught:
        read_radiograph(BUNDLED / name)
    assert match in str(caught.value)


@pytest.mark.parametrize("name", ["RLE", "bigendian", "expb", "implicit", "jp2klossless", "jpeg_ls_lossless", "padded"])
def test_lossless_copies_are_equal(name):
    if name == "jpeg_ls_lossless":
        pytest.importorskip("jpeg_ls")
    plain = read_radiograph(BUNDLED / "MR_small.dcm")
    np.testing.assert_array_equal(read_radiograph(BUNDLED / f"MR_small_{name}.dcm").pixels, plain.pixels)


def test_grey_is_what_pydicom_and_the_standard_say():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header = pydicom.dcmread(BUNDLED / "dicomdirtests/77654033/CR1/6154")
        rescaled = header.pixel_array * float(header.RescaleSlope) + float(header.RescaleIntercept)
        centre, width = float(header.WindowCenter), float(header.WindowWidth)
    assert header.PhotometricInterpretation == "MONOCHROME1"
    expected = 1 - np.clip((rescaled - (centre - 0.5)) / (width - 1) + 0.5, 0, 1)
    np.testing.assert_allclose(read_radiograph(BUNDLED / "dicomdirtests/77654033/CR1/6154").pixels, expected, atol=1e-6)


def encapsulated(path, frames, syntax, **tags):
    header = pydicom.dcmread(path)
    header.PixelData = encapsulate(frames)
    header["PixelData"].VR = "OB"
    header["PixelData"].is_undefined_length = True
    header.file_meta.TransferSyntaxUID = syntax
    for keyword, value in tags.items():
        setattr(header, keyword, value)
    header.save_as(path, enforce_file_format=True)
    return path


def test_a_damaged_file_shows_no_patient(dicom, tmp_path):
    whole = dicom(STORED).read_bytes()
    assert b"Secret^Person" in whole
    path = tmp_path / "y.dcm"
    for place in range(132, len(whole) - STORED.nbytes, 2):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        picture, error = attempted(read_radiograph, path)
        shown = repr(picture.steps) if picture else f"{error} {error!r} {error.__cause__!r}"
        assert "Secret" not in shown
        assert "SECRET" not in shown


@pytest.mark.parametrize("tag", ["Rows", "Columns"])
def test_a_header_that_describes_a_part_of_its_pixels_is_refused(dicom, tag):
    path = dicom(STORED)
    header = pydicom.dcmread(path)
    setattr(header, tag, getattr(header, tag) - 1)
    header.save_as(path)
    with pytest.raises(ImageError, match="more pixels than its header says"):
        read_radiograph(path)


def test_every_truncation_is_an_error(dicom, tmp_path):
    path = tmp_path / "y.dcm"
    for syntax in ("1.2.840.10008.1.2.1", "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2", "1.2.840.10008.1.2.2"):
        whole = dicom(STORED, syntax=syntax).read_bytes()
        for length in range(0, len(whole) - 1, 7):
            path.write_bytes(whole[:length])
            with pytest.raises(ImageError):
                read_radiograph(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    syntax=st.sampled_from(["1.2.840.10008.1.2.1", "1.2.840.10008.1.2", "1.2.840.10008.1.2.2"]),
    damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_any_damage_is_an_image_error_or_a_picture(dicom, syntax, damage):
    tags = {"WindowCenter": 20, "WindowWidth": 30, "RescaleSlope": 2, "RescaleIntercept": 1}
    path = dicom(STORED, syntax=syntax, **tags)
    data = bytearray(path.read_bytes())
    for place, value in damage:
        data[place % len(data)] = value
    path.write_bytes(data)
    for read in (read_radiograph, image_size):
        result, error = attempted(read, path)
        assert result is not None or error.where


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["MR_small_RLE.dcm", "MR_small_jp2klossless.dcm", "SC_rgb_small_odd_jpeg.dcm"]),
    damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_any_damage_to_compressed_files(name, damage, tmp_path):
    data = bytearray((BUNDLED / name).read_bytes())
    for place, value in damage:
        data[place % len(data)] = value
    path = tmp_path / name
    path.write_bytes(data)
    picture, error = attempted(read_radiograph, path)
    assert picture is not None or error.where


def test_no_pixels(dicom):
    with pytest.raises(ImageError, match="has no pixels") as caught:
        read_radiograph(dicom(STORED, PixelData=None))
    assert "x.dcm" in str(caught.value)


@pytest.mark.parametrize("keyword", ["Rows", "Columns"])
def test_no_size(dicom, keyword):
    with pytest.raises(ImageError, match=keyword):
        read_radiograph(dicom(STORED, **{keyword: None}))


def test_an_unknown_transfer_syntax(dicom):
    path = dicom(STORED)
    data = path.read_bytes()
    place = data.find(b"1.2.840.10008.1.2.1\0")
    path.write_bytes(data[:place] + b"1.2.840.99999.1.2.1\0" + data[place + 20 :])
    with pytest.raises(ImageError, match="unknown") as caught:
        read_radiograph(path)
    assert "1.2.840.99999.1.2.1" in str(caught.value)
    path.write_bytes(data[:place] + b"not a uid at all!!!\0" + data[place + 20 :])
    with pytest.raises(ImageError, match="unknown"):
        read_radiograph(path)


def test_file_meta_that_never_ends():
    head = bytes(128) + b"DICM" + b"\x02\0\x01\0OB\0\0"
    with pytest.raises(ImageError, match="transfer syntax"):
        _dicom.dicom_size(head)


def test_a_missing_decoder_is_named(dicom, monkeypatch):
    path = encapsulated(dicom(STORED), [b"\xff\xd8\xff\xf7"], "1.2.840.10008.1.2.4.80")
    monkeypatch.setattr(Decoder, "available_plugins", property(lambda self: ()))
    with pytest.raises(ImageError) as caught:
        read_radiograph(path)
    assert "JPEG-LS" in str(caught.value)
    assert caught.value.fix == "pip install 'medground[dicom]'"


def test_the_next_decoder_is_tried(monkeypatch):
    tried = []
    original = Decoder.as_array

    def failing_first(self, *args, decoding_plugin, **options):
        tried.append(decoding_plugin)
        if decoding_plugin == "broken":
            raise ValueError("no")
        return original(self, *args, decoding_plugin=decoding_plugin, **options)

    monkeypatch.setattr(Decoder, "as_array", failing_first)
    monkeypatch.setattr(Decoder, "available_plugins", property(lambda self: ("pydicom", "broken", "gdcm")))
    monkeypatch.setattr(_dicom, "_PLUGINS", ("broken", "pydicom"))
    assert read_radiograph(BUNDLED / "MR_small_RLE.dcm").size == (64, 64)
    assert tried == ["broken", "pydicom"]


@pytest.mark.parametrize(
    ("tags", "match"),
    [
        ({"NumberOfFrames": 2}, "several frames"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "PALETTE COLOR"),
        ({"PhotometricInterpretation": None}, "kind of picture"),
        ({"SamplesPerPixel": 4}, "with 4"),
        ({"SamplesPerPixel": 3}, "with 3"),
        ({"PhotometricInterpretation": "RGB"}, "with 1"),
        ({"BitsStored": 20}, "bits"),
        ({"Rows": 0}, "no pixels"),
        ({"Rows": 7}, "decoded"),
        ({"Rows": 65535, "Columns": 65535}, "bomb"),
    ],
    ids=str,
)
def test_headers_that_are_refused(dicom, tags, match):
    with pytest.raises(ImageError) as caught:
        read_radiograph(dicom(STORED, **tags))
    assert match in str(caught.value)


def test_one_frame_may_be_stated(dicom):
    assert read_radiograph(dicom(STORED, NumberOfFrames=1)).size == (8, 6)


def test_a_deflated_bomb(dicom, tmp_path):
    path = dicom(np.zeros((2000, 2000), np.uint16), syntax="1.2.840.10008.1.2.1.99")
    assert path.stat().st_size < 20_000
    assert image_size(path) == (2000, 2000)
    with pytest.raises(ImageError, match="bomb"):
        read_radiograph(path, max_pixels=100_000)
    with pytest.raises(ImageError, match="bomb"):
        read_radiograph(path, max_pixels=3_999_999)
    assert read_radiograph(path, max_pixels=4_000_000).size == (2000, 2000)


def test_damaged_deflate(dicom):
    path = dicom(STORED, syntax="1.2.840.10008.1.2.1.99")
    data = path.read_bytes()
    body = _dicom._syntax(data)[1]
    path.write_bytes(data[:body] + b"\xff" * 40)
    with pytest.raises(ImageError, match="damaged"):
        read_radiograph(path)


@pytest.mark.parametrize("name", ["MR_small_jp2klossless.dcm", "SC_rgb_small_odd_jpeg.dcm", "SC_rgb_jpeg_gdcm.dcm"])
def test_a_frame_of_another_size_than_its_header(name, tmp_path):
    header = pydicom.dcmread(BUNDLED / name)
    header.Rows += 1
    header.save_as(tmp_path / name)
    with pytest.raises(ImageError, match="another size") as caught:
        read_radiograph(tmp_path / name)
    assert f"{header.Columns} x {header.Rows}" in str(caught.value)


def test_a_frame_of_other_channels_than_its_header(dicom):
    jpeg = (BUNDLED / "SC_rgb_small_odd_jpeg.dcm").read_bytes()
    frame = jpeg[jpeg.find(b"\xff\xd8\xff") : jpeg.rfind(b"\xff\xd9") + 2]
    path = encapsulated(dicom(np.zeros((3, 3), np.uint8)), [frame], "1.2.840.10008.1.2.4.50")
    with pytest.raises(ImageError, match="other channels"):
        read_radiograph(path)


def test_a_compressed_frame_without_its_end(dicom):
    jpeg = (BUNDLED / "SC_rgb_small_odd_jpeg.dcm").read_bytes()
    frame = jpeg[jpeg.find(b"\xff\xd8\xff") : jpeg.rfind(b"\xff\xd9")]
    path = encapsulated(dicom(np.zeros((3, 3, 3), np.uint8)), [frame], "1.2.840.10008.1.2.4.50")
    with pytest.raises(ImageError, match="truncated"):
        read_radiograph(path)


def test_encapsulation_without_a_frame(dicom):
    path = encapsulated(dicom(STORED), [b"frame frame frame"], "1.2.840.10008.1.2.5")
    data = path.read_bytes()
    items = data.find(b"\xe0\x7f\x10\0OB\0\0") + 12
    path.write_bytes(data[:items] + b"no items at all!" + data[items + 16 :])
    with pytest.raises(ImageError, match="cannot be found"):
        read_radiograph(path)


def test_only_the_listed_attributes_are_read(dicom, monkeypatch):
    seen = set()
    original = _dicom.read_dataset

    def watched(*args, **options):
        header = original(*args, **options)
        seen.update(int(tag) for tag in header.keys())  # noqa: SIM118  iterating a data set decodes its elements
        return header

    monkeypatch.setattr(_dicom, "read_dataset", watched)
    read_radiograph(dicom(STORED, WindowCenter=1, WindowWidth=2))
    assert 0x7FE00010 in seen
    assert seen <= {*_dicom._TAGS, 0x00080005}  # Specific Character Set, which pydicom always reads


def test_zlib_is_raw_in_deflated_files(dicom):
    """A guard for the reader's own inflating: what it inflates is the data set."""
    path = dicom(STORED, syntax="1.2.840.10008.1.2.1.99")
    data = path.read_bytes()
    _, start = _dicom._syntax(data)
    assert zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[start:]).endswith(STORED.tobytes())


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({"PixelPaddingValue": 0}, "padding value shown as any other"),
        ({"PresentationLUTShape": "INVERSE"}, "presentation LUT not applied"),
        ({"PresentationLUTShape": "IDENTITY"}, None),
    ],
)
def test_what_a_header_states_and_nothing_applies_is_said(dicom, tags, words):
    stored = np.arange(16, dtype=np.uint16).reshape(4, 4)
    plain, marked = (
        read_radiograph(dicom(stored, bits=12, name="a.dcm")),
        read_radiograph(dicom(stored, bits=12, **tags)),
    )
    np.testing.assert_array_equal(plain.pixels, marked.pixels)
    assert marked.steps == plain.steps + ((words,) if words else ())
