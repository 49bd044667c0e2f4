"""The five readers of terminologies against tables made by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.medical_checklist.terminologies import base, ncit, obo, pubtator, rrf, tsv
from medground.errors import ConfigError, DataError

GOLDEN = Path(__file__).parents[3] / "golden" / "medical_checklist" / "readers"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text("utf-8"))


def rows(terminology: base.Terminology) -> list[dict[str, Any]]:
    return [
        {"id": c.concept_id, "names": list(c.names), "tuis": list(c.tuis), "tuis_in_benchmark": list(c.benchmark_tuis)}
        for c in terminology.concepts.values()
    ]


def expected(kind: str, *more: str) -> list[dict[str, Any]]:
    keys = ("id", "names", "tuis", "tuis_in_benchmark", *more)
    return sorted(({k: c[k] for k in keys} for c in EXPECTED[kind]["concepts"]), key=lambda c: c["id"])


def test_rrf() -> None:
    t = rrf.read(GOLDEN / "rrf")
    assert rows(t) == expected("rrf")
    chosen = {c.concept_id: (c.preferred, c.preferred_by) for c in t.concepts.values()}
    assert chosen == {c["id"]: (c["preferred"], c["preferred_by"]) for c in EXPECTED["rrf"]["concepts"]}
    assert {k: [v] for k, v in t.dropped.items()} == EXPECTED["rrf"]["dropped"]
    assert t.strings_of_several_concepts() == EXPECTED["rrf"]["strings_of_several_concepts"]
    assert [list(p) for p in t.parent_child_pairs()] == EXPECTED["rrf"]["parent_child_pairs"]
    assert (t.remarks["rows"], t.remarks["rows_kept"]) == (57, 49)


def test_rrf_stops_at_a_short_row_and_names_it() -> None:
    with pytest.raises(DataError, match=r"wrong number of fields") as caught:
        rrf.read(with_types(GOLDEN / "rrf" / "bad"))
    assert "MRCONSO.RRF, line 4" in str(caught.value)
    assert (caught.value.expected, caught.value.got) == (18, 12)


def with_types(folder: Path) -> Path:
    if (folder / "MRSTY.RRF").is_file():
        return folder
    import shutil
    import tempfile

    made = Path(tempfile.mkdtemp())
    shutil.copy(folder / "MRCONSO.RRF", made)
    shutil.copy(folder.parent / "MRSTY.RRF", made)
    return made


def test_rrf_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    for name in ("MRCONSO.RRF", "MRSTY.RRF", "MRREL.RRF"):
        held = (GOLDEN / "rrf" / name).read_bytes().split(b"\n")[:-1]
        random.Random(3).shuffle(held)
        (tmp_path / name).write_bytes(b"\n".join(held) + b"\n")
    assert rows(rrf.read(tmp_path)) == expected("rrf")
    assert rrf.read(tmp_path).fingerprint == rrf.read(GOLDEN / "rrf").fingerprint


def test_ncit() -> None:
    t = ncit.read(GOLDEN / "ncit" / "Thesaurus.txt")
    assert rows(t) == expected("ncit_flat")
    assert {c.concept_id: c.preferred for c in t.concepts.values()} == {
        c["id"]: c["preferred"] for c in EXPECTED["ncit_flat"]["concepts"]
    }
    assert dict(t.dropped) == EXPECTED["ncit_flat"]["dropped"]
    parents = {c["id"]: set(c["parents"]) for c in EXPECTED["ncit_flat"]["concepts"] if c["parents"]}
    assert {k: set(v) for k, v in t.parents.items() if k in t.concepts} == parents


def test_obo() -> None:
    path = GOLDEN / "obo" / "tiny.obo"
    t = obo.read(path, tui="T047")
    golden = {c["id"]: c for c in EXPECTED["obo"]["concepts"]}
    assert [c.concept_id for c in t.concepts.values()] == sorted(golden)
    for concept in t.concepts.values():
        held = golden[concept.concept_id]
        assert (concept.preferred, list(concept.names), list(concept.tuis)) == (
            held["preferred"],
            held["names"],
            held["tuis"],
        )
        assert sorted(t.parents.get(concept.concept_id, ())) == held["parents"]
        only_is_a = base.Terminology(t.concepts, t.parents)
        assert sorted(only_is_a.above(concept.concept_id)) == held["ancestors"]
    by_id = {term.term_id: term for term in obo.terms(path)}
    for term_id, held in golden.items():
        assert by_id[term_id].umls == held["umls_xrefs"]
        assert sorted(by_id[term_id].other_synonyms) == sorted(map(tuple, held["other_synonyms"]))
    assert dict(t.dropped) == EXPECTED["obo"]["dropped"]
    assert [list(p) for p in t.parent_child_pairs()] == EXPECTED["obo"]["parent_child_pairs"]
    below = obo.read(path, tui="T047", root="INVA:0001")
    assert list(below.concepts) == EXPECTED["obo"]["subtree_of_first_term"]
    assert t.wholes == {"INVA:0005": frozenset({"INVA:0001"})}
    with pytest.raises(ConfigError, match="fifteen"):
        obo.read(path, tui="T191")


def test_pubtator() -> None:
    path = GOLDEN / "pubtator" / "tiny.pubtator"
    got = [
        {"doc": a.document, "start": a.start, "end": a.end, "text": a.text, "tuis": list(a.tuis), "id": a.concept_id}
        for a in pubtator.marked(path)
    ]
    assert got == EXPECTED["pubtator"]["mentions"]
    t = pubtator.read(path)
    assert rows(t) == expected("pubtator")
    assert dict(t.dropped) == EXPECTED["pubtator"]["dropped"]


def test_tsv() -> None:
    t = tsv.read(GOLDEN / "tsv" / "terms.tsv")
    assert rows(t) == expected("tsv")
    assert {c.concept_id: c.preferred for c in t.concepts.values()} == {
        c["id"]: c["preferred"] for c in EXPECTED["tsv"]["concepts"]
    }
    assert list(t.dropped) == EXPECTED["tsv"]["dropped"]
    assert t.strings_of_several_concepts() == EXPECTED["tsv"]["strings_of_several_concepts"]


def test_types() -> None:
    from medground.benchmarks.medical_checklist import semantic_types

    assert {t.tui: t.name for t in semantic_types.TYPES.values()} == EXPECTED["types"]["fifteen"]
    assert EXPECTED["types"]["outside"] == semantic_types.OUTSIDE
    outside = EXPECTED["types"]["outside_although_below_one_of_the_fifteen"]
    assert semantic_types.in_benchmark(outside) == ()


def test_cycles_are_counted_and_climbed_once(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(
        "concept_id\ttui\tterm\tpreferred\n" + "".join(f"X{i}\tT023\tt{i}\t1\n" for i in range(4))
    )
    (tmp_path / "relations.tsv").write_text(
        "child\tparent\tkind\nX0\tX1\tis_a\nX1\tX2\tis_a\nX2\tX0\tis_a\nX3\tX0\tpart_of\n"
    )
    t = tsv.read(tmp_path / "t.tsv")
    assert t.remarks["concepts_on_a_cycle"] == 3
    assert t.above("X3") == {"X0", "X1", "X2"}
    assert t.related({"X0"}, {"X3"})
    assert t.related({"X1"}, {"X0"})
    assert not base.Terminology(t.concepts).related({"X0"}, {"X3"})


def test_what_may_be_true_of_one_thing_is_related_either_way(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(
        "concept_id\ttui\tterm\tpreferred\n" + "".join(f"X{i}\tT190\tt{i}\t1\n" for i in range(3))
    )
    (tmp_path / "relations.tsv").write_text("child\tparent\tkind\nX0\tX1\toverlaps\n")
    t = tsv.read(tmp_path / "t.tsv")
    assert t.related({"X0"}, {"X1"})
    assert t.related({"X1"}, {"X0"})
    assert not t.related({"X0"}, {"X2"})
    assert t.above("X0") == frozenset()
    assert not t.by_kind.related({"X0"}, {"X1"})
    assert base.Terminology(t.concepts).fingerprint != t.fingerprint


@pytest.mark.parametrize("text", ["a\tb\n", "concept_id\ttui\tterm\tpreferred\nX1\tT023\theart\n"])
def test_a_table_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(DataError):
        tsv.read(tmp_path / "t.tsv")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes("concept_id\ttui\tterm\tpreferred\nX1\tT047\tMénière\t1\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        tsv.read(tmp_path / "t.tsv")


def test_offsets_that_do_not_hold_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1|t|A heart\n1|a|Text.\n1\t3\t8\theart\tT023\tC1\n")
    with pytest.raises(DataError, match="offsets"):
        list(pubtator.marked(tmp_path / "x"))
