"""The two forms of a manifest: JSON lines, one case a line, and CSV, one finding or region a row.

Both become :class:`ManifestEntry` objects. Every key is known; a misspelt one is a problem that names the nearest right
one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from medground.datasets._folder.tables import number, read_all, read_bytes, truth
from medground.datasets.report import Ledger
from medground.errors import DatasetError, did_you_mean

Kind = Literal["box", "box_xywh", "polygon", "mask"]

JSON_KEYS = (
    "image",
    "case_id",
    "patient_id",
    "view",
    "traits",
    "labels",
    "frame",
    "boxes",
    "boxes_xywh",
    "polygons",
    "masks",
)
CORNERS = ("x0", "y0", "x1", "y1")
SIDES = ("x", "y", "width", "height")
FRAME = ("frame_width", "frame_height")
JSON_SHAPES: dict[str, Kind] = {"boxes": "box", "boxes_xywh": "box_xywh", "polygons": "polygon", "masks": "mask"}
TRAITS = ("sex", "age", "device", "site")
"""Columns by which results are split; others are named by the user."""
CSV_COLUMNS = (
    *("image", "case_id", "patient_id", "view", *TRAITS, "finding", "label"),
    *CORNERS,
    *SIDES,
    *FRAME,
    *("polygon", "mask", "rle"),
)


class Shape(NamedTuple):
    """One box, polygon or mask as the table writes it, with the place that it was read from."""

    finding: str
    kind: Kind
    value: Any
    frame: Any
    where: str


@dataclass
class ManifestEntry:
    """One case as the table writes it."""

    where: str
    image: str
    case_id: str
    patient_id: str | None = None
    view: str | None = None
    traits: dict[str, str] = field(default_factory=dict)
    labels: dict[str, bool | None] = field(default_factory=dict)
    shapes: list[Shape] = field(default_factory=list)

    def say(self, finding: str, present: bool | None, where: str, ledger: Ledger) -> None:
        """Label a finding; nothing said leaves what was said before, and a contradiction is a problem."""
        before = self.labels.get(finding)
        if present is not None and before not in (None, present):
            ledger.problem(
                "labels of a case contradict each other", where, expected=f"{finding}: {before}", got=present
            )
        else:
            self.labels[finding] = before if present is None else present


def read_entries(path: Path, ledger: Ledger, traits: Sequence[str] = ()) -> list[ManifestEntry]:
    """Return the cases of a ``.jsonl`` or ``.csv`` table; what cannot be read goes to the ledger.

    Args:
        path: the table.
        ledger: of what is wrong.
        traits: further columns of a ``.csv`` by which results are split.

    Raises:
        DatasetError: the file is neither, or cannot be read at all.
    """
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError("a manifest is not UTF-8", where=path, got=str(error), fix="save it as UTF-8") from error
    if path.suffix.lower() == ".csv":
        return _from_csv(path, ledger, (*TRAITS, *traits))
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        return list(_from_json_lines(path.name, text, ledger))
    raise DatasetError("a manifest is of an unknown kind", where=path, expected="a .csv or .jsonl file")


def _from_json_lines(name: str, content: str, ledger: Ledger) -> Iterator[ManifestEntry]:
    # Not splitlines(): a line of JSON may hold the separators of Unicode.
    for line, text in enumerate(re.split(r"\r\n|\n|\r", content), start=1):
        where = f"{name} line {line}"
        if not text.strip():
            continue
        try:
            record = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
            if "\\u" in text:  # an escape may stand for half a character, which no file name and no hash can hold
                json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            ledger.problem("a line is not JSON", where, got=error)
            continue
        if not isinstance(record, dict):
            ledger.problem("a line is not a JSON object", where, got=type(record).__name__)
        elif _keys_known(record, JSON_KEYS, where, ledger) and (entry := _entry_of(record, where, ledger)):
            yield entry


def _entry_of(record: Mapping[str, Any], where: str, ledger: Ledger) -> ManifestEntry | None:
    image, case_id = record.get("image", ""), _text(record.get("case_id"))
    if not isinstance(image, str) or not (image.strip() or case_id):
        ledger.problem("a case has no image", f"{where}, image", expected="a path below the root", got=image)
        return None
    # A case with an id and no image is one whose picture is missing: maps made elsewhere need none.
    entry = ManifestEntry(where, image.strip(), case_id or Path(image.strip()).stem)
    entry.patient_id, entry.view = _text(record.get("patient_id")), _text(record.get("view"))
    entry.traits = {
        name: text for name, value in _by_finding(record, "traits", where, ledger) if (text := _text(value))
    }
    for finding, label in _by_finding(record, "labels", where, ledger):
        place = f"{where}, labels.{finding}"
        if label not in (True, False, None):
            ledger.problem("a label is not true, false or null", place, got=label)
        else:
            entry.say(finding, None if label is None else bool(label), place, ledger)
    for key, kind in JSON_SHAPES.items():
        for finding, value in _by_finding(record, key, where, ledger):
            place = f"{where}, {key}.{finding}"
            shapes = value if isinstance(value, list) else [value]
            if value is not shapes and kind != "mask":
                ledger.problem("boxes and polygons are lists of lists", place, got=str(value)[:60])
            else:
                entry.shapes += [Shape(finding, kind, v, record.get("frame"), place) for v in shapes]
    return entry


def _from_csv(path: Path, ledger: Ledger, traits: Sequence[str]) -> list[ManifestEntry]:
    frame = read_all(path)
    if not _keys_known(frame.columns, (*CSV_COLUMNS, *traits[len(TRAITS) :]), f"{path.name} header", ledger):
        return []
    if not {"image", "case_id"} & set(frame.columns):
        ledger.problem("a manifest has no column 'image'", path.name, expected=", ".join(CSV_COLUMNS))
        return []
    entries: dict[str, ManifestEntry] = {}
    for line, row in enumerate(frame.iter_rows(named=True), start=2):
        where = f"{path.name} row {line}"
        image = row.get("image") or ""
        case_id = row.get("case_id") or Path(image).stem
        if not case_id:
            ledger.problem("a case has no image", f"{where}, column image", expected="a path below the root")
            continue
        own = {name: value for name in traits if (value := row.get(name))}
        new = ManifestEntry(where, image, case_id, row.get("patient_id"), row.get("view"), own)
        entry = entries.setdefault(case_id, new)
        told, tells = ((e.image, e.patient_id, e.view, *e.traits.items()) for e in (entry, new))
        if told != tells:
            what = "image, patient_id, view or a trait"
            ledger.problem(f"rows of case {case_id!r} differ in {what}", where, expected=told, got=tells)
        else:
            _add_row(entry, row, where, ledger)
    return list(entries.values())


def _add_row(entry: ManifestEntry, row: Mapping[str, str | None], where: str, ledger: Ledger) -> None:
    """Add the label and the shapes of one CSV row to its case."""
    filled = [name for name in (*CORNERS, *SIDES, "label", "polygon", "mask", "rle") if row.get(name) is not None]
    finding = row.get("finding")
    if finding is None:
        if filled:
            ledger.problem(f"a row has a {filled[0]} but no finding", f"{where}, column finding")
        return
    size = [row.get(name) for name in FRAME]
    frame = None if size == [None, None] else [number(side) for side in size]
    _add_label(entry, finding, row.get("label"), f"{where}, column label", ledger)
    for kind, names, parse in CSV_SHAPES:
        cells = [row.get(name) for name in names]
        if any(cell is not None for cell in cells):
            place = f"{where}, column {names[0]}" + (f"..{names[-1]}" if len(names) > 1 else "")
            entry.shapes.append(Shape(finding, kind, parse([cell or "" for cell in cells]), frame, place))


def _add_label(entry: ManifestEntry, finding: str, text: str | None, where: str, ledger: Ledger) -> None:
    present = truth(text)
    if text is not None and present is None:
        ledger.problem("a label is not 1 or 0", where, expected="1, 0 or empty", got=text)
    else:
        entry.say(finding, present, where, ledger)


def _numbers(texts: list[str]) -> list[float | None]:
    return [number(text) for text in texts]


def _points(texts: list[str]) -> list[list[float | None]]:
    """Return ``x,y x,y x,y`` as pairs; separators may be blanks, commas or semicolons."""
    values = _numbers(re.split(r"[\s,;]+", texts[0]))
    return [values[i : i + 2] for i in range(0, len(values), 2)]


def _text_of(texts: list[str]) -> str:
    return texts[0]


def _code(texts: list[str]) -> dict[str, str]:
    return {"counts": texts[0]}


CSV_SHAPES: tuple[tuple[Kind, tuple[str, ...], Callable[[list[str]], Any]], ...] = (
    ("box", CORNERS, _numbers),
    ("box_xywh", SIDES, _numbers),
    ("polygon", ("polygon",), _points),
    ("mask", ("mask",), _text_of),
    ("mask", ("rle",), _code),
)


def _keys_known(keys: Iterable[str], known: tuple[str, ...], where: str, ledger: Ledger) -> bool:
    strange = [key for key in keys if key not in known]
    for key in strange:
        ledger.problem(
            f"a manifest has no key {key!r}" + (f", {near}" if (near := did_you_mean(key, known)) else ""),
            where,
            expected=", ".join(known),
        )
    return not strange


def _by_finding(record: Mapping[str, Any], key: str, where: str, ledger: Ledger) -> Iterator[tuple[str, Any]]:
    """Yield what a case says of each finding under one key."""
    values = record.get(key)
    if not isinstance(values, dict | None):
        kind = type(values).__name__
        ledger.problem("a value is not an object", f"{where}, {key}", expected="finding: value", got=kind)
        return
    for finding, value in (values or {}).items():
        if finding.strip():
            yield finding.strip(), value
        else:
            ledger.problem("a finding has no name", f"{where}, {key}", got=repr(finding))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} stands twice in one object")
    return values


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip() or None
