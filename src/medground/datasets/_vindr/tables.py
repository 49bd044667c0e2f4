"""The tables of VinDr-CXR: what every reader marked and named in every image."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medground.datasets._folder.tables import number, read_all, read_table, truth
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets._vindr.regions import ByReader, Corners
from medground.datasets.report import Ledger
from medground.errors import DatasetError

CONSENSUS = ""
"""The reader of tables that name none: the test part is a consensus."""

SIDES = ("x_min", "y_min", "x_max", "y_max")


@dataclass
class Reading:
    """What one reader says about one image.

    Attributes:
        named: findings that are there.
        told: findings that the reader was asked about in the label table; None: there is no such row.
        boxes: finding -> corners, in the pixels of the picture.
        without_box: rows of the annotation table that gave no box.
    """

    named: set[str] = field(default_factory=set)
    told: set[str] | None = None
    boxes: dict[str, list[Corners]] = field(default_factory=dict)
    without_box: int = 0


Readings = dict[str, dict[str, Reading]]  # by image and reader


def read_marks(path: Path, vocabulary: Vocabulary, ledger: Ledger) -> tuple[Readings, int]:
    """Return the rows of an annotation table by image and reader, and how many there are.

    A row without coordinates names a finding without a place. A box without area is dropped; both are counted.
    """
    table = read_table(path, ["image_id", "class_name", *SIDES], ["rad_id"])
    readings: Readings = defaultdict(lambda: defaultdict(Reading))
    for line, (image, name, *sides, reader) in enumerate(table.iter_rows(), start=2):
        where, finding = f"{path.name} row {line}", vocabulary.get(name or "")
        if image is None or finding is None:
            ledger.problem("a row lacks its image or names no class", where, got=f"{image}, {name}")
            continue
        reading = readings[image][reader or CONSENSUS]
        reading.named.add(finding)
        corners = [number(side) for side in sides]
        placed = [c for c in corners if c is not None]
        if len(placed) == 4 and placed[0] < placed[2] and placed[1] < placed[3]:
            reading.boxes.setdefault(finding, []).append((placed[0], placed[1], placed[2], placed[3]))
            continue
        reading.without_box += 1
        if len(placed) == 4:
            ledger.remark("boxes without area dropped", f"{where} ({image}, {finding})")
        elif placed:
            ledger.problem("a box lacks a coordinate", where, expected=", ".join(SIDES), got=sides)
        else:
            ledger.remark("rows that name a finding, or none, without a box", count=1)
    return readings, table.height


def read_labels(path: Path, vocabulary: Vocabulary, readings: Readings, ledger: Ledger) -> None:
    """Add the label table to the readings; an empty cell tells nothing.

    The training table has a row a reader and ``Other diseases``, the test table a row an image and ``Other disease``.
    """
    table = read_all(path)
    columns = {column: name for column in table.columns if (name := vocabulary.get(column))}
    if "image_id" not in table.columns or not columns:
        raise DatasetError(
            "a table of labels lacks its columns",
            where=path,
            expected="image_id, findings",
            got=", ".join(table.columns),
        )
    for line, row in enumerate(table.iter_rows(named=True), start=2):
        where = f"{path.name} row {line}"
        if row["image_id"] is None:
            ledger.problem("a row lacks its image", where)
            continue
        reading = readings[row["image_id"]][row.get("rad_id") or CONSENSUS]
        if reading.told is not None:
            ledger.problem("an image has two rows of labels of one reader", where, got=row["image_id"])
        labels = {name: truth(row[column]) for column, name in columns.items()}
        reading.told = {name for name, present in labels.items() if present is not None}
        reading.named |= {name for name, present in labels.items() if present}


@dataclass(frozen=True)
class Merged:
    """What the readers of one image say together.

    Attributes:
        named: findings that enough of them name or mark.
        told: findings about whose absence every one of them tells.
        boxes: boxes by reader, for the findings that enough of them mark.
    """

    named: frozenset[str]
    told: frozenset[str]
    boxes: Mapping[str, ByReader]

    def label(self, finding: str) -> bool | None:
        """Return whether a finding is there; None where that was not annotated."""
        return True if finding in self.named else False if finding in self.told else None


def merged(readings: Mapping[str, Reading], needed: int, exhaustive: frozenset[str]) -> Merged:
    """Merge the readers of one image.

    Args:
        readings: by reader.
        needed: how many readers must name or mark a finding.
        exhaustive: findings whose absence an annotation row tells, where there is no row of labels.
    """
    named = Counter(finding for reading in readings.values() for finding in reading.named)
    boxes: dict[str, list[tuple[Corners, ...]]] = defaultdict(list)
    for reading in readings.values():
        for finding, corners in reading.boxes.items():
            boxes[finding].append(tuple(corners))
    told = [exhaustive if reading.told is None else frozenset(reading.told) for reading in readings.values()]
    return Merged(
        frozenset(f for f, count in named.items() if count >= needed),
        frozenset.intersection(*told),
        {f: tuple(by_reader) for f, by_reader in boxes.items() if len(by_reader) >= needed},
    )
