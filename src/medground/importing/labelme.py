"""LabelMe: a JSON file a picture, with rectangles, outlines and circles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medground.errors import DataError
from medground.importing.lines import Line, Wishes, finished, finite, located
from medground.tables.documents import read_json

CORNERS_OF_A_CIRCLE = 64


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a folder of LabelMe files.

    Raises:
        DataError: a file is none, or a shape is of a kind that covers no area.
    """
    files = sorted(source.rglob("*.json"))
    if not files:
        raise DataError("there are no annotations", where=source, expected="JSON files")
    lines = [_line(path, wishes) for path in files]
    classes = list(dict.fromkeys(name for line in lines for name in line.labels))
    yield from finished(lines, classes, wishes)


def _line(path: Path, wishes: Wishes) -> Line:
    content = read_json(path, error=DataError)
    if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
        raise DataError("this is no LabelMe file", where=path, expected="imagePath, imageWidth, imageHeight, shapes")
    width, height = finite((content.get("imageWidth"), content.get("imageHeight")), path)
    name = str(content.get("imagePath")).replace("\\", "/")
    # Pictures commonly lie beside their files, under a path of the annotator's machine.
    folder = wishes.images or path.parent
    line = Line(
        located(name if (folder / name).is_file() else Path(name).name, folder, path), (int(width), int(height))
    )
    for number, shape in enumerate(content["shapes"]):
        where = f"{path}, shape {number + 1}"
        if not isinstance(shape, dict) or not str(shape.get("label", "")).strip():
            raise DataError("a shape has no label", where=where)
        _add(line, wishes.finding(str(shape["label"]).strip()), shape, where)
    return line


def _add(line: Line, finding: str, shape: Mapping[str, Any], where: str) -> None:
    kind, points = shape.get("shape_type", "polygon"), _points(shape.get("points"), where)
    if kind == "rectangle" and len(points) == 2:
        (x0, y0), (x1, y1) = points
        line.mark(finding, "boxes", [min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)])
    elif kind == "circle" and len(points) == 2:
        line.mark(finding, "polygons", _circle(points, line.frame))
    elif kind == "polygon" and len(points) >= 3:
        line.mark(finding, "polygons", [list(point) for point in points])
    else:
        raise DataError(
            "a shape covers no area",
            where=where,
            expected="a rectangle, a circle, or a polygon of three points or more",
            got=f"{kind} of {len(points)} points",
        )


def _circle(points: Sequence[tuple[float, float]], frame: tuple[int, int] | None) -> list[list[float]]:
    """Return a circle, given by centre and a point on it, as an outline cut at the picture's edge."""
    assert frame is not None
    (x, y), rim = points
    radius, step = math.dist((x, y), rim), 2 * math.pi / CORNERS_OF_A_CIRCLE
    corners = ((x + radius * math.cos(i * step), y + radius * math.sin(i * step)) for i in range(CORNERS_OF_A_CIRCLE))
    return [[round(min(max(v, 0), side - 1), 2) for v, side in zip(c, frame, strict=True)] for c in corners]


def _points(values: Any, where: str) -> list[tuple[float, float]]:
    if not isinstance(values, list) or not all(isinstance(v, list) and len(v) == 2 for v in values):
        raise DataError("points are pairs of numbers", where=where, got=str(values)[:60])
    return [(x, y) for x, y in (finite(v, where) for v in values)]
