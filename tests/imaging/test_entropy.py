"""Every bit of a JPEG's scans is accounted for: whole files pass, damaged and cut ones do not."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medground.errors import ImageError
from medground.imaging._entropy import check_scans
from medground.imaging.reading import decode

FORMS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "progressive": {"progressive": True},
    "own tables": {"optimize": True},
    "fine": {"quality": 100},
    "coarse": {"quality": 5},
    "restarts in blocks": {"restart_marker_blocks": 3},
    "restarts in rows": {"restart_marker_rows": 1},
    "progressive with restarts": {"progressive": True, "restart_marker_rows": 1},
}
COLOURS: dict[str, dict[str, Any]] = {
    f"{name}, subsampling {s}": {**options, "subsampling": s}
    for name, options in (("baseline", {}), ("progressive", {"progressive": True}))
    for s in (0, 1, 2)
}


def picture(width: int, height: int, mode: str = "L") -> Image.Image:
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(0).normal(0, 15, (height, width))
    levels = np.clip(128 + 60 * np.sin(x / 9) * np.cos(y / 7) + noise, 0, 255).astype(np.uint8)
    if mode == "L":
        return Image.fromarray(levels)
    return Image.fromarray(np.stack([levels, np.roll(levels, 3, 0), np.roll(levels, 5, 1)], -1))


def jpeg(image: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def scan_of(data: bytes) -> int:
    return data.index(b"\xff\xda") + 14


@pytest.mark.parametrize("size", [(64, 64), (57, 83), (8, 8), (1, 1), (200, 17)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_whole_grey_files_pass(form: str, size: tuple[int, int]) -> None:
    check_scans(jpeg(picture(*size), **FORMS[form]))


@pytest.mark.parametrize("size", [(64, 64), (57, 83), (3, 200)], ids=str)
@pytest.mark.parametrize("form", [*FORMS, *COLOURS])
def test_whole_colour_files_pass(form: str, size: tuple[int, int]) -> None:
    check_scans(jpeg(picture(*size, "RGB"), **{**FORMS, **COLOURS}[form]))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_cut_and_closed_is_refused(form: str) -> None:
    whole = jpeg(picture(90, 70), **FORMS[form])
    for place in range(scan_of(whole), len(whole) - 12, max(1, len(whole) // 40)):
        with pytest.raises(ImageError):
            decode(whole[:place] + b"\xff\xd9")


@pytest.mark.parametrize("form", ["baseline", "progressive", "restarts in rows"])
def test_a_lost_stretch_is_refused(form: str) -> None:
    whole = jpeg(picture(90, 70), **FORMS[form])
    for place in range(scan_of(whole), len(whole) - 280, max(1, len(whole) // 60)):
        with pytest.raises(ImageError):
            check_scans(whole[:place] + whole[place + 256 :])


@pytest.mark.parametrize("form", ["baseline", "progressive"])
def test_changed_bits_are_seen_unless_lengths_and_ranges_stay(form: str) -> None:
    whole = jpeg(picture(120, 110), quality=90, **FORMS[form])
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(120):
        damaged = bytearray(whole)
        damaged[int(rng.integers(scan_of(whole), len(whole) - 2))] ^= 1 << int(rng.integers(8))
        try:
            check_scans(bytes(damaged))
        except ImageError:
            refused += 1
    assert refused >= 35


def test_a_missing_and_an_extra_row_of_blocks_are_refused() -> None:
    whole = bytearray(jpeg(picture(64, 64)))
    height = re.search(rb"\xff\xc0..\x08", bytes(whole), re.DOTALL)
    assert height is not None
    for other in (56, 72):
        changed = bytearray(whole)
        changed[height.end() : height.end() + 2] = other.to_bytes(2, "big")
        with pytest.raises(ImageError, match="JPEG"):
            check_scans(bytes(changed))


def test_restart_marks_out_of_order_and_lost_ones_are_refused() -> None:
    whole = jpeg(picture(64, 64), restart_marker_rows=1)
    start = scan_of(whole)
    first, second = whole.index(b"\xff\xd0", start), whole.index(b"\xff\xd1", start)
    swapped = bytearray(whole)
    swapped[first + 1], swapped[second + 1] = 0xD1, 0xD0
    for damaged in (bytes(swapped), whole[:first] + whole[first + 2 :], whole[:first] + whole[second:]):
        with pytest.raises(ImageError, match=r"restart marks|a scan"):
            check_scans(damaged)


def test_a_progressive_file_without_its_last_scan_is_refused() -> None:
    whole = jpeg(picture(64, 64), progressive=True)
    last = whole.rindex(b"\xff\xda")
    table = whole.rfind(b"\xff\xc4", 0, last)
    with pytest.raises(ImageError, match="truncated"):
        check_scans(whole[:table] + b"\xff\xd9")


def test_arithmetic_coding_is_left_to_the_decoder() -> None:
    whole = bytearray(jpeg(picture(16, 16)))
    whole[whole.index(b"\xff\xc0") + 1] = 0xC9
    check_scans(bytes(whole))


def fault_of(data: bytes) -> str:
    try:
        check_scans(data)
    except ImageError as error:
        return f"{error.what}; {error.where}; {error.got}"
    return "sound"


@pytest.mark.parametrize("form", ["baseline", "own tables", "fine", "coarse", "restarts in rows", "colour"])
def test_passing_code_and_number_in_one_step_changes_no_fault(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from medground.imaging import _entropy

    colour = form == "colour"
    whole = jpeg(
        picture(90, 70, "RGB" if colour else "L"), **(COLOURS["baseline, subsampling 2"] if colour else FORMS[form])
    )
    rng = np.random.default_rng(5)
    files = [whole, *(whole[:cut] + b"\xff\xd9" for cut in rng.integers(scan_of(whole), len(whole), 40).tolist())]
    for place, bit in zip(rng.integers(scan_of(whole), len(whole), 300).tolist(), rng.integers(0, 8, 300), strict=True):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(bit)
        files.append(bytes(changed))
    stepped = [fault_of(data) for data in files]
    _entropy._spread.cache_clear()
    monkeypatch.setattr(_entropy, "steps_of", lambda lengths, symbols: np.zeros(1 << 16, np.uint16))
    one_by_one = [fault_of(data) for data in files]
    _entropy._spread.cache_clear()
    assert stepped == one_by_one
    assert stepped[0] == "sound"
    assert len(set(stepped)) > 2


def test_the_end_of_a_scan_is_where_a_marker_stands_that_is_no_restart() -> None:
    from medground.imaging._entropy import _scan_end

    rng = np.random.default_rng(1)
    often = np.array([0x00, 0x12, 0xD0, 0xD7, 0xD8, 0xD9, 0xFF, 0xFF, 0xFF], np.uint8)
    for length in (0, 1, 2, 3, 5, 8, 13, 40):
        for _ in range(60):
            data = rng.choice(often, length).tobytes()
            for start in range(min(length, 4) + 1):
                match = re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]", re.DOTALL).search(data, start)
                assert _scan_end(data, start) == (len(data) if match is None else match.end() - 2)


def test_a_scan_without_a_byte_is_cut() -> None:
    whole = jpeg(picture(40, 40))
    with pytest.raises(ImageError):
        check_scans(whole[: scan_of(whole) - 4] + b"\xff\xd9")
