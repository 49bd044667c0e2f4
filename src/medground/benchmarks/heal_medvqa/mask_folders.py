"""Anatomy masks in a folder of the user's.

========================================  =====================================================================
layout                                    what it holds
========================================  =====================================================================
``<case>/<anatomy>.png``                  a mask a file, anything but 0 is inside
``<anatomy>/<case>.png``                  the same, the other way round
``<case>.npz``                            arrays named by anatomy, ``(height, width)``
``<case>.png`` and ``labels: {1: ...}``   a map of label numbers
``masks.jsonl``                           ``{"case_id", "anatomy", "mask_rle": [start, length, ...], "mask_h",
                                          "mask_w"}`` a line; ``order: row`` or ``column``, or told from the masks
========================================  =====================================================================

Blanks in an anatomy's name may be underscores. ``names`` turns other label sets into ours, see
:data:`medground.benchmarks.heal_medvqa.masks.CXAS`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from medground.benchmarks.heal_medvqa.masks import Mask, renamed, with_lungs
from medground.benchmarks.heal_medvqa.pixel_order import CodedMask, detected_order
from medground.errors import DatasetError, RegionError
from medground.imaging.rle import MAX_PIXELS, Order, Size
from medground.paths import resolve_inside

Layout = Literal["case/anatomy", "anatomy/case", "npz", "labels", "run lengths"]
_TABLE = "masks.jsonl"


@dataclass(frozen=True)
class MaskFolder:
    """Masks of a folder, in the layout that is found there.

    Args:
        root: the folder.
        labels: number -> label, for maps of label numbers.
        names: anatomy -> the labels that make it up; None: labels are our names.
        order: pixel order of run lengths; None: told from the masks.
        said: what the masks are, in the user's words.
    """

    root: Path
    labels: Mapping[int, str] | None = None
    names: Mapping[str, Sequence[str]] | None = None
    order: Order | None = None
    said: str = "anatomy masks of the user's"

    @property
    def statement(self) -> str:
        """What the masks are."""
        order = f", pixels along {self._order}s" if self.layout == "run lengths" else ""
        return f"{self.said} ({self.layout}{order})"

    @cached_property
    def layout(self) -> Layout:
        """Which of the layouts the folder has.

        Raises:
            DatasetError: none, or maps of numbers without ``labels``.
        """
        root = self.root
        if (root / _TABLE).is_file():
            return "run lengths"
        if next(root.glob("*.npz"), None):
            return "npz"
        if next(root.glob("*.png"), None):
            if self.labels is None:
                raise DatasetError(
                    "a folder holds label maps, and nothing says what their numbers are",
                    where=root,
                    fix="give them: labels: {1: right lung, 2: left lung}",
                )
            return "labels"
        nested = next(root.glob("*/*.png"), None)
        if nested is None:
            raise DatasetError(
                "a folder holds no anatomy masks",
                where=root,
                expected="CASE/ANATOMY.png, ANATOMY/CASE.png, CASE.npz, CASE.png with labels, or masks.jsonl",
            )
        known = {_plain(name) for labels in (self.names or {}).values() for name in labels}
        known |= {"heart", "aorta", "right lung", "left lung", "right lower lung", "left lower lung"}
        folders = {_plain(path.name) for path in root.iterdir() if path.is_dir()}
        return "anatomy/case" if folders & known else "case/anatomy"

    def masks(self, case_id: str, size: Size) -> Mapping[str, Mask]:
        """Return the masks of a case, whole lungs added; empty where the folder has none for it."""
        del size
        masks = dict(self._found(case_id))
        if len({mask.shape for mask in masks.values()}) > 1:
            raise RegionError("masks of one case have several sizes", where=case_id, expected="one size")
        return with_lungs(renamed(masks, self.names))

    def fingerprint(self) -> str:
        """Return a hash of names and sizes of all files, and of the choices."""
        digest = hashlib.sha256(repr((self.labels, self.names, self.order, self.layout)).encode())
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                about = path.stat()
                digest.update(f"{path.relative_to(self.root)}:{about.st_size}:{about.st_mtime_ns}".encode())
        return digest.hexdigest()[:16]

    def _found(self, case_id: str) -> Iterator[tuple[str, Mask]]:
        if self.layout == "run lengths":
            for coded in self._coded.get(case_id, ()):
                if not coded.is_empty:
                    yield _plain(coded.anatomy), coded.read(self._order)
        elif self.layout == "npz":
            path = resolve_inside(self.root, f"{case_id}.npz")
            if path.is_file():
                yield from _arrays(path)
        elif self.layout == "labels":
            path = resolve_inside(self.root, f"{case_id}.png")
            if path.is_file():
                numbers = _picture(path)
                yield from ((name, numbers == number) for number, name in (self.labels or {}).items())
        else:
            for anatomy, path in self._files(case_id):
                yield _plain(anatomy), _picture(path) != 0

    def _files(self, case_id: str) -> list[tuple[str, Path]]:
        if self.layout == "case/anatomy":
            folder = resolve_inside(self.root, case_id)
            return [(path.stem, path) for path in sorted(folder.glob("*.png"))]
        places = [(path.name, resolve_inside(path, f"{case_id}.png")) for path in sorted(self.root.iterdir())]
        return [(name, path) for name, path in places if path.is_file()]

    @cached_property
    def _coded(self) -> Mapping[str, list[CodedMask]]:
        table: dict[str, list[CodedMask]] = defaultdict(list)
        with (self.root / _TABLE).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    one = json.loads(line)
                    coded = CodedMask(one["anatomy"], one["mask_rle"], one["mask_h"], one["mask_w"])
                    table[str(one["case_id"])].append(coded)
                except (ValueError, KeyError, TypeError) as error:
                    raise DatasetError(
                        "a line of run lengths cannot be read",
                        where=f"{_TABLE} line {number}",
                        expected="case_id, anatomy, mask_rle, mask_h, mask_w",
                        got=error,
                    ) from error
        return table

    @cached_property
    def _order(self) -> Order:
        return self.order or detected_order(mask for masks in self._coded.values() for mask in masks)


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


def _picture(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise RegionError("a mask is too large", where=path.name, got=f"{image.width} x {image.height}")
            if image.mode not in ("1", "L", "P", "I", "I;16"):
                raise RegionError("a mask has colours", where=path.name, expected="one channel", got=image.mode)
            return np.asarray(image).astype(np.int64)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise RegionError("a mask cannot be read", where=path.name, got=error) from error


def _arrays(path: Path) -> Iterator[tuple[str, Mask]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                array = arrays[name]
                if array.ndim != 2 or array.dtype.kind not in "bui" or array.size == 0:
                    raise RegionError("a mask is no picture of whole numbers", where=f"{path.name}, {name}")
                yield _plain(name), array != 0
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise RegionError("masks cannot be read", where=path.name, got=error) from error
