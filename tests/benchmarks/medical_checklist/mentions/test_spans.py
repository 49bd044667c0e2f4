"""Spans of others are linked under a profile, without overlap."""

from __future__ import annotations

import pickle
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from medground.benchmarks.medical_checklist.build import build
from medground.benchmarks.medical_checklist.linking import PAPER
from medground.benchmarks.medical_checklist.mentions.spans import LinkedSpans, noun_chunks
from medground.benchmarks.medical_checklist.sources.base import Captioned
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.errors import ConfigError


def phrases(text: str) -> list[tuple[int, int]]:
    """Every run of words between marks and small words."""
    return [m.span() for m in re.finditer(r"(?:the |a )?[a-z-]+(?: [a-z-]+)?(?= of|[.,]|$| with)", text.lower())]


def test_spans_are_linked(lexicon: Terminology) -> None:
    finder = LinkedSpans(phrases, lexicon, named="phrases 1")
    one, two = finder.find("A pericardial effusion, stenosis.")
    assert (one.text, one.alias, two.text, two.score) == (
        "pericardial effusion", "pericardial effusion", "stenosis", 1.0,
    )  # fmt: skip
    loose = LinkedSpans(phrases, lexicon, PAPER, named="phrases 1")
    assert [m.alias for m in loose.find("The descending aorta.")] == ["ascending aorta"]
    assert finder.find("The descending aorta.") == []
    assert loose.fingerprint() != finder.fingerprint()


def test_a_build_takes_another_finder(lexicon: Terminology) -> None:
    held = [
        Captioned(str(i), f"View of the {w}.", None, str(i), "s") for i, w in enumerate(("liver", "spleen", "heart"))
    ]
    items, report = build(held, lexicon, finder=LinkedSpans(phrases, lexicon, named="p"))
    assert report.mentions == 3
    assert {i.term_positive for i in items} == {"liver", "spleen", "heart"}


def test_spacy_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match="spaCy"):
        noun_chunks()("liver")

    def load(_: Any) -> Any:
        return lambda text: SimpleNamespace(noun_chunks=[SimpleNamespace(start_char=0, end_char=len(text))])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    spans = noun_chunks("x")
    assert spans("liver") == [(0, 5)]
    assert pickle.loads(pickle.dumps(spans))("spleen") == [(0, 6)]
    assert "noun_chunks of x" in spans.named
