"""Similarities against scikit-learn's values, and pairs that must not be linked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.medical_checklist import linking
from medground.benchmarks.medical_checklist.linking import PAPER, NameIndex, Profile


def aliases(golden: Any) -> list[str]:
    return [a for a in (golden.root / "linking" / "aliases.txt").read_text("utf-8").split("\n") if a]


def test_golden_pairs(golden: Any) -> None:
    names = aliases(golden)
    index = NameIndex(names, PAPER)
    held = golden.load("linking/expected.json")
    assert (len(names), len(index._grams)) == (held["n_aliases"], held["n_grams"])
    for pair in held["pairs"]:
        mention, alias = pair["mention"], pair["alias"]
        row = index.similarities([mention])[0]
        assert row[names.index(alias)] == pytest.approx(pair["tfidf_cosine"], abs=1e-9)
        for measure in ("jaccard", "dice", "set_cosine"):
            assert linking.set_similarity(
                linking.word_grams(mention), linking.word_grams(alias), measure
            ) == pytest.approx(pair[measure], abs=1e-9)
            assert linking.set_similarity(
                linking.plain_grams(mention), linking.plain_grams(alias), measure
            ) == pytest.approx(pair["unpadded"][measure], abs=1e-9)
        assert (mention == alias) == pair["exact"]
        assert (mention.casefold() == alias.casefold()) == pair["exact_folded"]
        assert (linking.normalised(mention) == linking.normalised(alias)) == pair["exact_normalised"]
        assert linking.same_head(mention, alias) == pair["same_head_noun"], (mention, alias)
        best = row.max()
        assert best == pytest.approx(pair["best_tfidf_cosine"], abs=1e-9)
        assert sorted(n for n, s in zip(names, row, strict=True) if best > 0 and s > best - 1e-9) == sorted(
            pair["best_aliases"]
        )
        for threshold, linked in pair["linked_at"].items():
            found = NameIndex(names, Profile("x", threshold=float(threshold), guarded=False, unknown_grams_count=False))
            link = found._nearest(mention, found.similarities([mention])[0])
            assert sorted(link.names if link else ()) == sorted(linked)


def test_set_measures_equal_sets_of_grams(golden: Any) -> None:
    names = aliases(golden)[:60]
    texts = ["computed tomographic", "left ventricles", "thoracic aorta", "x"]
    for measure in ("jaccard", "dice", "set_cosine"):
        table = NameIndex(names, Profile("x", measure=measure)).similarities(texts)
        for text, row in zip(texts, table, strict=True):
            for name, value in zip(names, row, strict=True):
                wanted = linking.set_similarity(linking.word_grams(text), linking.word_grams(name), measure)
                assert value == pytest.approx(wanted, abs=1e-12)


def test_opposites_are_not_linked() -> None:
    index = NameIndex(["ascending aorta", "transverse colon", "cell wall", "inner band", "hypertension"])
    for text in ("descending aorta", "transverse process", "wall", "outer band", "hypotension"):
        assert index.link(text) is None, text


def test_inflection_is_linked() -> None:
    index = NameIndex(["magnetic resonance imaging", "pleural effusion", "oesophagus"], Profile("x", threshold=0.8))
    link = index.link("magnetic resonance image")
    assert link is not None
    assert (link.names, link.rule) == (("magnetic resonance imaging",), "grams")
    assert index.link("Pleural  Effusion").rule == "normalised"
    assert index.link("") is None


def test_unknown_grams_lower_the_similarity() -> None:
    names = ["cerebrospinal fluid", "blood"]
    text = ["cerebrospinal fluid signal"]
    assert NameIndex(names).similarities(text)[0, 0] < NameIndex(names, PAPER).similarities(text)[0, 0] - 0.05


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abcd -", min_size=1, max_size=12), min_size=1, max_size=8, unique=True))
def test_a_name_is_its_own_best(names: list[str]) -> None:
    index = NameIndex(names)
    table = index.similarities(list(index.names))
    assert np.all(table <= 1 + 1e-9)
    assert np.all(table >= 0)
    for i, name in enumerate(index.names):
        if linking.word_grams(name):
            assert table[i, i] == pytest.approx(1)
            assert name in index.link(name).names
