"""A built item, and the file that holds all of them: JSON lines, sorted, the same bytes for the same build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from medground.benchmarks.medical_checklist.audit.base import Pair
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.errors import DataError

Side = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One binary caption test.

    Attributes:
        item_id: ``caption id:start-end``.
        caption_id: of the source.
        image: path of the picture below the images' folder, or None where it is missing.
        source: collection.
        split: of the source.
        cluster: paper, image or scene pair; what statistics resample, and what is never split.
        licence: of the caption.
        tui: the type of both terms.
        positive: the true caption.
        negative: the same with one term changed.
        start: first code point of the term in ``positive``.
        end: one past its last.
        term_positive: the term as written.
        term_negative: the replacement as written.
        concepts_positive: all concepts of the term.
        concepts_negative: all concepts of the replacement; no member in common.
        name_positive: the term as its terminology spells it.
        name_negative: the replacement as its terminology spells it.
        link_score: similarity of the term and its name.
        n_tokens: words and marks of the true caption.
        similarity: of the two terms, in [-1, 1].
        similarity_by: what measured it.
        side: where the true caption stands when one order is asked.
        pair: id of a scene pair whose two members mirror each other, or empty.
        lexicon: fingerprint of the terminology.
    """

    item_id: str
    caption_id: str
    image: str | None
    source: str
    split: str
    cluster: str
    licence: str
    tui: str
    positive: str
    negative: str
    start: int
    end: int
    term_positive: str
    term_negative: str
    concepts_positive: tuple[str, ...]
    concepts_negative: tuple[str, ...]
    name_positive: str
    name_negative: str
    link_score: float
    n_tokens: int
    similarity: float
    similarity_by: str
    side: Side
    pair: str = ""
    lexicon: str = ""

    @property
    def as_pair(self) -> Pair:
        """The item as a blind scorer sees it."""
        return Pair(
            self.item_id,
            self.cluster,
            self.tui,
            self.term_positive,
            self.term_negative,
            self.positive,
            self.negative,
        )


def sides(item_ids: Iterable[str], seed: int) -> dict[str, Side]:
    """Return the side of each true caption: as many A as B, at most one more, fixed by the seed.

    Every item takes the side that its own hash names; where one side has too many, the items with the lowest hashes
    change over. So an item that enters or leaves changes few others.
    """
    keys = {i: number(seed, "side", i) for i in item_ids}
    held: dict[str, Side] = {i: "A" if key & 1 else "B" for i, key in keys.items()}
    for more, less in (("A", "B"), ("B", "A")):
        crowd = sorted((keys[i], i) for i, side in held.items() if side == more)
        surplus = (2 * len(crowd) - len(held)) // 2
        for _, item_id in crowd[: max(0, surplus)]:
            held[item_id] = less  # type: ignore[assignment]
    return held


def write(path: Path, items: Iterable[ChecklistItem]) -> None:
    """Write items as JSON lines in the order of their ids."""
    text = "".join(
        json.dumps(asdict(item), ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
        for item in sorted(items, key=lambda i: i.item_id)
    )
    path.write_bytes(text.encode("utf-8"))


def read(path: Path) -> list[ChecklistItem]:
    """Return the items of a file.

    Raises:
        DataError: the file is missing, or a line is no item of this format.
    """
    return list(_read(path))


def _read(path: Path) -> Iterator[ChecklistItem]:
    names = {f.name for f in fields(ChecklistItem)}
    seen = set()
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for line_number, line in enumerate(file, start=1):
                where = f"{path}, line {line_number}"
                item = _item(line, names, where)
                if item.item_id in seen:
                    raise DataError("an item stands twice", where=where, got=item.item_id)
                seen.add(item.item_id)
                yield item
    except OSError as error:
        raise DataError(
            "there is no file of items", where=path, got=error.strerror, fix="medground build medical_checklist --help"
        ) from None
    except UnicodeDecodeError:
        raise DataError("a file of items is not UTF-8", where=path) from None


def _item(line: str, names: set[str], where: str) -> ChecklistItem:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise DataError("a line is no JSON", where=where, got=str(error)) from None
    if not isinstance(row, dict) or set(row) != names:
        got = sorted(names ^ set(row)) if isinstance(row, dict) else type(row).__name__
        raise DataError("a line is no item", where=where, expected="the fields of an item", got=got)
    row["concepts_positive"], row["concepts_negative"] = (
        tuple(row["concepts_positive"]),
        tuple(row["concepts_negative"]),
    )
    item = ChecklistItem(**row)
    if item.tui not in TYPES or item.side not in ("A", "B"):
        raise DataError("an item has an unknown type or side", where=where, got=f"{item.tui}, {item.side}")
    if item.positive[item.start : item.end] != item.term_positive:
        raise DataError(
            "an item's term does not stand at its offsets",
            where=where,
            expected=item.term_positive,
            got=item.positive[item.start : item.end],
        )
    return item
