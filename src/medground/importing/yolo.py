"""YOLO: a text file a picture, one box or outline a line, in shares of the picture's sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from medground.errors import DataError
from medground.importing.lines import Line, Wishes, finished, finite, picture_size, pictures_by_stem
from medground.tables.reader import decoded, read_bytes


def read(source: Path, wishes: Wishes) -> Iterator[Line]:
    """Yield the pictures of a folder with ``images``, ``labels`` and ``data.yaml`` (or ``classes.txt``).

    A picture without a text file has no annotation; with an empty one it was looked at and nothing was marked.

    Raises:
        DataError: there are no class names, a class has no name, or a line is neither a box nor an outline.
    """
    names = [wishes.finding(name) for name in _names(source)]
    labels = source / "labels"
    if not labels.is_dir():
        raise DataError("there is no folder of labels", where=labels)
    texts = {path.stem: path for path in sorted(labels.rglob("*.txt"))}
    pictures = pictures_by_stem(wishes.images or source / "images")
    if lost := sorted(set(texts) - set(pictures)):
        raise DataError("a text file has no picture", where=texts[lost[0]], got=f"{len(lost)} such files")
    lines = []
    for stem, picture in pictures.items():
        line = Line(picture, picture_size(picture))
        for number, row in enumerate(_rows(texts[stem]) if stem in texts else [], start=1):
            _add(line, row, names, f"{texts[stem]}, line {number}")
        lines.append(line)
    annotated = [line for line in lines if line.image.stem in texts]
    yield from finished(annotated, names, wishes)
    bare = [line for line in lines if line.image.stem not in texts]
    yield from finished(bare, [], wishes)


def _rows(path: Path) -> list[list[str]]:
    text, _ = decoded(read_bytes(path), path)
    return [row.split() for row in text.splitlines() if row.strip()]


def _add(line: Line, row: Sequence[str], names: Sequence[str], where: str) -> None:
    if not row[0].isdigit() or int(row[0]) >= len(names):
        raise DataError("a class has no name", where=where, expected=f"0 to {len(names) - 1}", got=row[0][:40])
    assert line.frame is not None
    width, height = line.frame
    shares = finite(row[1:], where)
    if any(not 0 <= share <= 1 for share in shares):
        raise DataError(
            "a coordinate is no share of the picture", where=where, expected="0 to 1", got=" ".join(row)[:80]
        )
    finding = names[int(row[0])]
    if len(shares) == 4:
        x, y, w, h = shares
        line.mark(finding, "boxes", _inside([x - w / 2, y - h / 2, x + w / 2, y + h / 2], line.frame))
    elif len(shares) >= 6 and len(shares) % 2 == 0:
        # The edge of the last pixel is its far side; an outline goes through the middles of pixels.
        points = zip(shares[::2], shares[1::2], strict=True)
        line.mark(finding, "polygons", [[x * (width - 1), y * (height - 1)] for x, y in points])
    else:
        raise DataError("a line is neither a box nor an outline", where=where, got=" ".join(row)[:80])


def _inside(shares: Sequence[float], frame: tuple[int, int]) -> list[float]:
    """Return a box in pixels, cut at the picture's edge, which rounding of shares oversteps by a hair."""
    return [round(min(max(share, 0.0), 1.0) * side, 3) for share, side in zip(shares, (*frame, *frame), strict=True)]


def _names(source: Path) -> list[str]:
    """Return the classes in the order of their numbers."""
    for path in (source / "data.yaml", source / "dataset.yaml"):
        if path.is_file():
            return _listed(_loaded(path), path)
    path = source / "classes.txt"
    if path.is_file():
        return [row.strip() for row in decoded(read_bytes(path), path)[0].splitlines() if row.strip()]
    raise DataError("there are no names of classes", where=source, expected="data.yaml or classes.txt")


def _loaded(path: Path) -> Any:
    try:
        return yaml.safe_load(decoded(read_bytes(path), path)[0])
    except yaml.YAMLError as error:
        raise DataError("a file is not YAML", where=path, got=str(error).splitlines()[0]) from error


def _listed(content: Any, path: Path) -> list[str]:
    names = content.get("names") if isinstance(content, dict) else None
    if isinstance(names, dict) and set(names) == set(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DataError("there are no names of classes", where=path, expected="names: [first, second, ...]")
    return names
