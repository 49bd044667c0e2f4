"""Tables from elsewhere: what people's files look like, and what must not pass."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import DataError
from medground.tables import reader
from medground.tables.documents import parse_json, read_json
from medground.tables.reader import read_table

PLAIN = "case_id,finding,score\na,Mass,0.5\nb,Größe,1\n"


def written(tmp_path: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (PLAIN.encode(), None),
        (PLAIN.encode("utf-8-sig"), None),
        (PLAIN.encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + PLAIN.encode("utf-16-be"), "utf-16-be"),
        (PLAIN.encode("utf-32"), "utf-32"),
        (PLAIN.encode("latin-1"), "Latin"),
        (PLAIN.replace(",", ";").encode(), "semicolons"),
        (PLAIN.replace(",", "\t").encode(), "tabs"),
        (PLAIN.replace(",", "|").encode(), "bars"),
        (PLAIN.replace("\n", "\r\n").encode(), None),
        (PLAIN.replace("\n", "\r").encode(), None),
        (PLAIN.replace("\n", ",,\n").encode(), None),
        (PLAIN.replace("score\n", "score\n\n\n").encode(), None),
        (PLAIN.removesuffix("\n").encode(), None),
        (PLAIN.replace("case_id", "Case_ID").encode(), None),
        (b",case_id,finding,score\n0,a,Mass,0.5\n1,b,Gr\xc3\xb6\xc3\x9fe,1\n", "counts the rows"),
        (b'"case_id","finding","score"\n"a","Mass","0.5"\n"b","Gr\xc3\xb6\xc3\x9fe",1\n', None),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_one_table_in_the_forms_that_programs_write(content: bytes, remark: str | None, tmp_path: Path) -> None:
    table = read_table(written(tmp_path, content), ["case_id", "finding", "score"], (), key=["case_id", "finding"])
    assert table.frame.rows() == [("a", "Mass", "0.5"), ("b", "Größe", "1")]
    assert (remark is None) == (not table.remarks)
    assert remark is None or remark in " ".join(table.remarks)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("case_id,score\na,1\nb\n", r"fewer fields[\s\S]*line 3"),
        ("case_id,score\n\na,1\nb,2,3\n", r"more fields[\s\S]*line 4"),
        ('case_id,score\n"a\nb",1\nc\n', r"fewer fields[\s\S]*line 4"),
        ('case_id,score\na,"1\nb,2\n', r"cannot be read[\s\S]*line 2"),
        ("case_id,score,score\na,1,2\n", "column twice"),
        ("case_id,scores\na,1\n", r"no column 'score'[\s\S]*did you mean 'scores'"),
        ("case_id,score\na,1\nb,2\na,3\n", r"two lines[\s\S]*lines 2, 4"),
        ("case_id,score\na,1\n\na ,3\n", r"two lines[\s\S]*lines 2, 4"),
        (b"case_id,score\na,\x00\x001\n", "zero bytes"),
        (b"\xff\xfec\x00a", "fewer|no column|no text"),
    ],
    ids=str,
)
def test_what_cannot_be_right_is_refused_with_its_line(content: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_table(written(tmp_path, content), ["case_id", "score"], key=["case_id"])
    import re

    assert re.search(words, str(caught.value)), str(caught.value)


def test_long_fields_are_read_and_endless_ones_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "1 " * 200_000
    table = read_table(written(tmp_path, f'id,rle\nx,"{code}"\n'), ["rle"])
    assert table.frame["rle"].to_list() == [code.strip()]
    monkeypatch.setattr(reader, "LARGEST", 1000)
    for name, content in (
        ("t.csv", b"id\n" + b"x" * 2000),
        ("t.csv.gz", gzip.compress(b"id\n" + b"x" * 2000, mtime=0)),
    ):
        with pytest.raises(DataError, match="larger than any"):
            read_table(written(tmp_path, content, name), ["id"])


def test_quotes_are_letters_where_the_format_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, 'cui|name\nC1|5" tube\nC2|"a\n')
    table = read_table(path, ["name"], separator="|", quoted=False)
    assert table.frame["name"].to_list() == ['5" tube', '"a']


FIELDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=8), st.sampled_from(",;\t|"), st.booleans())
def test_any_table_that_the_standard_library_writes_is_read_back(
    rows: list[tuple[str, str, str]], mark: str, every: bool
) -> None:
    import tempfile

    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL)
    writer.writerows([("first", "second", "third"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(out.getvalue(), encoding="utf-8", newline="")
        read = read_table(path, ["first", "second", "third"]).frame.rows()
    expected = [tuple(field.strip() or None for field in row) for row in rows]
    assert read == [row for row in expected if any(row)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' stands twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1', "Expecting"),
        (b"\xff\xfa{}", "codec"),
    ],
    ids=["top", "nested", "deep", "cut", "bytes"],
)
def test_documents_that_cannot_be_right_are_refused(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="JSON") as caught:
        read_json(written(tmp_path, content, "d.json"))
    assert words in str(caught.value)


def test_documents_are_bounded_and_read_in_any_unicode(tmp_path: Path) -> None:
    assert parse_json('{"a": "é"}'.encode("utf-16"), where="x") == {"a": "é"}
    with pytest.raises(DataError, match="larger"):
        read_json(written(tmp_path, b'{"a": 1}', "d.json"), largest=4)
    with pytest.raises(DataError, match="cannot be read"):
        read_json(tmp_path / "absent.json")
