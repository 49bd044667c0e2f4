"""Mentions against spans marked by hand, a brute-force search, and what must never break."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.medical_checklist.mentions import abbreviations, brackets
from medground.benchmarks.medical_checklist.mentions.boundaries import fold, is_whole_word
from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary, is_acronym
from medground.benchmarks.medical_checklist.mentions.negation import is_negated
from medground.benchmarks.medical_checklist.terminologies import tsv
from medground.benchmarks.medical_checklist.terminologies.base import Concept, Terminology
from medground.errors import ConfigError


def own_captions(golden: Any) -> dict[str, str]:
    text = (golden.root / "mentions" / "captions.tsv").read_text("utf-8")
    return dict(line.split("\t", 1) for line in text.split("\n")[1:] if line)


def test_spans_of_our_own_captions(golden: Any, dictionary: Dictionary) -> None:
    captions = own_captions(golden)
    for expected in golden.load("mentions/expected.jsonl"):
        caption = captions[expected["caption_id"]]
        got = [
            {
                "start": m.start,
                "end": m.end,
                "text": m.text,
                "concept_ids": list(m.concept_ids),
                "tuis": list(m.tuis),
            }
            for m in dictionary.find(caption)
        ]
        keys = ("start", "end", "text", "concept_ids", "tuis")
        assert got == [{k: m[k] for k in keys} for m in expected["mentions"]], caption


def test_brackets_and_negation_of_our_own_captions(golden: Any, dictionary: Dictionary) -> None:
    captions = own_captions(golden)
    for expected in golden.load("mentions/expected.jsonl"):
        caption = captions[expected["caption_id"]]
        for m in expected["mentions"]:
            assert brackets.is_in_brackets(caption, m["start"], m["end"]) == m["in_brackets"], (caption, m)
            if m["negated"] is not None:
                assert is_negated(caption, m["start"], m["end"]) == m["negated"], (caption, m["text"])


def test_spans_of_real_captions(golden: Any, dictionary: Dictionary) -> None:
    captions = {row["roco_id"]: row["caption"] for row in golden.rows("mentions_roco/captions.csv")}
    held = golden.load("mentions_roco/expected.jsonl")
    assert len(held) == len(captions) == 150
    for expected in held:
        caption = captions[expected.get("roco_id") or expected["caption_id"]]
        got = [(m.start, m.end, m.text, list(m.concept_ids)) for m in dictionary.find(caption)]
        assert got == [(m["start"], m["end"], m["text"], m["concept_ids"]) for m in expected["mentions"]], caption


def test_abbreviations(golden: Any) -> None:
    for case in golden.load("mentions/abbreviations.json"):
        assert [a._asdict() for a in abbreviations.find(case["text"])] == case["pairs"], case["text"]


def brute_force(terminology: Terminology, caption: str) -> list[tuple[int, int]]:
    """Every name at every place, then leftmost and longest."""
    spans = set()
    for concept in terminology.concepts.values():
        if not concept.benchmark_tuis:
            continue
        for name in concept.names:
            if len(name) < 2:
                continue
            hay, needle = (caption, name) if is_acronym(name) else (fold(caption), fold(name))
            for match in re.finditer(f"(?={re.escape(needle)})", hay):
                span = (match.start(), match.start() + len(needle))
                if is_whole_word(caption, *span):
                    spans.add(span)
    chosen, reached = [], 0
    for start in sorted({s for s, _ in spans}):
        if start >= reached:
            reached = max(e for s, e in spans if s == start)
            chosen.append((start, reached))
    return chosen


WORDS = [
    "CT", "ct", "aorta", "ascending aorta", "lung", "abscess", "lung abscess", "left", "-", "–", " ", ", ", "İ", "ß",
    "PE", "US", "us", "V", "(", ")", "x-ray", "X-RAY", ".", "rib", "ribs", "rib fracture", "שלום", "a", "ﬁ",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
    | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
)
def test_equals_a_search_for_every_name(caption: str) -> None:
    dictionary = held()
    got = dictionary.find(caption)
    assert [(m.start, m.end) for m in got] == brute_force(dictionary.terminology, caption)
    assert all(m.text == caption[m.start : m.end] for m in got)


@cache
def held() -> Dictionary:
    return Dictionary(tsv.read(Path(__file__).parents[3] / "golden" / "medical_checklist" / "lexicon" / "lexicon.tsv"))


def make(*names: str, tui: str = "T023") -> Dictionary:
    return Dictionary(Terminology({n: Concept(n, n, (n,), (tui,)) for n in names}))


def test_names_are_text_not_patterns() -> None:
    found = make("a.b (c)*", "T1|T2", "[x]").find("We saw a.b (c)* and axb (c)* and T1|T2 and [x].")
    assert [m.text for m in found] == ["a.b (c)*", "T1|T2", "[x]"]


def test_a_long_caption_is_read_whole() -> None:
    caption = "lung abscess, " * 8000
    assert len(make("lung", "lung abscess", "abscess").find(caption)) == 8000


def test_right_to_left_text_keeps_its_offsets() -> None:
    caption = "צילום chest עם lung"
    assert [(m.text, caption[m.start : m.end]) for m in make("lung", "chest").find(caption)] == [
        ("chest", "chest"),
        ("lung", "lung"),
    ]


def test_excluded_names_are_not_found() -> None:
    t = Terminology({"X": Concept("X", "left", ("left", "right"), ("T082",))})
    assert [m.text for m in Dictionary(t, exclude=["LEFT"]).find("left and right")] == ["right"]


def test_an_acronym_that_is_also_a_word_stands_for_itself() -> None:
    t = Terminology({"A": Concept("A", "PE", ("PE",), ("T046",)), "B": Concept("B", "pe", ("pe",), ("T047",))})
    assert [m.concept_ids for m in Dictionary(t).find("PE or pe")] == [("A",), ("B",)]


def test_a_terminology_without_names_is_refused() -> None:
    with pytest.raises(ConfigError, match="no name"):
        Dictionary(Terminology({}))
    with pytest.raises(ConfigError, match="no name"):
        make("mass", tui="T033")
