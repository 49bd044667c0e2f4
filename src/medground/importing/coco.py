"""COCO: one JSON file of images, categories and annotations (boxes, outlines, run-length codes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medground.errors import DataError
from medground.importing.lines import Line, Wishes, finished, finite, located
from medground.tables.documents import read_json


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a COCO file, by default beside it or below ``images``.

    An annotation's outlines or run-length code are its region; its box where it has neither.

    Raises:
        DataError: an id stands twice or refers to nothing, or a value is not what COCO says.
    """
    content = read_json(source, error=DataError)
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in ("images", "categories")):
        raise DataError("this is no COCO file", where=source, expected="images, categories, annotations")
    names = {key: wishes.finding(str(c.get("name"))) for key, c in _by_id(content["categories"], source, "category")}
    folder = wishes.images or _beside(source)
    lines = {}
    for key, image in _by_id(content["images"], source, "image"):
        where = f"{source}, image {key}"
        lines[key] = Line(located(str(image.get("file_name")), folder, where), _frame(image, where))
    for number, annotation in enumerate(content.get("annotations", [])):
        _add(annotation, lines, names, f"{source}, annotation {annotation.get('id', number)}")
    yield from finished(lines.values(), list(names.values()), wishes)


def _frame(image: Mapping[str, Any], where: str) -> tuple[int, int]:
    width, height = image.get("width"), image.get("height")
    if not isinstance(width, int) or not isinstance(height, int) or width < 1 or height < 1:
        raise DataError(
            "an image has no size", where=where, expected="width and height in pixels", got=f"{width}, {height}"
        )
    return width, height


def _add(annotation: Mapping[str, Any], lines: Mapping[Any, Line], names: Mapping[Any, str], where: str) -> None:
    image, category = annotation.get("image_id"), annotation.get("category_id")
    if image not in lines or category not in names:
        raise DataError(
            "an annotation refers to nothing",
            where=where,
            expected="ids of an image and of a category of this file",
            got=f"image_id {image}, category_id {category}",
        )
    line, finding, outlines = lines[image], names[category], annotation.get("segmentation")
    if isinstance(outlines, Mapping) and {"size", "counts"} <= outlines.keys():
        line.mark(finding, "masks", {"size": outlines["size"], "counts": outlines["counts"]})
    elif isinstance(outlines, list) and outlines:
        for flat in outlines:
            if not isinstance(flat, list) or len(flat) < 6 or len(flat) % 2:
                raise DataError("an outline has fewer than three points", where=where, got=str(flat)[:60])
            numbers = finite(flat, where)
            points = zip(numbers[::2], numbers[1::2], strict=True)
            line.mark(finding, "polygons", [list(point) for point in points])
    else:
        box = annotation.get("bbox")
        if not isinstance(box, list) or len(box) != 4:
            raise DataError("an annotation has no region", where=where, expected="segmentation or bbox", got=box)
        line.mark(finding, "boxes_xywh", finite(box, where))


def _by_id(records: list[Any], source: Path, what: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    seen: set[Any] = set()
    for record in records:
        key = record.get("id") if isinstance(record, dict) else None
        if not isinstance(key, (int, str)) or key in seen:
            raise DataError(f"a {what} has no id of its own", where=source, got=key)
        seen.add(key)
        yield key, record


def _beside(source: Path) -> Path:
    """Return the usual folder of the pictures: ``images`` beside the file or above it, else the file's own."""
    for folder in (source.parent / "images", source.parent.parent / "images"):
        if folder.is_dir():
            return folder
    return source.parent
