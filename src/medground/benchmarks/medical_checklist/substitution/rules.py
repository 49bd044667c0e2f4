"""Which mentions may be changed, and which replacements are refused; each refusal has a reason.

The rules keep the true caption true, make the changed one false, and leave no mark in the text that tells
which is which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from medground.benchmarks.medical_checklist.mentions import abbreviations
from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import fold, is_part_of_compound
from medground.benchmarks.medical_checklist.mentions.brackets import is_in_brackets
from medground.benchmarks.medical_checklist.mentions.negation import is_negated
from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.benchmarks.medical_checklist.substitution import article, case
from medground.benchmarks.medical_checklist.substitution.number import is_plural
from medground.benchmarks.medical_checklist.substitution.shape import is_adjective
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.benchmarks.medical_checklist.words import word_set

REASONS = {
    "bracket": "the mention stands in brackets",
    "negated": "the caption denies the term or leaves it open",
    "open_question": "a question mark follows the term",
    "inside_compound": "a hyphen ties the span to another word",
    "not_whole_mention": "a longer mention holds the span",
    "not_a_mention": "the span names no concept",
    "stop_word": "the word is used as a verb or an adverb",
    "coreferent": "an abbreviation of the term is defined in the caption",
    "redundant": "the caption names the concept, or one above or below it, again",
    "other_type": "the concepts share no type",
    "same_concept": "the two terms may mean the same",
    "parent_child": "one term lies above the other",
    "containment": "one term contains the other",
    "already_in_caption": "the caption names the replacement already",
    "number": "one is singular, the other plural",
    "canonical_tell": "the replacement is a name that no caption uses",
    "shape": "the replacement was not seen in such a place of a sentence",
    "compound": "a neighbour makes the term part of a longer name",
    "legend": "the term explains a letter or a mark",
    "said_again": "another word of the caption repeats the term",
    "background": "the term belongs to the patient's story or to a general statement, not to the picture",
}

_TELL = re.compile(
    r"[(),\[\]]|\bNOS\b|\bentire\b|\bstructures?\b|\bunspecified\b|\b(?:device|disorder|finding)\)", re.IGNORECASE
)
# A word that is also a verb, an adverb or part of another name: words before and after it that make it one.
_USES = (
    ("left", "was were has have had patient patients he she they we it who", "the this that these those its his her"
     " their our a an in behind untreated to alone him"),
    ("right", "", "after before behind next away above below through at way angled angles"),
    ("lead", "was can may could will would which they to", "to into"),
    ("leads", "which that it this", "to into"),
    ("cold", "", "light water sweat and knife"),
    ("fall", "may can could will to", "off down"),
    ("back", "", "to into pressure"),
    ("stent", "to", ""),
    ("shunt", "to residual intracardiac arteriovenous portosystemic", "through across"),
    ("drainage", "lymph lymphatic venous", "area into via to"),
    ("burn", "to", ""),
    ("burns", "it he she", ""),
    ("drain", "to", "into"),
    ("drains", "which that it vein", "into to"),
    ("flow", "to", "void voids"),
    ("filter", "to", ""),
    ("growth", "", "plate plates factor hormone restriction retardation"),
    ("cage", "rib thoracic", ""),
    ("thyroid", "", "cartilage"),
    ("sheath", "rectus tendon nerve optic carotid synovial myelin", "of"),
    # Half of a word that stands apart: "poster anterior", "infero lateral".
    ("posterior", "antero antro infero supero latero medio", ""),
    ("anterior", "postero poster postro infero supero latero medio", ""),
    ("lateral", "postero poster antero infero supero medio dorso ventro", ""),
    ("medial", "postero poster antero infero supero latero dorso ventro", ""),
    ("superior", "postero antero latero medio", ""),
    ("inferior", "postero antero latero medio", ""),
    ("head", "arrow truncated caput femoral humeral radial metatarsal metacarpal of pancreatic fibular", "of"),
    ("neck", "femoral bladder aneurysm pancreatic gallbladder", "of"),
    ("body", "vertebral foreign gastric pancreatic of whole loose", "of"),
)  # fmt: skip
_VERB = {word: (word_set(before), word_set(after)) for word, before, after in _USES}

_INFINITIVE = re.compile(r"\bto\s+$", re.IGNORECASE)
_OBJECT = re.compile(r"\s+(?:the|a|an|this|these|that|those|its|his|her|their|any|all|each|both)\b", re.IGNORECASE)
"""Before and after a verb: "to bypass the instrument"."""
_BESIDE = re.compile(r"\s*\(([A-Za-z]{1,6})\d?[);,]")


def refuse_span(caption: str, start: int, end: int, mentions: Sequence[Mention]) -> str | None:
    """Return why a span is no mention that could be changed, or None.

    Args:
        caption: the whole caption.
        start: first code point.
        end: one past the last.
        mentions: all mentions of the caption.
    """
    if any(m.start == start and m.end == end for m in mentions):
        return None
    if any(m.start <= start and end <= m.end for m in mentions):
        return "not_whole_mention"
    return "inside_compound" if is_part_of_compound(caption, start, end) else "not_a_mention"


def refuse_mention(caption: str, mention: Mention, mentions: Sequence[Mention], terminology: Terminology) -> str | None:
    """Return why no item can be made from a mention, whatever the replacement, or None."""
    others = [m for m in mentions if m is not mention]
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("bracket", lambda: is_in_brackets(caption, mention.start, mention.end)),
        ("negated", lambda: is_negated(caption, mention.start, mention.end)),
        ("open_question", lambda: caption[mention.end : mention.end + 1] == "?"),
        ("stop_word", lambda: is_verb(caption, mention)),
        ("coreferent", lambda: _is_abbreviated(caption, mention)),
        ("not_whole_mention", lambda: any(_is_beside(caption, mention, m) for m in others)),
        ("redundant", lambda: _says_again(mention.concept_ids, others, terminology)),
    )
    return next((reason for reason, holds in checks if holds()), None)


def refuse_replacement(
    caption: str,
    mention: Mention,
    mentions: Sequence[Mention],
    form: str,
    concept_ids: Iterable[str],
    tuis: Iterable[str],
    terminology: Terminology,
) -> str | None:
    """Return why a form may not take a mention's place, or None.

    Args:
        caption: the whole caption.
        mention: the term to be changed.
        mentions: all mentions of the caption.
        form: the replacement as its terminology spells it.
        concept_ids: all concepts that the form names.
        tuis: all types of those concepts.
        terminology: relations between concepts.
    """
    ids = frozenset(concept_ids)
    return _unlike(mention, form, ids, tuis, terminology) or _said_already(
        caption, mention, mentions, form, ids, terminology
    )


def _unlike(
    mention: Mention, form: str, ids: frozenset[str], tuis: Iterable[str], terminology: Terminology
) -> str | None:
    """Return what keeps two terms from being exchanged in any caption, or None."""
    a, b = fold(mention.text), fold(form)
    tuis = frozenset(tuis)
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("canonical_tell", lambda: _TELL.search(form) is not None),
        ("same_concept", lambda: not ids.isdisjoint(mention.concept_ids)),
        ("other_type", lambda: set(in_benchmark(tuis)).isdisjoint(mention.tuis)),
        ("shape", lambda: "T082" in tuis and is_adjective(form) != is_adjective(mention.text)),
        ("number", lambda: is_plural(form) != is_plural(mention.text)),
        ("containment", lambda: a in b or b in a or fold(mention.alias) in b or b in fold(mention.alias)),
        ("parent_child", lambda: terminology.related(mention.concept_ids, ids)),
    )
    return next((reason for reason, holds in checks if holds()), None)


def _said_already(
    caption: str,
    mention: Mention,
    mentions: Sequence[Mention],
    form: str,
    ids: frozenset[str],
    terminology: Terminology,
) -> str | None:
    """Return what in the rest of the caption speaks of the replacement, or None."""
    others = [m for m in mentions if m is not mention]
    if any(not ids.isdisjoint(m.concept_ids) for m in others) or _has_word(caption, form):
        return "already_in_caption"
    # "Aorta" in a caption that names the ascending aorta is true whatever the rest says.
    return "redundant" if any(terminology.related(ids, m.concept_ids) for m in others) else None


def substitute(caption: str, mention: Mention, form: str) -> str:
    """Return the caption with a form in a mention's place: case, article and everything else kept whole.

    Example:
        >>> ct = Mention(2, 4, "CT", "CT", ("X1",), ("T060",))
        >>> substitute("A CT of the neck.", ct, "MRI")
        'An MRI of the neck.'
    """
    return "".join(replaced(caption, mention, form))


def replaced(caption: str, mention: Mention, form: str) -> tuple[str, str, str]:
    """Return the changed caption in three parts: before the term (its article fitted), the term, after it."""
    term = case.fitted(caption, mention.start, mention.end, mention.alias, form)
    return article.repaired(caption[: mention.start], term), term, caption[mention.end :]


def choose_form(forms: Sequence[str], mention: Mention) -> str | None:
    """Return the first form that has the number of a mention, or None."""
    return next((f for f in forms if is_plural(f) == is_plural(mention.text)), None)


def is_verb(caption: str, mention: Mention) -> bool:
    """Whether a word that is also a verb, an adverb or part of another name is used as such: "the patient left"."""
    if _INFINITIVE.search(caption[max(0, mention.start - 8) : mention.start]) and _OBJECT.match(caption[mention.end :]):
        return True
    neighbours = _VERB.get(fold(mention.text))
    if neighbours is None:
        return False
    last = re.search(r"([\w'\u2019]+)\s+$", caption[max(0, mention.start - 40) : mention.start])
    following = re.match(r"\s+([\w'\u2019]+)", caption[mention.end : mention.end + 40])
    return bool((last and last[1].lower() in neighbours[0]) or (following and following[1].lower() in neighbours[1]))


def _is_beside(caption: str, mention: Mention, other: Mention) -> bool:
    """Whether two procedures stand side by side, as one name that no terminology lists: "CT urogram"."""
    if "T060" not in mention.tuis or "T060" not in other.tuis:
        return False
    first, second = (mention, other) if mention.start < other.start else (other, mention)
    return caption[first.end : second.start] in (" ", "-", "/")


def _is_abbreviated(caption: str, mention: Mention) -> bool:
    """Whether a bracket beside the mention abbreviates it (or spells it out), so that both name one thing."""
    if "(" not in caption:
        return False
    beside = _BESIDE.match(caption, mention.end)
    if beside and _is_drawn_from(beside[1], mention.text):
        return True
    for pair in abbreviations.find(caption):
        long_end, short_end = pair.long_start + len(pair.long), pair.short_start + len(pair.short)
        inside_long = pair.long_start < mention.end and mention.start < long_end
        if inside_long or (pair.short_start < mention.end and mention.start < short_end):
            return True
    return False


def _is_drawn_from(letters: str, text: str) -> bool:
    """Whether letters abbreviate a text, or more than it: "Ao" for "aorta", "CDUS" beside "color Doppler"."""
    short, rest = fold(letters), iter(fold(text))
    return short[0] == fold(text)[0] and 2 * sum(letter in rest for letter in short) >= len(short)


def _says_again(ids: Iterable[str], others: Sequence[Mention], terminology: Terminology) -> bool:
    own = frozenset(ids)
    return any(own & set(m.concept_ids) or terminology.by_kind.related(own, m.concept_ids) for m in others)


def _has_word(caption: str, form: str) -> bool:
    """Whether a form stands in a caption as whole words, mention or not."""
    low, needle = fold(caption), fold(form)
    at = low.find(needle)
    while at >= 0:
        end = at + len(needle)
        if not (at and low[at - 1].isalnum()) and not (end < len(low) and low[end].isalnum()):
            return True
        at = low.find(needle, at + 1)
    return False
