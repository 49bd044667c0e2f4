"""The one reader of tables from elsewhere: text in columns, and every doubt told with its line.

Encoding and separator are found and named; a row that is longer or shorter than the header, a quote that is not closed,
a column or a key that stands twice are errors with their line; surplus empty fields at the end of a row do not matter.
Values stay text, stripped, empty ones null: numbers are made where they are used, so that no reader has to guess.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from medground.errors import DataError, MedgroundError, did_you_mean

LARGEST = 4 << 30
"""Bytes of a table, unpacked."""
LONGEST_FIELD = 16 << 20
"""Characters of one field: the run-length code of a large mask."""
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
csv.field_size_limit(LONGEST_FIELD)


@dataclass(frozen=True)
class Table:
    """A table as text.

    Attributes:
        frame: one column of stripped text a named column, empty fields null; rows without any field are left out.
        path: the file.
        remarks: what is unusual about how it is written, in words.
        places: line of the file that each row begins in.
    """

    frame: pl.DataFrame
    path: Path
    remarks: tuple[str, ...]
    places: Sequence[int]

    def where(self, row: int) -> str:
        """Return the file and line of a row."""
        return f"{self.path}, line {self.places[row]}"


def read_table(
    path: Path,
    required: Sequence[str] = (),
    optional: Sequence[str] | None = None,
    *,
    key: Sequence[str] = (),
    separator: str | None = None,
    quoted: bool = True,
    error: type[MedgroundError] = DataError,
) -> Table:
    r"""Read a table, plain, ``.gz`` or ``.zip``.

    Args:
        path: the file.
        required: columns that must be there, found whatever the case of their letters; the result names them so.
        optional: columns that are null where the table lacks them; None: all further columns are kept.
        key: columns whose values together stand once.
        separator: of fields; by default the one of comma, semicolon, tab and bar that the header shows.
        quoted: whether ``"`` encloses a field; where it is a letter like any other, False.
        error: what is raised.

    Raises:
        MedgroundError: of the given class; the message names the line.

    Example:
        >>> import tempfile; path = Path(tempfile.mkdtemp()) / "t.csv"; _ = path.write_text("Id;x\n7;1\n")
        >>> table = read_table(path, ["id"]); table.frame.rows(), table.remarks
        ([('7', '1')], ('parted by semicolons',))
    """
    text, remarks = decoded(read_bytes(path, error), path, error)
    if not text.strip():
        raise error("a table is empty", where=path, expected="a header and rows")
    head = text.lstrip("\r\n").splitlines()[0]
    mark = separator or _separator(head, required)
    if mark != "," and separator is None:
        remarks.append(f"parted by {SEPARATORS[mark]}s")
    bulk = _bulk(text, mark, path, error) if not quoted or '"' not in text else None
    frame, places = bulk or _by_line(text, mark, path, quoted=quoted, error=error)
    frame, places = _stripped(frame, places)
    frame = _without_index(frame, remarks)
    table = Table(_chosen(frame, required, optional, path, error), path, tuple(remarks), places)
    _refuse_twice(table, key, error)
    return table


_UNREADABLE = (
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError),
    *(IndexError, UnicodeDecodeError),  # names of a damaged archive's entries
)


def read_bytes(path: Path, error: type[MedgroundError] = DataError) -> bytes:
    """Return a file's content, unpacked where it is ``.gz`` or ``.zip``, at most :data:`LARGEST` bytes.

    Raises:
        MedgroundError: of the given class.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                content = file.read(LARGEST + 1)
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                members = [m for m in archive.infolist() if not m.filename.startswith("__MACOSX") and not m.is_dir()]
                if len(members) != 1:
                    raise error("an archive holds several files", where=path, expected="one table", got=len(members))
                with archive.open(members[0]) as file:
                    content = file.read(LARGEST + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
    except _UNREADABLE as problem:
        raise error("a file cannot be read", where=path, got=f"{type(problem).__name__}: {problem}") from problem
    if len(content) > LARGEST:
        raise error("a table is larger than any of its kind", where=path, expected=f"{LARGEST:,} bytes")
    return content


def decoded(content: bytes, path: Path, error: type[MedgroundError] = DataError) -> tuple[str, list[str]]:
    """Return text, and what is unusual about its encoding: UTF-8, UTF-16 and UTF-32 by their marks, else Latin.

    Raises:
        MedgroundError: of the given class, where the bytes are no text.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(encoding), [] if encoding == "utf-8" else [f"written as {encoding}"]
            except UnicodeDecodeError as problem:
                raise error("a table is no text in the encoding that it names", where=path, got=problem) from problem
    if b"\0" in content[:4096]:
        raise error("a table holds zero bytes", where=path, expected="text: UTF-8, or UTF-16 with its mark")
    try:
        return content.decode("utf-8"), []
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace"), ["that are no UTF-8, read as Windows-1252 (Latin)"]


def _separator(head: str, required: Sequence[str]) -> str:
    """Return the separator under which a header names what is required, else the most frequent one."""

    def fit(mark: str) -> tuple[int, int]:
        names = {name.strip().strip('"').casefold() for name in head.split(mark)}
        return len(names & {name.casefold() for name in required}), head.count(mark)

    return max(SEPARATORS, key=fit)


def _bulk(text: str, mark: str, path: Path, error: type[MedgroundError]) -> tuple[pl.DataFrame, Sequence[int]] | None:
    """Return a table without quotes whose lines all have as many fields as its header; None for any other."""
    content = text.encode()
    letters = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if not content.endswith(b"\n"):
        ends = np.append(ends, len(letters))
    parts = np.searchsorted(np.flatnonzero(letters == ord(mark)), ends)
    fields = np.diff(parts, prepend=0) + 1
    if (fields != fields[0]).any() or fields[0] < 2 or b"\r" in content.replace(b"\r\n", b""):
        return None
    header = content[: ends[0]].decode().strip("\r").split(mark)
    names = _names(header, path, error)
    if len(names) < fields[0]:
        return None
    frame = (
        pl.read_csv(
            content,
            has_header=False,
            skip_lines=1,
            separator=mark,
            quote_char=None,
            infer_schema=False,
            new_columns=names,
        )
        if len(ends) > 1
        else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    )
    return (frame, range(2, len(frame) + 2)) if len(frame) == len(ends) - 1 else None


def _by_line(
    text: str, mark: str, path: Path, *, quoted: bool, error: type[MedgroundError]
) -> tuple[pl.DataFrame, Sequence[int]]:
    """Return any table, a line at a time."""
    lines = io.StringIO(text, newline="")
    plain = csv.reader(lines, delimiter=mark, quoting=csv.QUOTE_NONE)
    reader = csv.reader(lines, delimiter=mark, strict=True) if quoted else plain
    rows: list[list[str]] = []
    places: list[int] = []
    start = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append(row)
                places.append(start)
            start = reader.line_num + 1
    except csv.Error as problem:
        raise error("a table cannot be read", where=f"{path}, line {start}", got=problem) from problem
    header = rows[0]
    parts = [part for name in header for part in name.split(mark)]
    # A quoted name with a comma in it (OriginalImage[Width,Height]) stands for as many fields as it has parts.
    filled = max((i for i, field in enumerate(rows[1], 1) if field.strip()), default=0) if len(rows) > 1 else 0
    wider = len(header) < filled <= len(parts)
    names = _names(parts if wider else header, path, error)
    for row, place in zip(rows[1:], places[1:], strict=True):
        _hold_width(row, len(names), f"{path}, line {place}", error)
    columns = list(zip(*(row[: len(names)] for row in rows[1:]), strict=True)) or [()] * len(names)
    series = {name: pl.Series(values, dtype=pl.String) for name, values in zip(names, columns, strict=True)}
    return pl.DataFrame(series), places[1:]


def _hold_width(row: Sequence[str], width: int, where: str, error: type[MedgroundError]) -> None:
    """Refuse a row that is shorter than the header, or whose surplus fields are filled."""
    if len(row) >= width and not any(field.strip() for field in row[width:]):
        return
    more = len(row) > width
    raise error(
        f"a line of a table has {'more' if more else 'fewer'} fields than its header",
        where=where,
        expected=f"{width} fields; surplus ones are empty",
        got=f"{len(row)} fields",
        fix='quote fields that hold the separator: "A, B"' if more else "complete the line, or is the file cut off?",
    )


def _names(header: Sequence[str], path: Path, error: type[MedgroundError]) -> list[str]:
    names = [name.strip() for name in header]
    while names and not names[-1]:
        names.pop()
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise error("a table names a column twice", where=path, got=", ".join(repeated))
    return [name or f"unnamed_{i}" for i, name in enumerate(names)]


def _stripped(frame: pl.DataFrame, places: Sequence[int]) -> tuple[pl.DataFrame, Sequence[int]]:
    """Return stripped fields, null where they are empty, without rows that have none."""
    stripped = pl.all().str.strip_chars()
    frame = frame.with_columns(pl.when(stripped != "").then(stripped))
    kept = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    if kept.all():
        return frame, places
    return frame.filter(kept), [place for place, keep in zip(places, kept, strict=True) if keep]


def _without_index(frame: pl.DataFrame, remarks: list[str]) -> pl.DataFrame:
    """Leave out a first column without a name that only counts the rows, as pandas writes it."""
    if frame.columns[:1] != ["unnamed_0"] or len(frame.columns) < 2:
        return frame
    counts = frame["unnamed_0"].to_list()
    if counts not in ([str(i) for i in range(len(counts))], [str(i + 1) for i in range(len(counts))]):
        return frame
    remarks.append("whose first column only counts the rows, and is left out")
    return frame.drop("unnamed_0")


def _chosen(
    frame: pl.DataFrame,
    required: Sequence[str],
    optional: Sequence[str] | None,
    path: Path,
    error: type[MedgroundError],
) -> pl.DataFrame:
    present: Mapping[str, str] = {name.casefold(): name for name in reversed(frame.columns)}
    for name in required:
        if name.casefold() not in present:
            raise error(
                f"a table has no column {name!r}",
                where=path,
                expected=", ".join(required),
                got=", ".join(name[:60] for name in frame.columns[:20]) or "no columns",
                fix=did_you_mean(name, frame.columns),
            )
    wanted = [*required, *(optional or ())]
    chosen = {
        name: pl.col(present[name.casefold()]) if name.casefold() in present else pl.lit(None, pl.String)
        for name in wanted
    }
    further = [] if optional is not None else [n for n in frame.columns if n not in _taken(wanted, present)]
    return frame.select(*(column.alias(name) for name, column in chosen.items()), *further)


def _taken(wanted: Sequence[str], present: Mapping[str, str]) -> set[str]:
    return {present[name.casefold()] for name in wanted if name.casefold() in present}


def _refuse_twice(table: Table, key: Sequence[str], error: type[MedgroundError]) -> None:
    if not key or not len(table.frame):
        return
    twice = table.frame.select(pl.struct(*key).is_duplicated()).to_series()
    if not twice.any():
        return
    first = int(np.flatnonzero(twice.to_numpy())[0])
    value = table.frame.select(*key).row(first)
    same = [i for i, row in enumerate(table.frame.select(*key).iter_rows()) if row == value]
    raise error(
        f"two lines of a table are about one {' and '.join(key)}",
        where=f"{table.path}, lines {', '.join(str(table.places[i]) for i in same[:5])}",
        got=", ".join(str(part)[:60] for part in value),
        fix="keep one line",
    )
