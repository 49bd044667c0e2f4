"""Blind scorers: golden accuracies, planted shortcuts found, mirrored pairs at exactly one half."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from medground.benchmarks.medical_checklist.audit import base, learned, ngrams, surface, term_frequency
from medground.benchmarks.medical_checklist.audit.base import Caption, Pair


def pairs_of(golden: Any, name: str) -> list[Pair]:
    return [
        Pair(
            r["item_id"],
            r["paper_id"],
            r["category"],
            r["term_positive"],
            r["term_negative"],
            r["positive"],
            r["negative"],
        )
        for r in golden.rows(f"audit/{name}.csv")
    ]


def scorers(reference: list[str]) -> list[base.BlindScorer]:
    model = ngrams.BigramModel(reference)
    return [
        term_frequency.TermFrequency(reference),
        next(r for r in surface.rules() if r.name == "shorter_wins"),
        ngrams.Bigram(model),
        ngrams.Bigram(model, per_token=True),
    ]


def test_golden_accuracies(golden: Any) -> None:
    expected = golden.load("audit/expected.json")
    reference = [Caption(r["paper_id"], r["caption"]) for r in golden.rows("audit/reference.csv")]
    items = pairs_of(golden, "planted")
    kept = base.disjoint(reference, items)
    assert (len(reference), len(kept)) == (expected["n_reference_rows"], expected["n_reference_rows_used"])
    for name in ("planted", "balanced", "mirrored"):
        pairs = pairs_of(golden, name)
        for scorer in scorers([c.text for c in kept]):
            got = base.hits(scorer.scores(pairs))
            wanted = expected[name]["scorers"][scorer.name]
            assert got.sum() == pytest.approx(wanted["correct"], abs=1e-9), (name, scorer.name)
            assert int((got == 0.5).sum()) == wanted["ties"]
    for scorer in scorers([c.text for c in reference]):
        got = base.hits(scorer.scores(items)).mean()
        assert got == pytest.approx(expected["planted_with_leaky_reference"][scorer.name]["accuracy"], abs=1e-9)


def test_golden_bigram(golden: Any) -> None:
    expected = golden.load("audit/expected.json")
    items = pairs_of(golden, "planted")
    reference = [Caption(r["paper_id"], r["caption"]) for r in golden.rows("audit/reference.csv")]
    texts = [c.text for c in base.disjoint(reference, items)]
    model = ngrams.BigramModel(texts)
    assert len(model.vocabulary) == expected["vocabulary_size_with_end_and_unknown"]
    by_id = {p.item_id: p for p in items}
    for held in expected["bigram_first_five"]:
        total, steps = model.log_probability(by_id[held["item_id"]].positive)
        assert (total, total / steps) == pytest.approx((held["positive_sum"], held["positive_per_token"]), abs=1e-9)
    terms = expected["term_counts_first_category"]
    assert term_frequency.TermFrequency(texts).counts(terms) == terms


def test_exchanging_the_captions_exchanges_the_score(golden: Any) -> None:
    pairs = pairs_of(golden, "planted")[:200]
    texts = [r["caption"] for r in golden.rows("audit/reference.csv")]
    for scorer in [*scorers(texts), *surface.rules(texts), learned.Learned()]:
        a = base.hits(scorer.scores(pairs)).mean()
        b = base.hits(scorer.scores([p.turned for p in pairs])).mean()
        assert a + b == pytest.approx(1) or scorer.name == "learned", scorer.name


def test_learned_finds_the_planted_shortcut_and_nothing_in_mirrored_pairs(golden: Any) -> None:
    planted = base.hits(learned.Learned().scores(pairs_of(golden, "planted")))
    assert planted.mean() > 0.8
    rows = pairs_of(golden, "mirrored")
    both = [p._replace(cluster=min(p.positive, p.negative)) for p in rows]
    assert base.hits(learned.Learned().scores(both)).mean() == 0.5


def plant(kind: str, n: int = 400) -> list[Pair]:
    """Items whose false caption has one of the three best-known tells."""
    rng = random.Random(1)
    pairs = []
    for i in range(n):
        a, b = rng.sample(["ribulon", "ostimar", "velaxin", "umbrast", "kerolin", "astavin"], 2)
        if kind == "rare":
            b = f"zq{i}x"
        positive, negative = f"View of a {a} today.", f"View of a {b} today."
        if kind == "long":
            negative = f"View of a {b} of the entire body today."
        if kind == "article":
            positive = f"View of {'an' if a[0] in 'aeiou' else 'a'} {a} today."
            negative = f"View of {'a' if b[0] in 'aeiou' else 'an'} {b} today."
        pairs.append(Pair(f"i{i}", f"p{i}", "T023", a, b, positive, negative))
    return pairs


@pytest.mark.parametrize(
    ("kind", "finder"), [("rare", "term_frequency"), ("long", "shorter_wins"), ("article", "article_fits_wins")]
)
def test_the_three_best_known_shortcuts_are_found(kind: str, finder: str) -> None:
    pairs = plant(kind)
    reference = [p.positive for p in plant("none", 300)]
    held = {
        s.name: base.hits(s.scores(pairs)).mean()
        for s in [*scorers(reference), *surface.rules(reference), learned.Learned()]
    }
    assert held[finder] > 0.8
    assert held["learned"] > 0.8 or kind == "article"


def test_an_empty_audit_is_empty() -> None:
    for scorer in [*scorers(["a b"]), *surface.rules(["a b"]), learned.Learned()]:
        assert scorer.scores([]).shape == (0, 2), scorer.name


def test_one_paper_cannot_teach_itself() -> None:
    pairs = [p._replace(cluster="one") for p in plant("rare", 20)]
    assert np.all(base.hits(learned.Learned().scores(pairs)) == 0.5)


def test_a_language_model_from_a_path(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    from medground.benchmarks.medical_checklist.audit.causal_lm import CausalLanguageModel
    from medground.errors import ModelError

    words = ["<s>", "<unk>", "a", "b", "c", "d"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="<s>", unk_token="<unk>").save_pretrained(
        tmp_path
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=6, n_positions=16, n_embd=8, n_layer=1, n_head=2))
    model.save_pretrained(tmp_path)
    pairs = [Pair("i", "p", "T023", "b", "c", "a b d", "a c")]
    got = CausalLanguageModel(tmp_path).scores(pairs)
    model.eval()
    for text, value in (([0, 2, 3, 5], got[0, 0]), ([0, 2, 4], got[0, 1])):
        with torch.inference_mode():
            log = torch.log_softmax(model(torch.tensor([text])).logits[0], -1)
        wanted = sum(float(log[i, text[i + 1]]) for i in range(len(text) - 1))
        assert value == pytest.approx(wanted, abs=1e-4)
    with pytest.raises(ModelError, match="not there"):
        CausalLanguageModel(tmp_path / "none")
