"""Where masks come from: a folder of pictures, arrays or run-length codes, or a model that segments.

Everything is read with care: a case stays inside its own folder, sizes are known before anything is allocated, and
nothing in an array file is executed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from medground.errors import DataError
from medground.imaging.rle import MAX_PIXELS, checked_counts, checked_size, counts_from_string, mask_from_counts
from medground.tools.anatomy import Anatomy, Mask, Segmenter

#: A mask file, or a file of facts, is never longer.
LONGEST = 64 << 20


@dataclass(frozen=True)
class Folder:
    """Masks on disk, one folder a case: ``<root>/<case id>/``.

    ========================== ====================================================================================
    ``<name>.png``             a grey or one-bit picture, set where it is above half of its range
    ``masks.npz``              arrays by name, (height, width), set where they are not 0
    ``masks.json``             COCO run-length codes by name: ``{"size": [height, width], "counts": ...}``
    ``case.json``              ``view`` and ``landmarks``; both may be missing
    ========================== ====================================================================================
    """

    root: Path

    def anatomy(self, case_id: str) -> Anatomy:
        """Read one case.

        Raises:
            DataError: the case lies outside the folder, has no mask, one mask twice, or holds masks of several sizes.
        """
        folder = self._inside(case_id)
        masks: dict[str, Mask] = {}
        for name, mask in self._masks(folder):
            if name in masks:
                raise DataError(f"the mask {name!r} stands twice", where=str(folder), fix="keep one of its files")
            masks[name] = mask
        shapes = {mask.shape for mask in masks.values()}
        if len(shapes) != 1:
            got = "no mask" if not shapes else f"sizes {sorted((w, h) for h, w in shapes)}"
            raise DataError(f"case {case_id} needs masks of one size", where=str(folder), got=got)
        height, width = shapes.pop()
        facts = self.facts(case_id)
        return Anatomy(int(width), int(height), facts.get("view"), masks, facts.get("landmarks") or {})

    def facts(self, case_id: str) -> Mapping[str, Any]:
        """View and landmarks of a case, as ``case.json`` has them; empty where there is none."""
        path = self._inside(case_id) / "case.json"
        if not path.exists():
            return {}
        facts = _json(path)
        if not isinstance(facts, dict) or not isinstance(facts.get("landmarks") or {}, dict):
            raise DataError("the facts of a case are a mapping", where=str(path), expected="view, landmarks")
        return facts

    def _inside(self, case_id: str) -> Path:
        root = self.root.resolve()
        folder = (root / case_id).resolve()
        if root not in folder.parents or not folder.is_dir():
            raise DataError(
                f"there are no masks of case {case_id!r}", where=str(root), expected="a folder of that name"
            )
        return folder

    @staticmethod
    def _masks(folder: Path) -> Iterator[tuple[str, Mask]]:
        for path in sorted(folder.glob("*.png")):
            yield path.stem, _picture(_held(path))
        if (folder / "masks.npz").exists():
            yield from _arrays(_held(folder / "masks.npz"))
        if (folder / "masks.json").exists():
            yield from _codes(folder / "masks.json")


def _held(path: Path) -> Path:
    """Refuse what leads outside its case, is no plain file, or is far too long."""
    if path.parent not in path.resolve().parents:
        raise DataError("a mask leads outside its case", where=str(path))
    if not path.is_file() or path.stat().st_size > LONGEST:
        raise DataError("a mask cannot be read", where=str(path), expected=f"a file of at most {LONGEST >> 20} MB")
    return path


def _picture(path: Path) -> Mask:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            checked_size(picture.size)
            return np.asarray(picture.convert("L")) > 127
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise DataError("a mask cannot be read", where=str(path), got=str(error)) from error


def _arrays(path: Path) -> Iterator[tuple[str, Mask]]:
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > 8 * MAX_PIXELS:
            raise DataError("the masks are too large", where=str(path), got=f"{unpacked:,} bytes unpacked")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError("the masks cannot be read", where=str(path), got=str(error)) from error
    for name, array in arrays.items():
        if array.ndim != 2 or array.dtype.kind not in "bui":
            expected, got = "(height, width) of whole numbers or booleans", f"{array.shape} of {array.dtype}"
            raise DataError(f"the array {name!r} is no mask", where=str(path), expected=expected, got=got)
        yield name, array != 0


def _codes(path: Path) -> Iterator[tuple[str, Mask]]:
    codes = _json(path)
    if not isinstance(codes, dict):
        raise DataError("the codes are a mapping", where=str(path), expected="{name: {size, counts}}")
    for name, code in codes.items():
        try:
            height, width = code["size"]
            counts = code["counts"]
        except (KeyError, TypeError, ValueError) as error:
            expected = "{size: [height, width], counts: ...}"
            raise DataError(f"the code of {name!r} is not one", where=str(path), expected=expected) from error
        size = checked_size((width, height))
        counts = counts_from_string(counts) if isinstance(counts, str) else counts
        yield str(name), mask_from_counts(checked_counts(counts, size), size)


def _json(path: Path) -> Any:
    try:
        return json.loads(_held(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError("the file is no JSON", where=str(path), got=str(error)) from error


@dataclass(frozen=True)
class Segmented:
    """Masks that a model finds in the picture.

    View and landmarks are not found by it: they come from ``case.json`` where a folder has them, else they are unknown,
    and quality control drops what needs them.

    Attributes:
        model: finds anatomy in a picture.
        names: the model's name of a structure -> the tools' name; what is not named keeps its own.
        beside: a folder with ``<case id>/case.json``.
    """

    model: Segmenter
    names: Mapping[str, str] = field(default_factory=dict)
    beside: Folder | None = None

    def find(self, radiograph: Any) -> Anatomy:
        """Return what the model finds in a picture.

        Args:
            radiograph: with ``pixels`` (height, width) and ``case_id``.

        Raises:
            DataError: a mask has not the size of the picture.
        """
        height, width = radiograph.pixels.shape
        masks = {}
        for name, mask in self.model.masks(radiograph).items():
            array = np.asarray(mask)
            if array.shape != (height, width):
                raise DataError(
                    f"the segmenter's mask {name!r} has not the size of its picture",
                    expected=f"{width} x {height}",
                    got=" x ".join(str(side) for side in array.shape[::-1]),
                )
            masks[self.names.get(name, name)] = array.astype(np.bool_)
        facts = self._facts(radiograph.case_id)
        return Anatomy(width, height, facts.get("view"), masks, facts.get("landmarks") or {})

    def _facts(self, case_id: str) -> Mapping[str, Any]:
        if self.beside is None or not (self.beside.root / case_id).is_dir():
            return {}
        return self.beside.facts(case_id)
