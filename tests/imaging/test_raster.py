import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageFile

from medground.errors import ImageError
from medground.imaging import _raster
from medground.imaging.reading import image_size, read_radiograph

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16)]
KINDS += [(6, 8), (6, 16)]


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def rows_of(values, depth):
    """Rows of a PNG without filters, each led by a 0; ``values`` are (h, w, channels)."""
    if depth == 16:
        packed = values.astype(">u2").view(np.uint8).reshape(len(values), -1)
    else:
        bits = (values.reshape(len(values), -1)[..., None] >> np.arange(depth)[::-1]) & 1
        packed = np.packbits(bits.reshape(len(values), -1).astype(bool), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in packed)


def png(values, colour, depth, *, interlaced=False, palette=b"", extra=b"", ihdr=None):
    """A PNG file written by the book."""
    values = np.asarray(values).reshape(*np.shape(values)[:2], CHANNELS[colour])
    height, width = values.shape[:2]
    if interlaced:
        passes = [values[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        raw = b"".join(rows_of(part, depth) for part in passes if part.size)
    else:
        raw = rows_of(values, depth)
    header = ihdr or struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    plte = chunk(b"PLTE", palette) if palette else b""
    body = chunk(b"IHDR", header) + plte + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return _raster.PNG_MARK + body


def luma(rgb):
    weighted = rgb[..., 0] * 19595 + rgb[..., 1] * 38470 + rgb[..., 2] * 7471
    return (weighted + 32768) // 65536


@pytest.fixture
def saved(tmp_path):
    def save(data, name="x.png"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return save


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_every_kind_of_png(colour, depth, interlaced, saved):
    rng = np.random.default_rng(colour * 100 + depth)
    values = rng.integers(0, 1 << depth, (9, 11, CHANNELS[colour]))
    palette = rng.integers(0, 256, (1 << depth, 3), dtype=np.uint8) if colour == 3 else None
    path = saved(
        png(values, colour, depth, interlaced=interlaced, palette=b"" if palette is None else palette.tobytes())
    )
    top = 255 if colour == 3 else (1 << depth) - 1
    if colour == 3:
        grey = luma(palette[values[..., 0]].astype(int))
    else:
        grey = luma(values) if colour in {2, 6} else values[..., 0]
    picture = read_radiograph(path)
    np.testing.assert_allclose(picture.pixels, grey / top, atol=1e-6)
    assert picture.pixels.dtype == np.float32
    assert picture.value_range == (0, top)
    assert picture.steps[0].startswith("PNG")
    assert ("alpha ignored" in picture.steps) == (colour in {4, 6})
    assert picture.size == image_size(path) == (11, 9)


@pytest.mark.parametrize("mode", ["1", "L", "I;16", "P", "RGB", "RGBA", "LA"])
def test_pillow_agrees(mode, saved):
    picture = Image.effect_mandelbrot((40, 30), (-2, -1.5, 1, 1.5), 30)
    picture = Image.fromarray(np.asarray(picture).astype(np.uint16) * 257) if mode == "I;16" else picture.convert(mode)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    expected = np.asarray(picture) / 65535 if mode == "I;16" else np.asarray(picture.convert("L")) / 255
    np.testing.assert_allclose(read_radiograph(saved(buffer.getvalue())).pixels, expected, atol=1e-6)


def test_transparency_of_a_palette_is_ignored(saved):
    palette = bytes([0, 0, 0, 255, 255, 255])
    data = png([[0, 1]], 3, 8, palette=palette, extra=chunk(b"tRNS", b"\0\x80"))
    assert read_radiograph(saved(data)).pixels.tolist() == [[0, 1]]


def test_chunks_that_pixels_do_not_need_are_not_parsed(saved):
    bomb = zlib.compress(b"x" * 50_000_000)
    extra = chunk(b"zTXt", b"k\0\0" + bomb) + chunk(b"iCCP", b"p\0\0" + bomb) + chunk(b"eXIf", b"broken")
    assert read_radiograph(saved(png([[0, 255]], 0, 8, extra=extra))).pixels.tolist() == [[0, 1]]


def test_every_single_changed_byte_is_noticed(saved):
    data = png(np.arange(64).reshape(8, 8), 0, 8)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        with pytest.raises(ImageError):
            read_radiograph(saved(changed))


def test_every_truncation_is_noticed(saved, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # what another library may have asked Pillow for
    data = png(np.arange(64).reshape(8, 8), 0, 8)
    for length in range(len(data)):
        with pytest.raises(ImageError) as caught:
            read_radiograph(saved(data[:length]))
        assert "x.png" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (png([[0]], 0, 8, ihdr=struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 0, 0, 0, 0)), "bomb"),
        (png([[0]], 0, 8, ihdr=struct.pack(">IIBBBBB", 0, 1, 8, 0, 0, 0, 0)), "no pixels"),
        (png([[0]], 0, 8, ihdr=struct.pack(">IIBBBBB", 9, 9, 8, 0, 0, 0, 0)), "decoded"),
        (png([[0]], 0, 8, ihdr=struct.pack(">IIBBBBB", 1, 1, 3, 0, 0, 0, 0)), "malformed"),
        (png([[0]], 0, 8, ihdr=struct.pack(">IIBBBBB", 1, 1, 8, 5, 0, 0, 0)), "malformed"),
        (png([[0]], 0, 8, ihdr=b"short"), "13 bytes"),
        (png([[0]], 0, 8, extra=chunk(b"acTL", bytes(8))), "animated"),
        (png([[0]], 0, 8, extra=chunk(b"NEED", b"")), "not read"),
        (png([[0]], 0, 8, extra=chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 8, 0, 0, 0, 0))), "one IHDR"),
        (_raster.PNG_MARK + chunk(b"IDAT", b"") + chunk(b"IEND", b""), "one IHDR"),
        (_raster.PNG_MARK + chunk(b"IEND", b""), "13 bytes"),
        (_raster.PNG_MARK + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IEND", b""), "IDAT"),
        (png([[5]], 3, 8, palette=bytes(9)), "beyond its palette"),
        (png([[0]], 3, 8, palette=bytes(8)), "palette is malformed"),
        (png([[0]], 3, 8), "palette is malformed"),
        (_raster.PNG_MARK + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IDAT", b"no zlib")
         + chunk(b"IEND", b""), "decoded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_malformed_pngs(data, match, saved):
    with pytest.raises(ImageError, match=match):
        read_radiograph(saved(data))


def test_the_size_of_a_png_needs_its_header(saved):
    for data in (_raster.PNG_MARK, _raster.PNG_MARK + chunk(b"IDAT", bytes(30))):
        with pytest.raises(ImageError, match="no header"):
            image_size(saved(data))


def test_a_bomb_is_known_by_its_header(saved):
    path = saved(png(np.zeros((20, 30), int), 0, 8))
    assert read_radiograph(path, max_pixels=600).size == (30, 20)
    with pytest.raises(ImageError, match="30 x 20"):
        read_radiograph(path, max_pixels=599)


def jpeg(mode="L", size=(40, 30), **options):
    picture = Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), 30).convert(mode)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", **options)
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 30, "optimize": True}], ids=str)
def test_jpegs_are_what_pillow_says(mode, options, saved):
    data = jpeg(mode, **options)
    path = saved(data, "x.jpg")
    picture = read_radiograph(path)
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("L")) / np.float32(255)
    np.testing.assert_allclose(picture.pixels, expected, atol=1e-6)
    assert picture.value_range == (0, 255)
    assert picture.steps[0] == f"JPEG {'grey' if mode == 'L' else 'colour'}, 8 bit"
    assert picture.size == image_size(path) == (40, 30)


def test_a_jpeg_is_not_turned_by_its_exif(saved):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = jpeg(exif=exif, comment=b"note")
    turned = read_radiograph(saved(data, "x.jpg"))
    assert turned.size == (40, 30)
    assert "EXIF orientation 6 not applied" in turned.steps


def test_an_upright_exif_is_no_remark(saved):
    exif = Image.Exif()
    exif[0x0112] = 1
    assert not [step for step in read_radiograph(saved(jpeg(exif=exif), "x.jpg")).steps if "EXIF" in step]


def test_broken_exif_does_not_matter(saved):
    plain = jpeg()
    broken = plain[:2] + b"\xff\xe1\x00\x10Exif\0\0broken!!" + b"\xff\xff\xe2\x00\x06MPF\0" + plain[2:]
    np.testing.assert_array_equal(
        read_radiograph(saved(broken, "x.jpg")).pixels, read_radiograph(saved(plain, "y.jpg")).pixels
    )


def test_markers_that_stand_alone_are_passed(saved):
    plain = jpeg()
    odd = plain[:2] + b"\xff\x01\xff\xd0" + plain[2:]
    assert _raster.jpeg_header(odd).size == (40, 30)


def test_a_jpeg_with_a_header_beyond_the_first_bytes(saved):
    plain = jpeg()
    far = plain[:2] + b"".join(b"\xff\xe2\xff\xff" + bytes(65533) for _ in range(2)) + plain[2:]
    path = saved(far, "x.jpg")
    assert image_size(path) == read_radiograph(path).size == (40, 30)


def test_cmyk_and_other_depths_are_refused(saved):
    with pytest.raises(ImageError, match="CMYK"):
        read_radiograph(saved(jpeg("CMYK"), "x.jpg"))
    data = bytearray(jpeg())
    frame = data.find(b"\xff\xc0")
    data[frame + 4] = 12
    with pytest.raises(ImageError, match="12 bit"):
        read_radiograph(saved(data, "x.jpg"))


def test_every_truncation_of_a_jpeg_is_noticed(saved, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = jpeg()
    for length in range(0, len(data), 3):
        with pytest.raises(ImageError):
            read_radiograph(saved(data[:length], "x.jpg"))


def test_a_jpeg_bomb_is_known_by_its_header(saved):
    data = bytearray(jpeg())
    frame = data.find(b"\xff\xc0")
    data[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    with pytest.raises(ImageError, match="bomb"):
        read_radiograph(saved(data, "x.jpg"))


@settings(max_examples=150)
@given(st.sampled_from(["L", "RGB"]), st.lists(st.tuples(st.integers(2, 2000), st.integers(0, 255)), max_size=6))
def test_any_damage_to_a_jpeg_is_an_image_error_or_a_picture(mode, damage):
    data = bytearray(jpeg(mode))
    for place, value in damage:
        data[place % len(data)] = value
    try:
        shown = _raster.read_jpeg(bytes(data), 100_000)
    except ImageError:
        return
    assert 0 <= shown.pixels.min() <= shown.pixels.max() <= 1


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_any_bytes_after_the_mark(data):
    for read, mark in ((_raster.read_png, _raster.PNG_MARK), (_raster.read_jpeg, _raster.JPEG_MARK)):
        with pytest.raises(ImageError):
            read(mark + data, 100_000)


def test_luma_keeps_grey():
    grey = np.arange(65536)
    np.testing.assert_array_equal(_raster.luma(np.repeat(grey[:, None], 3, axis=1)), grey)
