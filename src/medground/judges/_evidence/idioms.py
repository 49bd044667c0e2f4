"""Figures of speech in the plain words that the lexicon knows, and turns of phrase that claim nothing, taken out."""

from __future__ import annotations

import re

_RANGE = (
    r"(?:(?:\w+ )?(?:normal|expected|reference|usual|accepted|acceptable|physiological?|conventional|standard)"
    r"(?: normal)? (?:range|limits?|interval|window|band|bounds?|values?|norms?|size|width|cali\w+|dimensions?)|norm|norms)(?: of| from| between| for \w+)?"
)
_STANDARD = (
    r"(?:normal|usual|expected|average|typical|customary|healthy|desired|adequate|acceptable|ideal|it (?:should|ought)(?: to)?(?: be)?|"
    r"(?:is |would be )?(?:seen|found) in (?:normal|healthy) \w+|(?:we|one|you|i)(?:'d| would| should)?(?: normally| usually)? "
    r"(?:want|like|expect|see|hope|accept|wish)\w*(?: to see| for)?)"
)
#: Some words of which one must stand in the sentence, the pattern, and the plain words that it stands for.
_PLAIN: tuple[tuple[str, str, str], ...] = (
    ("nope nah nay no not by certainly definitely", r"^(?:nope|nah|nay|no way|negatory|not really|not at all|certainly not|definitely not|by no means)\b[\s,.!:;-]*", "No, "),
    ("yep yeah yup aye affirm absol certain defin indeed course", r"^(?:yep|yeah|yup|aye|affirmative|absolutely|certainly|definitely|indeed|of course)\b(?! not)[\s,.!:;-]*", "Yes, "),
    ("doubt question only nothing surpris worr problem mention why anything if", r"\b(?:no doubt|without (?:a |any )?(?:doubt|question)|not only|nothing but|no question|not surprising\w*|no worries|"
     r"no problem(?=[,.!])|not to mention|why not|if (?:anything|you ask me|i may))\b,?", " "),
    ("wide broad across large big thick how", r"\b(?:times |\d )?as (?:wide|broad|large|big|thick) as\b|(?:\b(?:tracheas?|tracheal? widths?|widths?|times|diameters?) )"
     r"(?:wide|broad|across)\b|\bhow (?:wide|broad|large|big|much|many)\b", " "),
    ("what", r"\bwhat (?:is|are|was|would be|one would|we would|you would|i would|we|one)?(?: usually| normally| generally)? ?"
     r"(?:considered|deemed|regarded as|called|thought|take(?:n)? as|accept(?:ed)? as|judged|call)?(?: to be| as)? "
     rf"(?={_STANDARD})", " "),
    ("nothing anything no all order", r"\b(?:nothing|anything)(?: is| looks| seems| appears)?(?: \w+ly)? (?:wrong|amiss|unusual|abnormal|remarkable|"
     r"out of the ordinary|to (?:worry|report|flag|note|remark|see here|be concerned))(?: about| on| of| with)?|"
     r"\bno (?:cause|reason|grounds?) (?:for|of|to) (?:concern|worry|alarm|be concerned|suspect)\w*|\bno (?:concerns?|issues?|problems?|worries|"
     r"complaints?|red flags?)\b|\ball(?:'s| is| looks| seems)? (?:good|well|clear|fine|in order|right)\b(?! of)|\bin order\b", " normal "),
    ("not n't out beyond above below over under past exceed than", rf"\b(?:not|n't|outside|out|beyond|above|below|over|under|past|exceed\w*|(?:larg|small|wid|narrow|broad|great|bigg|steep|low|high)er than|less than|more than) (?:of )?"
     rf"(?:(?:the|its|our|a) )?(?:(?:upper|lower) )?(?:(?:end|edge|limit|bounds?) of )?(?:(?:the|its|our) )?{_RANGE}", " outrange, "),
    ("in between at near toward close", rf"\b(?:with|)in(?:side)? (?:(?:the|its|our|a) )?{_RANGE}|\b(?:between|at|near|towards?|close to) (?:the )?(?:upper|lower) "
     r"(?:limits?|end|border|bound) of (?:the )?normal(?: range)?|\bwithin limits\b|\binside the limits?\b", " normal, "),
    ("upper lower", r"\b(?:upper|lower) (?:end|edge|limit|border|bound) of (?:the )?normal\b", " limit "),
    (" as", r"\b(?:it|this|that|which)(?: \w+){0,2} (?:counts?|qualif\w+|classif\w+) as\b", "it is"),
    ("no little without", r"\b(?:no|little|not any|without) (?:reason|grounds?|basis|need|cause|indication|evidence|justification) (?:to|for|of) (?:call\w*|say\w*|speak\w*|assum\w*|"
     r"diagnos\w*|think\w*|consider\w*|suspect\w*|suggest\w*|describ\w*)(?: of| that)?", " not "),
    ("rather instead opposed just anything far opposite longer", r"\b(?:rather than|instead of|as opposed to|not just|anything but|far from(?: being)?|the opposite of|no(?:t| )longer)\b", " not "),
    ("non", r"\bnon-?(?=(?:rotated|enlarged|dilated|widened|tortuous|deviated|displaced|splayed|prominent|aneurysmal)\b)", "not "),
    ("none", r"\bnone(?=\s*\()", " "),
    ("fail", r"\b(?:fails?|failed|failing) to (?:be|show|reach|meet|qualify)\b", "not reach"),
)  # fmt: skip
_COMPILED = tuple((tuple(triggers.split()), re.compile(pattern, re.I), words) for triggers, pattern, words in _PLAIN)


def plain(sentence: str) -> str:
    """Say a sentence in plain words.

    >>> plain("Nope, nothing wrong with that angle")
    'No, normal that angle'
    """
    low = sentence.lower()
    for triggers, pattern, words in _COMPILED:
        if any(trigger in low for trigger in triggers):
            sentence = pattern.sub(words, sentence)
    return " ".join(sentence.split())
