"""What people's files hold, through the whole build: a clear message, or a counted refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.medical_checklist import build as building, items as item_files
from medground.benchmarks.medical_checklist.build import build
from medground.benchmarks.medical_checklist.folder import Asked, build_items
from medground.benchmarks.medical_checklist.sources.base import Captioned, select
from medground.benchmarks.medical_checklist.terminologies import embedded, tsv
from medground.errors import DataError

HEAD = "concept_id\ttui\tterm\tpreferred\n"


def made(tmp_path: Path, rows: list[dict[str, Any]], **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Build from a table of captions; return items and report."""
    table = tmp_path / "captions.jsonl"
    table.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    out = build_items(tmp_path / "out", Asked(source="table", captions=table, **more))
    lines = (out / "items.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines], json.loads((out / "build.json").read_text())


def own(tmp_path: Path, terms: str, relations: str = "") -> dict[str, Any]:
    (tmp_path / "terms.tsv").write_text(HEAD + terms, encoding="utf-8")
    if relations:
        (tmp_path / "relations.tsv").write_text("child\tparent\tkind\n" + relations, encoding="utf-8")
    return {"terminology": "tsv", "terminology_path": tmp_path / "terms.tsv"}


def captions(*texts: str) -> list[dict[str, Any]]:
    return [{"id": str(n), "caption": text, "paper": f"P{n}", "licence": "CC0"} for n, text in enumerate(texts)]


def test_captions_in_another_encoding_are_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("id,caption\n1,Ménière of the liver.\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8") as caught:
        build_items(tmp_path / "out", Asked(source="table", captions=path))
    assert "iconv" in str(caught.value)


def test_quotes_pipes_and_regular_expressions_in_terms_are_letters(tmp_path: Path) -> None:
    terms = own(tmp_path, 'A\tT023\t"x|y" (z)*\t1\nB\tT023\ta.b+\t1\nC\tT023\t[c]\t1\n')
    items, _ = made(
        tmp_path, captions('A view of "x|y" (z)* here.', "A view of a.b+ here.", "A view of axb+ here."), **terms
    )
    assert {i["term_positive"] for i in items} <= {'"x|y" (z)*', "a.b+"}
    assert all(i["term_negative"] in ('"x|y" (z)*', "a.b+") for i in items)


def test_terms_without_a_type_take_no_part_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(HEAD + "A\t\tliver\t1\nB\tT023\tspleen\t1\nC\tT023\t\t1\n")
    terms = tsv.read(tmp_path / "t.tsv")
    assert list(terms.concepts) == ["B"]
    assert terms.dropped == {"A": "no type", "C": "no name"}


def test_a_cycle_of_kinds_ends(tmp_path: Path) -> None:
    terms = own(
        tmp_path,
        "A\tT023\tliver\t1\nB\tT023\tspleen\t1\nC\tT023\tkidney\t1\n",
        "A\tB\tis_a\nB\tA\tis_a\n",
    )
    items, report = made(
        tmp_path, captions("A mass in the liver.", "A mass in the spleen.", "A mass in the kidney."), **terms
    )
    pairs = {(i["term_positive"], i["term_negative"]) for i in items}
    assert ("liver", "spleen") not in pairs
    assert ("spleen", "liver") not in pairs
    assert report["refused_candidates"]["parent_child"] > 0


def test_pictures_that_are_not_there_are_counted(tmp_path: Path) -> None:
    rows = captions("A mass in the liver.", "A mass in the spleen.")
    rows[0]["image"] = "none.png"
    (tmp_path / "images").mkdir()
    items, report = made(tmp_path, rows, images=tmp_path / "images")
    assert report["refused_captions"] == {"image_missing": 2}
    assert {i["image"] for i in items} == {None}


def test_a_whole_article_and_an_id_twice_are_counted(tmp_path: Path) -> None:
    rows = captions("A mass in the liver.", "A mass in the spleen.", "A mass in the lung. " * 5000, "One.", "Two.")
    rows[4]["id"] = "3"
    _, report = made(tmp_path, rows)
    assert report["refused_captions"] == {"ambiguous_id": 2, "caption_too_long": 1}
    assert report["captions"] == 2


def test_function_words_are_no_terms(tmp_path: Path) -> None:
    terms = own(tmp_path, "A\tT023\tall\t1\nB\tT023\tthe\t1\nC\tT023\tIN\t1\nD\tT023\tliver\t1\nE\tT023\tspleen\t1\n")
    items, report = made(tmp_path, captions("All the mass IN the liver.", "All the mass IN the spleen."), **terms)
    assert {i["term_positive"] for i in items} == {"liver", "spleen"}
    assert report["mentions"] == 2


def test_right_to_left_text_keeps_its_order(tmp_path: Path) -> None:
    items, _ = made(tmp_path, captions("צילום של the liver.", "צילום של the spleen."))
    assert items
    for item in items:
        assert item["positive"][item["start"] : item["end"]] == item["term_positive"]
        assert item["negative"] == item["positive"].replace(item["term_positive"], item["term_negative"])


_SENTENCES = (
    "A mass in the liver.", "Axial CT of the chest.", "A large cyst in the left kidney.", "Coronal MRI shows a stent.",
    "The right lung shows consolidation.", "Ultrasound of the spleen.", "A fracture of the left femur.", "No effusion.",
    "An abscess in the upper lobe.", "Radiograph of the hand with a screw.", "Edema of the brain.",
)  # fmt: skip


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.sampled_from(_SENTENCES), min_size=2, max_size=9), st.randoms(use_true_random=False), st.integers(0, 5)
)
def test_neither_order_nor_chunks_change_an_item(texts: list[str], random: Any, seed: int) -> None:
    held = [Captioned(f"{n}", text, None, f"P{n}", "s") for n, text in enumerate(texts)]
    shuffled = list(held)
    random.shuffle(shuffled)
    rules = building.Settings(seed=seed)
    first = build(select(held)[0], embedded.read(), rules)[0]
    chunk = building.CHUNK
    try:
        building.CHUNK = random.randint(1, 3)
        second = build(select(shuffled)[0], embedded.read(), rules)[0]
    finally:
        building.CHUNK = chunk
    assert first == second


def test_the_bytes_are_the_same_on_one_worker_and_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "CHUNK", 3)
    held = select([Captioned(f"{n}", text, None, f"P{n}", "s") for n, text in enumerate(_SENTENCES)])[0]
    for workers in (1, 3):
        item_files.write(tmp_path / f"{workers}.jsonl", build(held, embedded.read(), workers=workers)[0])
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "3.jsonl").read_bytes()
    assert (tmp_path / "1.jsonl").stat().st_size > 0
