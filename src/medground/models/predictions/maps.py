"""Heat maps and masks made elsewhere, found by case and finding in whatever they lie in.

==========================  =================================================================================
a folder                    ``<case>/<finding>`` with ``.npy``, ``.npz``, ``.png``, ``.pkl``, or ``maps.csv``
                            (``case_id, finding, file``), or CheXlocalize's ``<case>_<finding>_map.pkl``
``.npz``                    arrays named ``case/finding``, or ``case`` where a case has one finding
``.json``                   ``{"case/finding": [[...], ...]}``, or CheXlocalize's segmentations
                            ``{case: {finding: {size: [h, w], counts: "..."}}}``
``boxes.csv`` in a folder   ``case_id, finding, x0, y0, x1, y1, width, height`` and ``score`` where there is one
==========================  =================================================================================
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.errors import DataError, ImageError
from medground.imaging import rle
from medground.imaging.maps import SUFFIXES, read_map
from medground.imaging.regions import Region
from medground.imaging.shapes import hold_shape
from medground.models.predictions.pickles import map_of_pickle
from medground.paths import resolve_inside
from medground.tables.documents import read_json
from medground.tables.reader import Table, read_table

Map = NDArray[np.floating[Any]]
ENDINGS = (*SUFFIXES, ".pkl")
CORNERS = ("x0", "y0", "x1", "y1")
_MOST = 80_000_000
_Box = tuple[Sequence[float], tuple[int, int], float]


@dataclass(frozen=True)
class LocatedMap:
    """One map.

    Attributes:
        values: ``(h, w)``.
        origin: file below the folder and its SHA-256, where the map is a file of its own.
        boxes: that the map was drawn from: corners as shares of the frame's sides, and a score.
    """

    values: Map
    origin: tuple[str, str] | None = None
    boxes: Sequence[Sequence[float]] | None = None


class Maps:
    """Every map of a source, by the names that the source has for case and finding; values are read when asked for.

    Names are ``case/finding``, or ``case`` alone.

    Attributes:
        root: the folder or file.
        remarks: what is unusual about its tables.
    """

    def __init__(self, root: Path) -> None:
        if not root.exists():
            raise DataError("the maps are not there", where=root, fix="correct the path of the maps")
        self.root = root
        self.remarks: list[str] = []
        self._known: dict[str, Callable[[], LocatedMap]] = {}
        self._files: dict[str, str] = {}
        read = self._folder if root.is_dir() else {".json": self._json, ".npz": self._archive}.get(root.suffix.lower())
        if read is None:
            got = root.suffix or "a file"
            raise DataError("the maps are of an unknown kind", where=root, expected="a folder, .npz or .json", got=got)
        read()

    @property
    def names(self) -> Sequence[str]:
        """What the source calls its maps."""
        return list(self._known)

    def read(self, name: str, size: tuple[int, int] | None = None) -> LocatedMap:
        """Return one map.

        Args:
            name: one of ``names``.
            size: (width, height) of the picture that it is of, where known: its shape is held against it.

        Raises:
            ImageError: it cannot be read, is no map, or cannot be of this picture.
            DataError: it leads outside its folder.
        """
        found = self._known[name]()
        if size is not None:
            hold_shape((found.values.shape[0], found.values.shape[1]), size, name)
        return found

    def _add(self, name: str, read: Callable[[], LocatedMap], where: str) -> None:
        if name in self._known:
            raise DataError(
                "a map is there twice", where=f"{self._files[name]}, {where}", got=name, fix="keep one of them"
            )
        self._known[name], self._files[name] = read, where

    def _folder(self) -> None:
        named: set[str] = set()
        if (self.root / "maps.csv").is_file():
            table = self._table(self.root / "maps.csv", ["case_id", "finding", "file"])
            for case, finding, file in table.frame.iter_rows():
                self._add(f"{case}/{finding}", self._file(file or ""), f"maps.csv: {file}")
                named.add(f"{case}/{finding} {file}")
        if (self.root / "boxes.csv").is_file():
            self._boxes(self.root / "boxes.csv")
        for path in sorted(p for p in self.root.rglob("*") if p.suffix.lower() in ENDINGS):
            file = path.relative_to(self.root).as_posix()
            name = file.removesuffix(path.suffix)
            if "/" not in name and name.endswith("_map"):  # CheXlocalize: patient_study_view_Finding_map.pkl
                name = "/".join(name.removesuffix("_map").rsplit("_", 1))
            if f"{name} {file}" not in named:
                self._add(name, self._file(file), file)

    def _table(self, path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Table:
        key = ["case_id", "finding"] if path.name == "maps.csv" else []
        table = read_table(path, columns, optional, key=key)
        self.remarks += [f"{path.name}: a table {remark}" for remark in table.remarks]
        return table

    def _file(self, name: str) -> Callable[[], LocatedMap]:
        def read() -> LocatedMap:
            path = resolve_inside(self.root, name)
            if not path.is_file():
                raise ImageError("maps.csv names a file that is not there", where=path.name)
            values, digest = read_file(path)
            return LocatedMap(values, (str(path.relative_to(self.root.resolve())), digest))

        return read

    def _archive(self) -> None:
        with self.root.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise DataError("the maps cannot be read", where=self.root, expected="an .npz of numpy")
        with zipfile.ZipFile(self.root) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
        if len(entries) != len(set(entries)) or sum(entries.values()) > 8 * _MOST:
            raise DataError("the maps take more memory than there is room", where=self.root, got=sum(entries.values()))
        for name in entries:
            self._add(name, self._member(name), name)

    def _member(self, name: str) -> Callable[[], LocatedMap]:
        def read() -> LocatedMap:
            try:
                with np.load(self.root, allow_pickle=False) as archive:
                    return LocatedMap(checked(archive[name], name))
            except ImageError:
                raise
            except Exception as error:  # a damaged file can raise anything in the decoders
                raise ImageError("a heat map cannot be read", where=name, got=f"{type(error).__name__}") from error

        return read

    def _json(self) -> None:
        content = read_json(self.root, largest=1 << 30)
        if not isinstance(content, dict):
            raise DataError("the maps cannot be read", where=self.root, expected="an object of names and maps")
        for name, value in content.items():
            if not isinstance(value, dict):
                self._add(name, partial(_nested, value, name), name)
                continue
            for finding, code in value.items():
                if isinstance(code, dict):  # img_size stands among the findings
                    self._add(f"{name}/{finding}", partial(_mask, code, f"{name}/{finding}"), name)

    def _boxes(self, path: Path) -> None:
        table = self._table(path, ["case_id", "finding", *CORNERS, "width", "height"], ["score"])
        grouped: dict[str, list[_Box]] = {}
        for row, (case, finding, *numbers, score) in enumerate(table.frame.iter_rows()):
            sides = [_number(text, table.where(row)) for text in numbers]
            value = 1.0 if score is None else _number(score, table.where(row))
            grouped.setdefault(f"{case}/{finding}", []).append((sides[:4], (int(sides[4]), int(sides[5])), value))
        for name, boxes in grouped.items():
            self._add(name, partial(_drawn, boxes, name), path.name)


def read_file(path: Path) -> tuple[Map, str]:
    """Return the map of one file, ``.npy``, ``.npz``, ``.png`` or ``.pkl``, and its SHA-256.

    Raises:
        ImageError: it cannot be read, or is no map.
    """
    if path.suffix.lower() != ".pkl":
        return read_map(path)
    if path.stat().st_size > 8 * _MOST:
        raise ImageError("a file is too large", where=path.name)
    data = path.read_bytes()
    try:
        array = map_of_pickle(data)
    except ImageError as error:
        raise ImageError(error.what, where=path.name, expected=error.expected, got=error.got) from error
    return checked(array, path.name), hashlib.sha256(data).hexdigest()


def checked(array: NDArray[Any], where: str) -> Map:
    """Return an array as a map: leading axes of one taken off, whole numbers as float64.

    Raises:
        ImageError: it has other axes, no values, or is not of numbers.
    """
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "fiub":
        got = f"shape {array.shape}, type {array.dtype}"
        raise ImageError("a heat map is not a picture of numbers", where=where, expected="one array (h, w)", got=got)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _nested(value: Any, name: str) -> LocatedMap:
    try:
        # null stands for NaN, which JSON does not have.
        return LocatedMap(checked(np.array(value, dtype=np.float64), name))
    except (TypeError, ValueError) as error:
        raise ImageError("a heat map is not a picture of numbers", where=name, got=str(error)[:120]) from error


def _mask(code: Mapping[str, Any], name: str) -> LocatedMap:
    """Return a mask of CheXlocalize's segmentations; its size is [height, width]."""
    size, counts = code.get("size"), code.get("counts")
    if not isinstance(size, list) or len(size) != 2 or not isinstance(counts, (str, list)):
        raise ImageError("a mask is malformed", where=name, expected="size: [h, w] and counts", got=str(code)[:80])
    frame = rle.checked_size(size[::-1])
    runs = rle.counts_from_string(counts) if isinstance(counts, str) else counts
    return LocatedMap(rle.mask_from_counts(runs, frame).astype(np.float64))


def _drawn(boxes: Sequence[_Box], name: str) -> LocatedMap:
    """Return predicted boxes as a map in their own frame: the highest score of the boxes over a pixel, else 0."""
    frames = {frame for _, frame, _ in boxes}
    if len(frames) != 1:
        raise DataError("boxes of one picture are stated in several frames", where=name, got=sorted(frames))
    frame = rle.checked_size(frames.pop())
    drawn = np.zeros(frame[::-1])
    for corners, _, score in boxes:
        if score < 0:
            raise DataError("a box has a score below 0, which a map of boxes cannot show", where=name, got=score)
        mask = Region.from_boxes(frame, [corners], clip=True).mask()
        drawn = np.maximum(drawn, np.where(mask, score, 0.0))
    sides = np.array([*frame, *frame])
    shares = [[*np.clip(np.asarray(corners) / sides, 0.0, 1.0).tolist(), score] for corners, _, score in boxes]
    return LocatedMap(drawn, boxes=shares)


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise DataError("a table holds a value that is no number", where=where, got=repr(text)[:60])
    return value
