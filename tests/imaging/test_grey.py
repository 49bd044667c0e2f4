import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydicom.dataset import Dataset
from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut
from pydicom.sequence import Sequence

from medground.errors import ImageError
from medground.imaging._grey import Depth
from medground.imaging.reading import read_radiograph

SHARED = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lut(entries, first, bits, data, vr="US"):
    item = Dataset()
    item.add_new("LUTDescriptor", vr, [entries, first, bits])
    item.add_new("LUTData", "OW" if isinstance(data, bytes) else "US", data)
    return Sequence([item])


def by_the_standard(values, function, centre, width):
    """PS3.3 C.11.2.1.2 and C.11.2.1.3, one value at a time, onto 0 to 1."""
    out = []
    for x in np.ravel(values).tolist():
        if function == "SIGMOID":
            out.append(1 / (1 + np.exp(min(-4 * (x - centre) / width, 700))))
        elif function == "LINEAR_EXACT":
            if x <= centre - width / 2:
                out.append(0.0)
            elif x > centre + width / 2:
                out.append(1.0)
            else:
                out.append((x - centre) / width + 0.5)
        elif x <= centre - 0.5 - (width - 1) / 2:
            out.append(0.0)
        elif x > centre - 0.5 + (width - 1) / 2:
            out.append(1.0)
        else:
            out.append((x - (centre - 0.5)) / (width - 1) + 0.5)
    return np.reshape(out, np.shape(values))


STORED = np.arange(256, dtype=np.uint16).reshape(16, 16)


@SHARED
@given(
    function=st.sampled_from(["LINEAR", "LINEAR_EXACT", "SIGMOID"]),
    centre=st.floats(-100, 400),
    width=st.floats(1, 500),
    slope=st.sampled_from([1, -1, 0.5, -2.25, None]),
    intercept=st.sampled_from([0, -50, 255, None]),
    inverted=st.booleans(),
)
def test_windows_follow_the_standard(dicom, function, centre, width, slope, intercept, inverted):
    centre, width = round(centre, 3), round(width, 3)
    tags = {"WindowCenter": centre, "WindowWidth": width, "VOILUTFunction": function}
    tags |= {} if slope is None else {"RescaleSlope": slope}
    tags |= {} if intercept is None else {"RescaleIntercept": intercept}
    path = dicom(STORED, bits=8, PhotometricInterpretation="MONOCHROME1" if inverted else "MONOCHROME2", **tags)
    rescaled = STORED * float(1 if slope is None else slope) + float(intercept or 0)
    expected = by_the_standard(rescaled, function, centre, width)
    np.testing.assert_allclose(read_radiograph(path).pixels, 1 - expected if inverted else expected, atol=1e-6)


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
def test_pydicom_agrees_where_the_slope_rises(dicom, function):
    header = Dataset()
    tags = {"RescaleSlope": "2", "RescaleIntercept": "-100", "WindowCenter": "150", "WindowWidth": "220"}
    for keyword, value in {**tags, "VOILUTFunction": function, "PhotometricInterpretation": "MONOCHROME2"}.items():
        setattr(header, keyword, value)
    header.BitsStored, header.BitsAllocated, header.PixelRepresentation = 8, 16, 0
    theirs = apply_voi_lut(apply_modality_lut(STORED, header), header)
    low, high = -100, 2 * 255 - 100  # pydicom maps the window onto the rescaled range
    picture = read_radiograph(dicom(STORED, bits=8, VOILUTFunction=function, **tags))
    np.testing.assert_allclose(picture.pixels, (theirs - low) / (high - low), atol=1e-6)


def test_steps_and_ranges_of_windows(dicom):
    picture = read_radiograph(dicom(STORED, bits=8, WindowCenter=100, WindowWidth=51))
    assert picture.value_range == (74.5, 124.5)
    assert picture.steps == ("DICOM MONOCHROME2, 8 bit unsigned", "window centre 100 width 51")
    picture = read_radiograph(dicom(STORED, bits=8, WindowCenter=100, WindowWidth=50, VOILUTFunction="SIGMOID"))
    assert picture.value_range == (75, 125)
    assert picture.steps[-1] == "window centre 100 width 50 SIGMOID"


def test_the_first_of_several_windows_is_taken(dicom):
    picture = read_radiograph(dicom(STORED, bits=8, WindowCenter=[100, 5], WindowWidth=[51, 9]))
    assert picture.steps[-1] == "window centre 100 width 51"


def test_a_window_of_width_one_is_a_step(dicom):
    pixels = read_radiograph(dicom(STORED, bits=8, WindowCenter=100, WindowWidth=1)).pixels
    np.testing.assert_array_equal(pixels, STORED > 99.5)


@pytest.mark.parametrize(("width", "function"), [(0, "LINEAR"), (-5, "SIGMOID"), (0.5, "LINEAR"), (0, "LINEAR_EXACT")])
def test_an_impossible_window_is_ignored_and_told(dicom, width, function):
    picture = read_radiograph(dicom(STORED, bits=8, WindowCenter=100, WindowWidth=width, VOILUTFunction=function))
    assert picture.steps[1:] == (f"window of width {width:g} ignored", "full range 0 to 255")
    np.testing.assert_allclose(picture.pixels, STORED / 255, atol=1e-6)


def test_narrow_exact_windows_are_legal(dicom):
    picture = read_radiograph(dicom(STORED, bits=8, WindowCenter=100, WindowWidth=0.5, VOILUTFunction="LINEAR_EXACT"))
    assert picture.value_range == (99.75, 100.25)


def test_a_sigmoid_does_not_overflow(dicom):
    tags = {"WindowCenter": 30000, "WindowWidth": 1, "VOILUTFunction": "SIGMOID"}
    pixels = read_radiograph(dicom(np.array([[0, 30000, 65535]], np.uint16), **tags)).pixels
    np.testing.assert_allclose(pixels, [[0, 0.5, 1]], atol=1e-7)


@pytest.mark.parametrize(
    ("tags", "expected", "value_range"),
    [
        ({"RescaleSlope": 2, "RescaleIntercept": -10}, [0, 1 / 255, 1], (-10, 500)),
        ({"RescaleSlope": -2, "RescaleIntercept": -10}, [1, 254 / 255, 0], (-520, -10)),
        ({"RescaleSlope": 0.5}, [0, 1 / 255, 1], (0, 127.5)),
        ({"RescaleIntercept": 5}, [0, 1 / 255, 1], (5, 260)),
        ({"RescaleSlope": None, "RescaleIntercept": ""}, [0, 1 / 255, 1], (0, 255)),
    ],
)
def test_the_full_range_goes_through_the_rescale(dicom, tags, expected, value_range):
    tags = {keyword: value for keyword, value in tags.items() if value is not None}
    picture = read_radiograph(dicom(np.array([[0, 1, 255]], np.uint8), **tags))
    np.testing.assert_allclose(picture.pixels[0], expected, atol=1e-6)
    assert picture.value_range == value_range


def test_signed_values(dicom):
    stored = np.array([[-2048, 0, 2047]], np.int16)
    picture = read_radiograph(dicom(stored, bits=12))
    np.testing.assert_allclose(picture.pixels, [[0, 2048 / 4095, 1]], atol=1e-7)
    assert picture.value_range == (-2048, 2047)
    assert picture.steps[0] == "DICOM MONOCHROME2, 12 bit signed"


def test_bits_that_are_not_stored_are_masked(dicom):
    overlay = np.array([[0x1000, 0xF001, 0x8FFF]], np.uint16)  # an old overlay above 12 bits
    np.testing.assert_allclose(read_radiograph(dicom(overlay, bits=12)).pixels, [[0, 1 / 4095, 1]], atol=1e-7)
    signed = np.array([[0x0800, 0x17FF]], np.uint16).view(np.int16)  # not extended by its sign
    np.testing.assert_allclose(read_radiograph(dicom(signed, bits=12)).pixels, [[0, 1]], atol=1e-7)


def test_a_high_bit_at_the_top_shifts(dicom):
    stored = np.array([[0, 1, 4095]], np.uint16) << 4 | 7
    np.testing.assert_allclose(
        read_radiograph(dicom(stored, bits=12, HighBit=15)).pixels, [[0, 1 / 4095, 1]], atol=1e-7
    )


def test_thirty_two_bits(dicom):
    stored = np.array([[0, 2**31, 2**32 - 1]], np.uint32)
    np.testing.assert_allclose(read_radiograph(dicom(stored)).pixels, [[0, 0.5, 1]], atol=1e-6)


@pytest.mark.parametrize(
    ("allocated", "bits", "high"), [(0, 8, 7), (8, 12, 11), (16, 12, 16), (16, 12, 10), (16, 0, 3), (64, 12, 11)]
)
def test_bits_that_do_not_fit(allocated, bits, high):
    header = Dataset()
    header.BitsAllocated, header.BitsStored, header.HighBit = allocated, bits, high
    with pytest.raises(ImageError, match="bits"):
        Depth.of(header, encapsulated=False)


def test_missing_bits_default_to_what_is_allocated():
    header = Dataset()
    header.BitsAllocated = 8
    assert Depth.of(header, encapsulated=False) == Depth(8, signed=False, shift=0)
    header.BitsStored, header.HighBit = 6, 7
    assert Depth.of(header, encapsulated=False).shift == 2
    assert Depth.of(header, encapsulated=True).shift == 0


TABLE = np.array([10, 200, 30, 255], np.uint16)


@pytest.mark.parametrize(
    "sequence",
    [
        lut(4, 2, 8, TABLE.tolist()),
        lut(4, 2, 8, TABLE.astype("<u2").tobytes()),
        lut(4, 2, 8, TABLE.astype("u1").tobytes()),
        lut(4, 2, 8, TABLE.tolist(), "SS"),
    ],
)
def test_lookup_tables_of_every_form(dicom, sequence):
    stored = np.array([[0, 2, 3, 4, 5, 9]], np.uint8)
    looked_up = np.array([[10, 10, 200, 30, 255, 255]]) / 255
    for keyword in ("VOILUTSequence", "ModalityLUTSequence"):
        picture = read_radiograph(dicom(stored, **{keyword: sequence}))
        np.testing.assert_allclose(picture.pixels, looked_up, atol=1e-6)
        assert picture.value_range == (0, 255)
        assert "LUT of 4 entries" in picture.steps[1]


def test_a_voi_lut_goes_before_a_window_and_after_the_rescale(dicom):
    tags = {"RescaleSlope": 2, "RescaleIntercept": -2, "WindowCenter": 1, "WindowWidth": 2}
    picture = read_radiograph(
        dicom(np.array([[1, 2, 3]], np.uint8), VOILUTSequence=lut(4, 0, 8, TABLE.tolist()), **tags)
    )
    np.testing.assert_allclose(picture.pixels, np.array([[10, 30, 255]]) / 255, atol=1e-6)


def test_a_modality_lut_goes_before_a_rescale_and_under_a_window(dicom):
    tags = {"RescaleSlope": 100, "RescaleIntercept": 7, "WindowCenter": 128, "WindowWidth": 256}
    stored = np.array([[0, 1, 2, 3]], np.uint8)
    picture = read_radiograph(dicom(stored, ModalityLUTSequence=lut(4, 0, 8, TABLE.tolist()), **tags))
    np.testing.assert_allclose(picture.pixels, by_the_standard(TABLE[None], "LINEAR", 128, 256), atol=1e-6)
    assert not any("slope" in step for step in picture.steps)


def test_zero_entries_stand_for_65536(dicom):
    table = (np.arange(1 << 16) % 4096).astype("<u2")
    picture = read_radiograph(
        dicom(np.array([[0, 4095, 4096]], np.uint16), VOILUTSequence=lut(0, 0, 12, table.tobytes()))
    )
    np.testing.assert_allclose(picture.pixels, [[0, 1, 0]], atol=1e-7)


def test_tables_of_big_endian_files(dicom):
    path = dicom(
        np.array([[0, 1, 2, 3]], np.uint8),
        syntax="1.2.840.10008.1.2.2",
        VOILUTSequence=lut(4, 0, 16, (TABLE * 256).astype(">u2").tobytes()),
    )
    np.testing.assert_allclose(read_radiograph(path).pixels, TABLE[None] * 256 / 65535, atol=1e-6)


@pytest.mark.parametrize(
    "sequence",
    [
        lut(5, 0, 8, TABLE.tolist()),
        lut(4, 0, 0, TABLE.tolist()),
        lut(4, 0, 17, TABLE.tolist()),
        lut(4, 0, 8, b"\0\0"),
        Sequence([Dataset()]),
    ],
)
@pytest.mark.parametrize("keyword", ["VOILUTSequence", "ModalityLUTSequence"])
def test_malformed_tables(dicom, sequence, keyword):
    with pytest.raises(ImageError, match="LUTSequence is malformed"):
        read_radiograph(dicom(STORED, bits=8, **{keyword: sequence}))


@pytest.mark.parametrize(
    ("tags", "match"),
    [
        ({"RescaleSlope": 0}, "slope is 0"),
        ({"WindowCenter": 1, "WindowWidth": 5, "VOILUTFunction": "CUBIC"}, "function is unknown"),
    ],
)
def test_malformed_transforms(dicom, tags, match):
    with pytest.raises(ImageError, match=match):
        read_radiograph(dicom(STORED, bits=8, **tags))


@pytest.mark.parametrize("text", [b"NaN ", b"inf ", b"abc "])
@pytest.mark.parametrize("tag", [b"\x52\x10", b"\x53\x10"])
def test_numbers_that_are_none(dicom, text, tag):
    path = dicom(STORED, bits=8, RescaleSlope="1111", RescaleIntercept="1111")
    data = path.read_bytes()
    place = data.find(b"(\0" + tag + b"DS\x04\0") + 8
    assert place > 8
    path.write_bytes(data[:place] + text + data[place + 4 :])
    with pytest.raises(ImageError):
        read_radiograph(path)


@pytest.mark.parametrize("bits", [8, 16])
def test_colour_becomes_luma(dicom, bits):
    rgb = np.random.default_rng(0).integers(0, 1 << bits, (3, 4, 3)).astype(f"u{bits // 8}")
    picture = read_radiograph(dicom(rgb, WindowCenter=3, WindowWidth=2))
    expected = (rgb.astype(np.int64) @ [19595, 38470, 7471] + 32768) // 65536 / ((1 << bits) - 1)
    np.testing.assert_allclose(picture.pixels, expected, atol=1e-6)
    assert picture.steps == (f"DICOM RGB, {bits} bit", "colour to luma (ITU-R 601)")
    assert picture.value_range == (0, (1 << bits) - 1)


def test_the_luma_of_ybr_is_y(dicom):
    ybr = np.random.default_rng(0).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    picture = read_radiograph(dicom(ybr, PhotometricInterpretation="YBR_FULL"))
    np.testing.assert_allclose(picture.pixels, ybr[..., 0] / 255, atol=1e-6)
