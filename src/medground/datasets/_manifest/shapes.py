"""From the shapes of a row to regions: boxes and polygons at once, mask files and codes when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.datasets._folder.masks import read_mask
from medground.datasets._manifest.rows import Shape
from medground.datasets.lazy import Maker
from medground.errors import DatasetError, RegionError
from medground.imaging.regions import Box, Region
from medground.paths import is_file

Frame = tuple[int, int]
_MASK_KEYS: tuple[set[str], ...] = ({"size", "counts"}, {"counts"}, {"rows"})


def region_of(shapes: Sequence[Shape], default: Frame | None, resolve: Callable[[str], Path]) -> Region | Maker:
    """Return the union of one finding's shapes: a region, or a maker where files or codes have to be read.

    Args:
        shapes: of one case and one finding, at least one.
        default: the frame of shapes whose row names none.
        resolve: from a mask's name in the table to its file.

    Raises:
        RegionError: a shape is malformed, without a frame, or outside it; ``where`` names row and column.
        DatasetError: a mask's name leads outside the dataset's folder, or there is no such file.
    """
    parts = [partial(_region, shape, _frame(shape, default), _file(shape, resolve)) for shape in shapes]
    if any(shape.kind == "mask" for shape in shapes):
        return Maker(partial(_united, parts), repr([_identity(part) for part in parts]))
    return _united(parts)


def _united(parts: Sequence[partial[Region]]) -> Region:
    regions = [part() for part in parts]
    if len({region.frame for region in regions}) > 1:
        frames = sorted({region.frame for region in regions})
        raise RegionError(
            "shapes of one finding have different frames",
            where=parts[0].args[0].where,
            expected=frames[0],
            got=frames[1],
        )
    return regions[0] if len(regions) == 1 else Region.union(*regions)


def _region(shape: Shape, frame: Frame | None, file: Path | None) -> Region:
    """Make the region of one shape; every error names the shape's place in the table."""
    try:
        if file is not None:
            return _fitting(read_mask(file), frame)
        if shape.kind == "mask" and "rows" in shape.value:
            return _fitting(Region.from_mask(_array(shape.value["rows"])), frame)
        if shape.kind == "mask":
            return _fitting(Region.from_coco(_coco_size(shape.value, frame), shape.value.get("counts")), frame)
        if frame is None:
            raise RegionError("a box or polygon has no frame", expected="frame: (width, height) of its pixels")
        if shape.kind == "polygon":
            return Region.from_polygons(frame, [shape.value])
        return Region.from_boxes(frame, [_box(shape)])
    except RegionError as error:
        where = shape.where if error.where is None or file is None else f"{shape.where}: {error.where}"
        raise RegionError(error.what, where=where, expected=error.expected, got=error.got, fix=error.fix) from None


def _box(shape: Shape) -> Box | Sequence[float]:
    try:
        first, second, third, fourth = (float(value) for value in shape.value)
    except (TypeError, ValueError) as error:
        raise RegionError("a box is not four numbers", expected="four numbers", got=shape.value) from error
    corners = (first, second, third, fourth)
    return Box.from_xywh(*corners) if shape.kind == "box_xywh" else corners


def _array(rows: Any) -> NDArray[Any]:
    try:
        return np.asarray(rows)
    except ValueError as error:  # rows of different lengths
        raise RegionError("the rows of a mask differ in length", got=error) from None


def _coco_size(value: dict[str, Any], frame: Frame | None) -> Any:
    """Return the ``[height, width]`` of a COCO object; the row's frame serves where it has none."""
    return value.get("size", None if frame is None else [frame[1], frame[0]])


def _fitting(region: Region, frame: Frame | None) -> Region:
    if frame is not None and region.frame != frame:
        raise RegionError("a mask's size is not that of its frame", expected=frame, got=region.frame)
    return region


def _frame(shape: Shape, default: Frame | None) -> Frame | None:
    if shape.frame is None:
        return default
    try:
        width, height = (int(side) for side in shape.frame)
        whole = [width, height] == list(shape.frame) and min(width, height) > 0
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise RegionError(
            "a frame is not two whole numbers", where=shape.where, expected="width, height", got=shape.frame
        )
    return width, height


def _file(shape: Shape, resolve: Callable[[str], Path]) -> Path | None:
    """Return the file of a mask that is named by its path; other masks are codes, or written out."""
    if shape.kind != "mask" or (isinstance(shape.value, dict) and set(shape.value) in _MASK_KEYS):
        return None
    if not isinstance(shape.value, str):
        raise RegionError(
            "a mask is neither a file nor a code",
            where=shape.where,
            expected='a path, {"size": [h, w], "counts": ...} or {"rows": [[0, 1], ...]}',
            got=", ".join(shape.value) if isinstance(shape.value, dict) else shape.value,
        )
    try:
        path = resolve(shape.value)
    except DatasetError as error:
        raise DatasetError(
            error.what, where=f"{shape.where}: {error.where}", expected=error.expected, got=error.got, fix=error.fix
        ) from None
    if not is_file(path):
        raise DatasetError("a mask file is missing", where=shape.where, got=shape.value)
    return path


def _identity(part: partial[Region]) -> tuple[Any, ...]:
    """Return what a region is made from; a mask file stands for itself by its name in the table and its size."""
    shape, frame, file = part.args
    return (shape.kind, shape.value, frame, file.stat().st_size if file else None)
