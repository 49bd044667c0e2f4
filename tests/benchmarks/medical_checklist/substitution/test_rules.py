"""Substitutions against negatives made by hand, and properties that hold for any caption."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary
from medground.benchmarks.medical_checklist.substitution import article, case, number, rules
from medground.benchmarks.medical_checklist.substitution.context import Context, context
from medground.benchmarks.medical_checklist.terminologies import embedded
from medground.benchmarks.medical_checklist.terminologies.base import Concept, Terminology


def types_of(lexicon: Terminology, ids: list[str]) -> set[str]:
    return {t for i in ids for t in lexicon.concepts[i].tuis} if all(i in lexicon.concepts for i in ids) else {"T191"}


def test_accepted(golden: Any, lexicon: Terminology, dictionary: Dictionary) -> None:
    cases = golden.load("substitution/accepted.json")
    assert len(cases) == 65
    for c in cases:
        mentions = dictionary.find(c["caption"])
        assert rules.refuse_span(c["caption"], c["start"], c["end"], mentions) is None, c
        mention = next(m for m in mentions if (m.start, m.end) == (c["start"], c["end"]))
        assert list(mention.concept_ids) == c["mention_concepts"]
        assert rules.refuse_mention(c["caption"], mention, mentions, lexicon) is None, c
        form = rules.choose_form(c["replacement_forms"], mention)
        ids = c["replacement_concepts"]
        reason = rules.refuse_replacement(c["caption"], mention, mentions, form, ids, types_of(lexicon, ids), lexicon)
        assert reason is None, (c, reason)
        assert rules.substitute(c["caption"], mention, form) == c["negative"]


def test_refused(golden: Any, lexicon: Terminology, dictionary: Dictionary) -> None:
    cases = golden.load("substitution/refused.json")
    assert len(cases) == 37
    for c in cases:
        caption, mentions = c["caption"], dictionary.find(c["caption"])
        reason = rules.refuse_span(caption, c["start"], c["end"], mentions)
        if reason is None:
            mention = next(m for m in mentions if (m.start, m.end) == (c["start"], c["end"]))
            ids = c["replacement_concepts"]
            reason = rules.refuse_mention(caption, mention, mentions, lexicon) or rules.refuse_replacement(
                caption, mention, mentions, c["replacement"], ids, types_of(lexicon, ids), lexicon
            )
        assert reason in c["reasons"], (c, reason)
        assert reason in rules.REASONS


@pytest.mark.parametrize(
    ("caption", "term", "reason"),
    [
        ("A failure to bypass the separated instrument.", "bypass", "stop_word"),
        ("The mouth is the right way up.", "right", "stop_word"),
        ("A poster anterior film of the chest.", "anterior", "stop_word"),
        ("The aorta (Ao) is wide.", "aorta", "coreferent"),
        ("On color Doppler (CDUS) there is flow.", "color Doppler", "coreferent"),
        ("After bypass the flow is restored.", "bypass", None),
        ("The aorta (arrow) is wide.", "aorta", None),
        ("The spleen (A) is large.", "spleen", None),
    ],
)
def test_words_in_another_sense_and_words_beside_their_letters(caption: str, term: str, reason: str | None) -> None:
    terminology = embedded.read()
    mentions = Dictionary(terminology).find(caption)
    mention = next(m for m in mentions if m.text == term)
    assert rules.refuse_mention(caption, mention, mentions, terminology) == reason


def test_states_that_may_be_true_together_are_related() -> None:
    terminology = embedded.read()
    ids = {c.preferred: frozenset({c.concept_id}) for c in terminology.concepts.values()}
    for one, other in (("inflammation", "consolidation"), ("prosthesis", "rod"), ("aortic aneurysm", "aorta")):
        assert terminology.related(ids[one], ids[other])
        assert terminology.related(ids[other], ids[one])
    assert not terminology.related(ids["inflammation"], ids["fracture"])


def test_wholes_and_ancestors_are_refused() -> None:
    names = {"A": "organ", "B": "lung", "C": "lower lobe", "D": "liver"}
    t = Terminology(
        {k: Concept(k, n, (n,), ("T023",)) for k, n in names.items()},
        parents={"B": frozenset({"A"})},
        wholes={"C": frozenset({"B"})},
    )
    caption = "Shadow in the lower lobe."
    (mention,) = Dictionary(t).find(caption)

    def refused(form: str, concept: str) -> str | None:
        return rules.refuse_replacement(caption, mention, [mention], form, [concept], ["T023"], t)

    assert refused("lung", "B") == refused("organ", "A") == "parent_child"
    assert refused("liver", "D") is None
    # The part is named, so the whole is true of the picture too.
    both = "Shadow in the liver, clip in the lower lobe."
    liver, lobe = Dictionary(t).find(both)
    assert rules.refuse_replacement(both, liver, [liver, lobe], "lung", ["B"], ["T023"], t) == "redundant"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("MRI", "an"), ("ECG", "an"), ("X-ray", "an"), ("NG tube", "an"), ("IVC filter", "an"), ("LVAD", "an"),
        ("OCT", "an"), ("US", "a"), ("UVC", "a"), ("CT", "a"), ("PET scan", "a"), ("ureter", "a"), ("uterus", "a"),
        ("urogram", "a"), ("uveitis", "a"), ("ulcer", "an"), ("umbilical hernia", "an"), ("ultrasound", "an"),
        ("urinary bladder", "a"), ("unilateral cyst", "a"), ("uninjured rib", "an"), ("hour", "an"), ("hernia", "a"),
        ("8 mm stent", "an"), ("18 G needle", "an"), ("80 cm tube", "an"), ("10 mm stent", "a"), ("upper lobe", "an"),
        ("SPECT scan", "a"), ("HIDA scan", "a"), ("oesophagus", "an"), ("œdema", "an"), ("European device", "a"),
        ("one-lung view", "a"), ("RUL", "an"), ("urticaria", "an"), ("urethra", "a"), ("useful sign", "a"),
        ("unusual mass", "an"), ("uncus", "an"), ("urachus", "a"), ("uvula", "a"), ("USG", "a"), ("abscess", "an"),
    ],
)  # fmt: skip
def test_article_by_sound(term: str, expected: str) -> None:
    assert article.article(term) == expected


def test_article_keeps_its_capital() -> None:
    assert article.repaired("A ", "MRI") == "An "
    assert article.repaired("an ", "CT") == "a "
    assert article.repaired("vitamin-A ", "MRI") == "vitamin-A "
    assert article.repaired("the ", "MRI") == "the "


@pytest.mark.parametrize(
    ("term", "plural"),
    [("bronchus", False), ("bronchi", True), ("bullae", True), ("diverticula", True), ("stenosis", False),
     ("stenoses", True), ("pelvis", False), ("US", False), ("ribs", True), ("hernia", False), ("thrombi", True),
     ("fractures of the femur", True), ("ascites", False), ("abscess", False), ("left", False)],
)  # fmt: skip
def test_number(term: str, plural: bool) -> None:
    assert number.is_plural(term) is plural


def test_sentence_starts() -> None:
    assert case.starts_sentence("Lung.", 0)
    assert case.starts_sentence("One. Lung.", 5)
    assert not case.starts_sentence("See Fig. lung", 9)
    assert not case.starts_sentence("in lung", 3)


def test_contexts() -> None:
    caption = "An axial view of the liver."
    assert context(caption, 9, 13) == Context("open", "of")
    assert context(caption, 21, 26) == Context("determiner", "end")


PARTS = [
    "a ",
    "an ",
    "A ",
    "the ",
    "no ",
    "left ",
    "CT",
    "MRI",
    "aorta",
    "lung",
    "lungs",
    "fracture",
    " of ",
    ". ",
    ", ",
    "(",
    ") ",
    "-",
    " ",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PARTS), max_size=14).map("".join),
    st.sampled_from(["liver", "US", "angiography", "uterus"]),
)
def test_only_span_and_article_change(caption: str, form: str) -> None:
    t = Terminology(
        {n: Concept(n, n, (n,), ("T023",)) for n in ("CT", "MRI", "aorta", "lung", "lungs", "fracture", "left")}
    )
    for mention in Dictionary(t).find(caption):
        negative = rules.substitute(caption, mention, form)
        tail = caption[mention.end :]
        assert negative.endswith(tail)
        head = caption[: mention.start]
        found = article.before(head)
        kept = head[: found.start(1)] if found else head
        assert negative.startswith(kept)
        middle = negative[len(kept) : len(negative) - len(tail)]
        assert middle.lower().endswith(form.lower())


def test_a_plain_mention_is_a_mention() -> None:
    mention = Mention(0, 2, "CT", "CT", ("X",), ("T060",))
    assert rules.substitute("CT", mention, "ultrasound") == "Ultrasound"
