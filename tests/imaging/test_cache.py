"""A cache may save time and may be useless; it may never show another picture than the decoder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from medground.errors import ConfigError, ImageError
from medground.imaging import cache as module
from medground.imaging.cache import DecodeCache
from medground.imaging.reading import Radiograph, read_radiograph


def write_png(path: Path, seed: int, side: int = 24, *, depth: int = 8) -> Path:
    """Write the same values in another order for each seed, so that all entries take the same room."""
    every = np.arange(side * side) * (1 if depth == 8 else 7) % (1 << depth)
    values = np.random.default_rng(seed).permutation(every).reshape(side, side).astype(np.uint16)
    Image.fromarray(values if depth == 16 else values.astype(np.uint8)).save(path)
    return path


def entries(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.suffix == ".radiograph"}


def taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in entries(folder))


def account(folder: Path) -> int:
    return int((folder / ".account").read_text())


def assert_same(got: Radiograph, expected: Radiograph) -> None:
    """Equal in every field, pixels bit by bit."""
    assert got.pixels.dtype == expected.pixels.dtype == np.float32
    np.testing.assert_array_equal(got.pixels.view(np.uint32), expected.pixels.view(np.uint32))
    assert not got.pixels.flags.writeable
    for name in ("case_id", "patient_id", "source", "value_range", "steps", "size"):
        assert getattr(got, name) == getattr(expected, name)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by one whenever a file is decoded."""
    times: list[int] = []
    decode = module.decode

    def counted(data: bytes) -> object:
        times.append(len(data))
        return decode(data)

    monkeypatch.setattr(module, "decode", counted)
    return times


@pytest.fixture
def one_entry(tmp_path: Path) -> int:
    """The size of an entry for one picture of ``write_png``."""
    folder = tmp_path / "measured"
    DecodeCache(folder).read(write_png(tmp_path / "measured.png", 99))
    return taken(folder)


def test_the_second_time_nothing_is_decoded(tmp_path: Path, decoded: list[int]) -> None:
    file = write_png(tmp_path / "x.png", 0)
    for i, case in enumerate("abc"):
        picture = DecodeCache(tmp_path / "cache").read(file, case_id=case, patient_id=f"p{i}")
        assert_same(picture, read_radiograph(file, case_id=case, patient_id=f"p{i}"))
    assert len(decoded) == 1
    copy = tmp_path / "another name.png"
    copy.write_bytes(file.read_bytes())
    assert DecodeCache(tmp_path / "cache").read(str(copy)).source == "another name.png"
    assert len(decoded) == 1


@pytest.mark.parametrize(
    "kind", ["png 8", "png 16", "jpeg", "colour", "monochrome1", "signed", "window", "sigmoid", "32 bit"]
)
def test_every_kind_of_picture_comes_back_bit_by_bit(
    kind: str, tmp_path: Path, dicom: Callable[..., Path], decoded: list[int]
) -> None:
    rng = np.random.default_rng(5)
    stored = rng.integers(0, 4096, (33, 47), dtype=np.uint16)
    if kind.startswith("png"):
        file = write_png(tmp_path / "x.png", 1, depth=int(kind.split()[1]))
    elif kind in {"jpeg", "colour"}:
        file = tmp_path / "x.jpg"
        Image.fromarray(rng.integers(0, 256, (33, 47, 3), dtype=np.uint8)).convert(
            "L" if kind == "jpeg" else "RGB"
        ).save(file)
    elif kind == "signed":
        file = dicom(stored.astype(np.int16) - 2000, bits=12, RescaleSlope="-0.37", RescaleIntercept="11")
    elif kind == "32 bit":  # more greys than a table holds
        file = dicom(rng.integers(0, 1 << 32, (400, 300), dtype=np.uint32))
    else:
        window = {"WindowCenter": "1900", "WindowWidth": "1500"}
        tags = {
            "monochrome1": {"PhotometricInterpretation": "MONOCHROME1"},
            "window": window,
            "sigmoid": window | {"VOILUTFunction": "SIGMOID"},
        }[kind]
        file = dicom(stored, bits=12, **tags)
    expected = read_radiograph(file)
    for _ in range(3):
        assert_same(DecodeCache(tmp_path / "cache").read(file), expected)
    assert len(decoded) == 1


def test_a_changed_file_of_the_same_name_size_and_time_is_another_picture(tmp_path: Path) -> None:
    cache, file = DecodeCache(tmp_path / "cache"), tmp_path / "x.bmp.png"
    black, white = (write_png(tmp_path / f"{seed}.png", seed).read_bytes() for seed in (1, 2))
    size = max(len(black), len(white))
    for data in (black, white, black):
        file.write_bytes(data + b"\0" * (size - len(data)))  # bytes after the end of a PNG are not read
        os.utime(file, (10**9, 10**9))
        assert_same(cache.read(file), read_radiograph(file))
    assert len(entries(tmp_path / "cache")) == 2


def test_another_version_of_a_decoder_is_another_entry(
    tmp_path: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, now = write_png(tmp_path / "x.png", 0), module._version
    DecodeCache(tmp_path / "cache").read(file)
    for package in ("medground", "pydicom", "pillow", "numpy", "pylibjpeg-libjpeg"):
        monkeypatch.setattr(module, "_version", lambda name, p=package: "99" if name == p else now(name))
        module._decoders.cache_clear()
        DecodeCache(tmp_path / "cache").read(file)
    monkeypatch.undo()
    module._decoders.cache_clear()
    assert len(entries(tmp_path / "cache")) == 6


def test_what_this_package_does_is_part_of_an_entrys_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "imaging"
    sources.mkdir()
    for path in Path(module.__file__).parent.glob("*.py"):
        (sources / path.name).write_text(path.read_text())
    before = module._decoders.__wrapped__()
    monkeypatch.setattr(module, "__file__", str(sources / "cache.py"))
    assert module._decoders.__wrapped__() == before
    (sources / "_grey.py").write_text((sources / "_grey.py").read_text() + "# changed\n")
    assert module._decoders.__wrapped__() != before


@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped", "longer", "swapped", "of another kind"])
def test_a_damaged_entry_is_replaced(damage: str, tmp_path: Path, decoded: list[int]) -> None:
    folder, file, other = tmp_path / "cache", write_png(tmp_path / "x.png", 0), write_png(tmp_path / "y.png", 1)
    expected = read_radiograph(file)
    DecodeCache(folder).read(file)
    (entry,) = entries(folder)
    DecodeCache(folder).read(other)
    (another,) = entries(folder) - {entry}
    whole = entry.read_bytes()
    middle = len(whole) // 2
    entry.write_bytes(
        {
            "emptied": b"",
            "cut": whole[:-1],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :],
            "longer": whole + b"\0",
            "swapped": another.read_bytes(),  # whole, and of another picture
            "of another kind": b"\x89PNG\r\n\x1a\n",
        }[damage]
    )
    cache = DecodeCache(folder)
    decoded.clear()
    assert_same(cache.read(file), expected)
    assert len(decoded) == 1
    assert entry.read_bytes() == whole
    assert_same(cache.read(file), expected)
    assert len(decoded) == 1
    assert account(folder) == taken(folder)


@settings(max_examples=60)
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_a_picture(place: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("flipped")
    file = write_png(root / "x.png", 3)
    cache = DecodeCache(root / "cache")
    cache.read(file)
    (entry,) = entries(root / "cache")
    data = bytearray(entry.read_bytes())
    data[place % len(data)] ^= 1 << bit
    entry.write_bytes(data)
    assert_same(cache.read(file), read_radiograph(file))


def test_errors_are_those_of_reading(tmp_path: Path) -> None:
    cache, folder = DecodeCache(tmp_path / "cache"), tmp_path / "cache"
    whole = write_png(tmp_path / "whole.png", 0).read_bytes()
    for name, data in {"cut.png": whole[:-20], "text.dcm": b"no picture", "empty.png": b"", "absent.png": None}.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(ImageError) as ours:
            cache.read(tmp_path / name)
        with pytest.raises(ImageError) as theirs:
            read_radiograph(tmp_path / name)
        assert str(ours.value) == str(theirs.value)
    assert not entries(folder)


def test_the_least_recently_used_go_first(tmp_path: Path, one_entry: int, decoded: list[int]) -> None:
    folder, files = tmp_path / "cache", [write_png(tmp_path / f"{i}.png", i) for i in range(5)]
    for i, file in enumerate(files[:3]):
        before = entries(folder) if folder.exists() else set()
        DecodeCache(folder, 3 * one_entry).read(file)
        (new,) = entries(folder) - before
        os.utime(new, (i + 1, i + 1))
    DecodeCache(folder, 3 * one_entry).read(files[0])  # now the last to have been used
    cache = DecodeCache(folder, 3 * one_entry)
    cache.read(files[3])
    cache.read(files[4])
    assert taken(folder) == account(folder) == 3 * one_entry
    decoded.clear()
    again = DecodeCache(folder, 3 * one_entry)
    for kept in (0, 3, 4):
        again.read(files[kept])
    assert not decoded
    again.read(files[1])
    again.read(files[2])
    assert len(decoded) == 2


def test_what_is_used_during_a_run_outlives_what_is_not(tmp_path: Path, one_entry: int, decoded: list[int]) -> None:
    folder, files = tmp_path / "cache", [write_png(tmp_path / f"{i}.png", i) for i in range(3)]
    for i, file in enumerate(files[:2]):
        before = entries(folder) if folder.exists() else set()
        DecodeCache(folder, 2 * one_entry).read(file)
        (new,) = entries(folder) - before
        os.utime(new, (i + 1, i + 1))
    cache = DecodeCache(folder, 2 * one_entry)
    cache.read(files[0])  # the oldest when the run began
    cache.read(files[2])
    decoded.clear()
    for kept in (0, 2):
        DecodeCache(folder, 2 * one_entry).read(files[kept])
    assert not decoded


def test_what_a_run_has_used_is_not_lost_to_what_it_reads_next(
    tmp_path: Path, one_entry: int, decoded: list[int]
) -> None:
    files = [write_png(tmp_path / f"{i}.png", i) for i in range(6)]
    cache = DecodeCache(tmp_path / "cache", 4 * one_entry)
    for file in files:
        cache.read(file)
    decoded.clear()
    for file in files:
        cache.read(file)
    assert len(decoded) == 2, "pictures are read in a cycle: each would be put out just before its turn"


def test_room_is_made_for_small_and_large(tmp_path: Path, one_entry: int) -> None:
    folder, bound = tmp_path / "cache", 4 * one_entry
    for i in range(4):
        DecodeCache(folder, bound).read(write_png(tmp_path / f"{i}.png", i))
    DecodeCache(folder, bound).read(write_png(tmp_path / "double.png", 7, depth=16))
    assert one_entry < taken(folder) == account(folder) <= bound
    DecodeCache(folder, bound).read(write_png(tmp_path / "huge.png", 8, side=200))
    assert one_entry < taken(folder) == account(folder) <= bound, "a picture beyond the bound puts nothing out"
    DecodeCache(folder, one_entry)
    assert taken(folder) == account(folder) <= one_entry, "a smaller bound holds at once"


def test_files_of_others_are_left_alone(tmp_path: Path, one_entry: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    theirs = [folder / "notes.txt", folder / "mine.radiograph", folder / ("0" * 64 + ".png")]
    for path in theirs:
        path.write_bytes(b"x" * 10_000)
        os.utime(path, (1, 1))
    for i in range(3):
        DecodeCache(folder, one_entry).read(write_png(tmp_path / f"{i}.png", i))
    assert all(path.read_bytes() == b"x" * 10_000 for path in theirs)
    assert account(folder) == one_entry


@pytest.mark.parametrize("scribble", [b"", b"nonsense", b"-5", None])
def test_an_account_that_cannot_be_read_is_drawn_up_again(
    scribble: bytes | None, tmp_path: Path, one_entry: int
) -> None:
    folder = tmp_path / "cache"
    cache = DecodeCache(folder, 3 * one_entry)
    cache.read(write_png(tmp_path / "0.png", 0))
    if scribble is None:
        (folder / ".account").unlink()
    else:
        (folder / ".account").write_bytes(scribble)
    for i in range(1, 6):
        cache.read(write_png(tmp_path / f"{i}.png", i))
    assert taken(folder) == account(folder) == 3 * one_entry


def test_what_a_kill_left_behind_does_not_count(tmp_path: Path, one_entry: int) -> None:
    folder = tmp_path / "cache"
    DecodeCache(folder, 2 * one_entry).read(write_png(tmp_path / "0.png", 0))
    (folder / ".partial").write_bytes(b"half")
    (folder / ".account").write_text(str(2 * one_entry))  # raised, and then killed
    cache = DecodeCache(folder, 2 * one_entry)
    cache.read(write_png(tmp_path / "1.png", 1))
    assert len(entries(folder)) == 2
    assert not (folder / ".partial").exists()


def test_a_disk_that_fails_costs_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = write_png(tmp_path / "x.png", 0), tmp_path / "cache"
    cache = DecodeCache(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert_same(cache.read(file), read_radiograph(file))
    assert [p.name for p in folder.iterdir()] == [".account"]
    assert account(folder) == 0
    cache.read(file)
    assert len(entries(folder)) == 1
    for path in [*folder.iterdir()]:
        path.unlink()
    folder.rmdir()
    assert_same(cache.read(file), read_radiograph(file))


def test_a_folder_that_cannot_be_used_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="decode cache"):
            DecodeCache(path)

    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    with pytest.raises(ConfigError, match="No locks available"):
        DecodeCache(tmp_path / "cache")


@pytest.mark.parametrize("room", [4, 100])
def test_many_threads_share_a_cache(room: int, tmp_path: Path, one_entry: int) -> None:
    folder, files = tmp_path / "cache", [write_png(tmp_path / f"{i}.png", i) for i in range(12)]
    cache, stop, highest = DecodeCache(folder, room * one_entry), threading.Event(), [0]

    def watch() -> None:
        while not stop.is_set():
            highest[0] = max(highest[0], sum(_size(p) for p in entries(folder)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(8) as pool:
        for file, got in zip(files * 8, pool.map(cache.read, files * 8), strict=True):
            assert_same(got, read_radiograph(file))
    stop.set()
    watcher.join()
    assert taken(folder) == account(folder) == min(room, 12) * one_entry
    assert highest[0] <= room * one_entry
    assert {p.suffix for p in folder.iterdir()} == {".radiograph", ""}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


READER = """
import sys
from pathlib import Path
import numpy as np
from medground.imaging.cache import DecodeCache
from medground.imaging.reading import read_radiograph

folder, bound, seed, *files = sys.argv[1:]
rng = np.random.default_rng(int(seed))
for _ in range(8):
    cache = DecodeCache(Path(folder), int(bound))
    for file in rng.permutation(files):
        assert np.array_equal(cache.read(file).pixels, read_radiograph(file).pixels)
"""


def test_several_processes_share_a_cache(tmp_path: Path, one_entry: int) -> None:
    folder, files = tmp_path / "cache", [str(write_png(tmp_path / f"{i}.png", i)) for i in range(12)]
    bound = 5 * one_entry
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(folder), str(bound), str(seed), *files])
        for seed in range(3)
    ]
    assert [reader.wait() for reader in readers] == [0, 0, 0]
    assert taken(folder) == account(folder) == bound
