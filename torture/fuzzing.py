"""Damaged files of every kind that medground reads: each is read, or refused with a sentence; nothing else may happen.

Where a kind carries check sums (PNG), a damaged file that is read has to hold the same picture.
"""

from __future__ import annotations

import io
import json
import pickle
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.pixels import compress
from pydicom.uid import ExplicitVRLittleEndian, RLELossless, SecondaryCaptureImageStorage

from medground.errors import MedgroundError
from medground.imaging.reading import decode
from medground.imaging.rle import counts_from_siim, counts_from_string, mask_from_counts
from medground.models.checkpoints import read_weights
from medground.models.predictions.maps import read_file
from medground.models.predictions.scores import read_scores
from medground.tables.documents import parse_json
from medground.tables.reader import read_table

Reader = Callable[[bytes], Any]
SIZE = (24, 20)


@dataclass
class FuzzCount:
    """What became of the damaged files of one kind.

    Attributes:
        kind: of file.
        tried: damaged files.
        read: were read, by whatever reading them gave.
        refused: were refused with a sentence of medground's.
        changed: were read as another picture, where a check sum should have told.
        escaped: any other error, with the seed that makes it again.
    """

    kind: str
    tried: int = 0
    read: int = 0
    refused: int = 0
    changed: int = 0
    escaped: list[str] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether nothing escaped and nothing was read wrongly without a word."""
        return not self.escaped and not self.changed


def fuzz(kind: str, tries: int, seed: int = 0) -> FuzzCount:
    """Damage a sound file of a kind again and again, and read it."""
    sound, read, summed = KINDS[kind]()
    count = FuzzCount(kind)
    expected = read(sound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(tries):
            damaged = damage(sound, np.random.default_rng((seed, number)))
            count.tried += 1
            try:
                got = read(damaged)
            except MedgroundError:
                count.refused += 1
            except Exception as error:  # what is looked for
                count.escaped.append(f"{number}: {type(error).__name__}: {error}"[:200])
            else:
                count.read += 1
                count.changed += summed and not np.array_equal(got, expected)
    return count


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with one to three things wrong with it."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not data:
            break
        place, length = int(rng.integers(len(data))), int(rng.integers(1, 33))
        way = int(rng.integers(8))
        if way == 0:  # one bit
            data[place] ^= 1 << int(rng.integers(8))
        elif way == 1:  # one byte
            data[place] = int(rng.integers(256))
        elif way == 2:  # cut off
            del data[place:]
        elif way == 3:  # a piece is missing
            del data[place : place + length]
        elif way == 4:  # a piece stands twice
            data[place:place] = data[place : place + length]
        elif way == 5:  # zeros
            data[place : place + length] = bytes(len(data[place : place + length]))
        elif way == 6:  # a number of great size
            data[place : place + 4] = b"\xff\xff\xff\x7f"[: len(data[place : place + 4])]
        else:  # something else
            data[place:place] = rng.bytes(length)
    return bytes(data)


def picture() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return levels of a small picture."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    return np.asarray((5 * x + 3 * y + (x * y) % 7) % 256, dtype=np.uint8)


def _pixels(data: bytes) -> Any:
    return decode(data).pixels


def _saved(kind: str, **options: Any) -> Callable[[], tuple[bytes, Reader, bool]]:
    def make() -> tuple[bytes, Reader, bool]:
        out = io.BytesIO()
        Image.fromarray(picture()).save(out, kind, **options)
        return out.getvalue(), _pixels, kind == "PNG"

    return make


def _dicom(syntax: str) -> Callable[[], tuple[bytes, Reader, bool]]:
    def make() -> tuple[bytes, Reader, bool]:
        header = Dataset()
        header.file_meta = FileMetaDataset()
        header.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        header.SOPClassUID, header.SOPInstanceUID = SecondaryCaptureImageStorage, "1.2.3"
        header.Rows, header.Columns = SIZE[1], SIZE[0]
        header.SamplesPerPixel, header.PhotometricInterpretation, header.PixelRepresentation = 1, "MONOCHROME1", 0
        header.BitsAllocated, header.BitsStored, header.HighBit = 16, 12, 11
        header.WindowCenter, header.WindowWidth, header.RescaleSlope, header.RescaleIntercept = 900, 1500, 2, -10
        header.PixelData = (picture().astype(np.uint16) * 4).tobytes()
        header["PixelData"].VR = "OW"
        if syntax != ExplicitVRLittleEndian:
            compress(header, syntax, encoding_plugin="pydicom")
        out = io.BytesIO()
        header.save_as(out, enforce_file_format=True)
        return out.getvalue(), _pixels, False

    return make


def _text(content: str, read: Callable[[str], Any]) -> Callable[[], tuple[bytes, Reader, bool]]:
    return lambda: (content.encode(), lambda data: read(data.decode("latin-1")), False)


def _on_disk(content: bytes, name: str, read: Callable[[Path], Any]) -> tuple[bytes, Reader, bool]:
    def reader(data: bytes) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            return read(path)

    return content, reader, False


def _table() -> tuple[bytes, Reader, bool]:
    lines = ["case_id,finding,score", *(f'case{i},"Mass, {i}",{i / 7:.4f}' for i in range(30))]
    return _on_disk("\n".join(lines).encode(), "scores.csv", lambda path: read_table(path, ["case_id"]).frame)


def _scores() -> tuple[bytes, Reader, bool]:
    lines = ["case_id,finding,score", *(f"case{i},Mass,{i / 40:.4f}" for i in range(30))]
    return _on_disk("\n".join(lines).encode(), "scores.csv", read_scores)


def _weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {f"layer.{i}.weight": torch.randn(3, 4, generator=generator) for i in range(4)}


def _numbers(path: Path) -> Any:
    """Return all weights of a checkpoint in a row, by name."""
    tensors = read_weights(path).tensors
    return np.concatenate([tensors[name].numpy().ravel() for name in sorted(tensors)])


def _torch_file() -> tuple[bytes, Reader, bool]:
    out = io.BytesIO()
    torch.save({"state_dict": _weights(), "epoch": 3}, out)
    return (*_on_disk(out.getvalue(), "weights.pt", _numbers)[:2], True)


def _old_torch_file() -> tuple[bytes, Reader, bool]:
    out = io.BytesIO()
    torch.save(_weights(), out, _use_new_zipfile_serialization=False)
    return _on_disk(out.getvalue(), "weights.bin", read_weights)


def _safetensors() -> tuple[bytes, Reader, bool]:
    return _on_disk(safetensors.torch.save(_weights()), "weights.safetensors", read_weights)


def _array_file() -> tuple[bytes, Reader, bool]:
    out = io.BytesIO()
    np.save(out, picture().astype(np.float32))
    return _on_disk(out.getvalue(), "map.npy", read_file)


def _pickled_map() -> tuple[bytes, Reader, bool]:
    content = {"map": torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)).numpy(), "task": "Mass"}
    return _on_disk(pickle.dumps(content, protocol=2), "map.pkl", read_file)


def _zip_table() -> tuple[bytes, Reader, bool]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scores.csv", "case_id,score\n" + "\n".join(f"case{i},{i}" for i in range(40)))
    return _on_disk(out.getvalue(), "scores.csv.zip", lambda path: read_table(path, ["case_id"]).frame)


KINDS: Mapping[str, Callable[[], tuple[bytes, Reader, bool]]] = {
    "PNG": _saved("PNG"),
    "JPEG": _saved("JPEG", quality=85),
    "JPEG, progressive": _saved("JPEG", quality=85, progressive=True),
    "DICOM": _dicom(ExplicitVRLittleEndian),
    "DICOM, RLE": _dicom(RLELossless),
    "run lengths, COCO": _text("5:d0d0?", lambda text: mask_from_counts(counts_from_string(text), (10, 10))),
    "run lengths, SIIM": _text(
        "12 5 30 7 9 2", lambda text: mask_from_counts(counts_from_siim(text, (16, 16)), (16, 16))
    ),
    "table": _table,
    "table, zipped": _zip_table,
    "scores": _scores,
    "JSON": _text(
        json.dumps({"a": [1, 2.5, None, {"b": "text", "c": [[0, 1], [2, 3]]}], "d": "\u00e9" * 9}),
        lambda text: parse_json(text.encode("latin-1"), where="fuzzed"),
    ),
    "checkpoint": _torch_file,
    "checkpoint, old form": _old_torch_file,
    "checkpoint, safetensors": _safetensors,
    "map, array": _array_file,
    "map, pickle": _pickled_map,
}
"""Kind -> (a sound file, how it is read, whether check sums guard its content)."""


def table_of(counts: Iterator[FuzzCount]) -> str:
    """Return the counts as the documentation shows them."""
    lines = ["| kind | damaged files | refused | read | read wrongly in spite of a check sum | other errors |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    totals: Counter[str] = Counter()
    for count in counts:
        row = (count.tried, count.refused, count.read, count.changed, len(count.escaped))
        totals.update(dict(zip("abcde", row, strict=True)))
        lines.append(f"| {count.kind} | {' | '.join(f'{n:,}' for n in row)} |")
    lines.append(f"| all | {' | '.join(f'{totals[key]:,}' for key in 'abcde')} |")
    return "\n".join(lines)
