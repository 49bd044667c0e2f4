"""Pascal VOC: a folder of XML files, one a picture, boxes by the first and last pixel that belong to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from medground.errors import DataError
from medground.importing.lines import Line, Wishes, finished, finite, located
from medground.tables.reader import decoded, read_bytes


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a folder of annotations (``Annotations``, or the folder above it).

    Pixels are counted from 1 and a box holds its last pixel, as VOC defines; ``first_pixel: 0`` for tools that do not.

    Raises:
        DataError: a file is no annotation, or a value is not what VOC says.
    """
    folder = source / "Annotations" if (source / "Annotations").is_dir() else source
    files = sorted(folder.glob("*.xml"))
    if not files:
        raise DataError("there are no annotations", where=folder, expected="XML files")
    pictures = wishes.images or _beside(folder)
    lines = [_line(path, pictures, wishes) for path in files]
    classes = list(dict.fromkeys(name for line in lines for name in line.labels))
    yield from finished(lines, classes, wishes)


def _line(path: Path, pictures: Path, wishes: Wishes) -> Line:
    root = _parsed(path)
    width, height = finite((root.findtext("size/width"), root.findtext("size/height")), f"{path}: size")
    line = Line(located(root.findtext("filename") or "", pictures, path), (int(width), int(height)))
    for number, thing in enumerate(root.findall("object")):
        where = f"{path}: object {number + 1}"
        name = (thing.findtext("name") or "").strip()
        if not name:
            raise DataError("an object has no name", where=where)
        left, top, right, bottom = finite(
            (thing.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")), where
        )
        first = wishes.first_pixel
        line.mark(wishes.finding(name), "boxes", [left - first, top - first, right - first + 1, bottom - first + 1])
    return line


def _parsed(path: Path) -> ElementTree.Element:
    text, _ = decoded(read_bytes(path), path)
    # Entities could swell a small file to gigabytes; an annotation has no use for them.
    if "<!" in text.replace("<!--", ""):
        raise DataError("an annotation declares a document type or entities", where=path, expected="plain XML")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  # neither entities nor document types are let in
    except ElementTree.ParseError as error:
        raise DataError("a file is not XML", where=path, got=str(error)) from error
    if root.tag != "annotation":
        raise DataError("this is no annotation of Pascal VOC", where=path, expected="<annotation>", got=root.tag[:40])
    return root


def _beside(folder: Path) -> Path:
    for name in ("JPEGImages", "images"):
        if (folder.parent / name).is_dir():
            return folder.parent / name
    return folder
