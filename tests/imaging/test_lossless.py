import struct
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings, strategies as st
from pydicom.encaps import encapsulate, get_frame

from medground.errors import ImageError
from medground.imaging._lossless import SYNTAXES, read_lossless
from medground.imaging.reading import read_radiograph

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def expected_at(samples, i, j, predictor, first, start):
    """T.81 table H.1; ``start`` is the first row of the restart interval."""
    if i == start:
        return first if j == 0 else samples[i, j - 1]
    above = samples[i - 1, j]
    if j == 0:
        return above
    left, corner = samples[i, j - 1], samples[i - 1, j - 1]
    table = [None, left, above, corner, left + above - corner, left + ((above - corner) >> 1)]
    return [*table, above + ((left - corner) >> 1), (left + above) >> 1][predictor]


def encoded(samples, *, depth, predictor=1, shift=0, rows=0, width=None):
    """A lossless JPEG by the book: every difference's size is a code of 5 bits, so that any code occurs."""
    samples = np.asarray(samples, dtype=np.int64)
    samples = samples[..., None] if samples.ndim == 2 else samples
    height, columns, channels = samples.shape
    reduced = samples >> shift
    parts, bits = [], []
    for i in range(height):
        if rows and i and i % rows == 0:
            parts.append(bits)
            bits = []
        for j in range(columns):
            for c in range(channels):
                start = i // rows * rows if rows else 0
                guess = expected_at(reduced[..., c], i, j, predictor, 1 << (depth - shift - 1), start)
                difference = (int(reduced[i, j, c]) - int(guess)) & 0xFFFF
                difference -= 0x10000 if difference > 32768 else 0
                size = abs(difference).bit_length()
                bits.append(f"{size:05b}")
                if 0 < size < 16:
                    value = difference if difference > 0 else difference + (1 << size) - 1
                    bits.append(f"{value:0{size}b}")
    parts.append(bits)
    coded = b""
    for number, part in enumerate(parts):
        text = "".join(part)
        text += "1" * (-len(text) % 8)
        raw = bytes(int(text[k : k + 8], 2) for k in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")
        coded += raw + (bytes([0xFF, 0xD0 + number % 8]) if number + 1 < len(parts) else b"")
    table = bytes([0]) + bytes([0, 0, 0, 0, 17]) + bytes(11) + bytes(range(17))
    names = b"".join(bytes([c + 1, 0x11, 0]) for c in range(channels))
    frame = struct.pack(">BHHB", depth, height, columns, channels) + names
    scan = bytes([channels]) + b"".join(bytes([c + 1, 0]) for c in range(channels)) + bytes([predictor, 0, shift])
    restart = segment(0xDD, struct.pack(">H", rows * (width or columns))) if rows else b""
    head = b"\xff\xd8" + segment(0xC4, table) + segment(0xC3, frame) + restart + segment(0xDA, scan)
    return head + coded + b"\xff\xd9"


@pytest.mark.parametrize("predictor", range(1, 8))
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(2, 16),
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7), st.sampled_from([1, 3])),
    rows=st.integers(0, 4),
    data=st.data(),
)
def test_what_is_encoded_comes_back(predictor, seed, depth, shape, rows, data):
    samples = np.random.default_rng(seed).integers(0, 1 << depth, shape)
    shift = data.draw(st.integers(0, depth - 1))
    out = read_lossless(encoded(samples, depth=depth, predictor=predictor, shift=shift, rows=rows))
    expected = samples >> shift << shift
    np.testing.assert_array_equal(out, expected[..., 0] if shape[2] == 1 else expected)


def test_the_largest_difference():
    np.testing.assert_array_equal(read_lossless(encoded([[0, 32768, 0]], depth=16)), [[0, 32768, 0]])


def test_the_bundled_file():
    header = pydicom.dcmread(BUNDLED / "SC_rgb_jpeg_gdcm.dcm")
    samples = read_lossless(get_frame(header.PixelData, 0, number_of_frames=1))
    plain = pydicom.dcmread(BUNDLED / "SC_rgb_rle.dcm").pixel_array
    np.testing.assert_array_equal(samples, plain)


@pytest.mark.parametrize("syntax", sorted(SYNTAXES))
def test_gdcm_and_the_whole_way_through_dicom(syntax, dicom):
    pytest.importorskip("gdcm")
    samples = np.random.default_rng(3).integers(0, 4096, (9, 13)).astype(np.uint16)
    frame = encoded(samples, depth=12, predictor=1)
    path = dicom(samples, bits=12)
    header = pydicom.dcmread(path)
    header.PixelData = encapsulate([frame])
    header["PixelData"].VR = "OB"
    header["PixelData"].is_undefined_length = True
    header.file_meta.TransferSyntaxUID = syntax
    header.save_as(path, enforce_file_format=True)
    np.testing.assert_allclose(read_radiograph(path).pixels, samples / 4095, atol=1e-6)
    np.testing.assert_array_equal(pydicom.dcmread(path).pixel_array, samples)


SAMPLES = np.random.default_rng(5).integers(0, 256, (6, 5))
GOOD = encoded(SAMPLES, depth=8, rows=2)


def test_every_truncation_is_an_error():
    for length in range(2, len(GOOD) - 4):  # the last byte of code may hold padding alone
        with pytest.raises(ImageError):
            read_lossless(GOOD[:length] + b"\xff\xd9")


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (b"\xff\xc3\x00\x0b\x08", b"\xff\xc3\x00\x0b\x11", "depth"),
        (b"\xff\xc3\x00\x0b\x08", b"\xff\xc3\x00\x0b\x01", "depth"),
        (b"\xff\xc3\x00\x0b\x08\x00\x06", b"\xff\xc3\x00\x0b\x08\x00\x00", "no pixels"),
        (b"\x01\x11\x00", b"\x01\x21\x00", "resolution"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x01\x02\x00\x01\x00\x00", "one scan"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x02\x01\x00\x01\x00\x00", "one scan"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x01\x01\x40\x01\x00\x00", "tables"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x01\x01\x00\x00\x00\x00", "predictor 0"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x01\x01\x00\x08\x00\x00", "predictor 8"),
        (b"\x01\x01\x00\x01\x00\x00", b"\x01\x01\x00\x01\x00\x08", "shift 8"),
        (b"\xff\xdd\x00\x04\x00\x0a", b"\xff\xdd\x00\x04\x00\x0b", "restarts"),
        (b"\xff\xdd\x00\x04\x00\x0a", b"\xff\xdd\x00\x04\x00\x05", "restarts"),
        (b"\xff\xdd\x00\x04\x00\x0a", b"\xff\xdd\x00\x04\x00\x02", "restarts"),
        (b"\x0f\x10", b"\x0f\x11", "symbols"),
        (b"\x00\x00\x00\x00\x11", b"\x11\x00\x00\x00\x00", "too many codes"),
        (b"\x00\x00\x00\x00\x11", b"\x00\x00\x00\x00\x12", "malformed"),
    ],
)
def test_malformed_segments(old, new, match):
    assert old in GOOD
    with pytest.raises(ImageError) as caught:
        read_lossless(GOOD.replace(old, new, 1))
    assert match in str(caught.value)


def test_pixels_that_do_not_suffice():
    start = GOOD.find(b"\xff\xda")
    for damaged in (GOOD[: start + 12] + b"\xff\xd0\xff\xd1\xff\xd9", GOOD[: start + 10] + b"\xff\0" * 40 + GOOD[-30:]):
        with pytest.raises(ImageError):
            read_lossless(damaged)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(2, 10**6), st.integers(0, 255)), min_size=1, max_size=5))
def test_any_damage_is_an_image_error_or_samples(damage):
    data = bytearray(GOOD)
    for place, value in damage:
        data[2 + place % (len(data) - 2)] = value
    try:
        samples = read_lossless(bytes(data))
    except ImageError:
        return
    assert samples.dtype == np.uint16
