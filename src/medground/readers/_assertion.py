"""Whether a clause asserts, denies or leaves open what it mentions.

In the manner of NegEx and ConText (Chapman et al. 2001; Harkema et al. 2009), with two additions. A denial of a whole
statement ("it is not true that", "cannot be claimed") turns what it holds around, so "not true that there is no ..."
asserts. And phrases that only look like a denial ("no change in", "no doubt", "nothing apart from") are set aside.
"""

from __future__ import annotations

import re
from typing import Literal

Polarity = Literal["asserted", "denied", "open", "none"]

_SEEN = (
    r"(?:seen|visible|visuali[sz]ed|identified|demonstrated|present|evident|detected|appreciated|noted|shown|found"
    r"|observed|apparent|depicted|confirmed|recogni[sz]ed|there)"
)
_ADVERB = r"(?:\s+(?:clearly|definitely|obviously|convincingly|reliably|really|currently|yet|even|clearly|to be|be))*"
_NOT = r"(?:not|n't|never|cannot|can not)"
_LARGELY = r"(?:significant|significantly|interval|relevant|appreciable|major|substantial|obvious|great|much)"

# Looks like a denial and is none: what follows is taken to be there.
_NO_DENIAL = [
    rf"\bno\b(?:\s+{_LARGELY})*\s+(?:change|changes|progression|regression|improvement|worsening|difference"
    rf"|growth|resolution|clearing)\b",
    r"\bno(?:t)?\s+(?:doubt|question|mistaking)\b(?:\s+that)?|\bwithout(?: a| any)? doubt\b|\bundoubtedly\b",
    r"\bnot\s+(?:only|just|merely|simply)\b",
    r"\b(?:no|nothing)\b[^.;]{0,40}?\b(?:other than|apart from|except(?: for)?|besides|aside from)\b",
    r"\bnot\s+(?:without|absent|free of|excluded)\b|\bnot\s+(?:normal|clear|unremarkable)\b",
    r"\b(?:cannot|can't|can not|could not|couldn't)\s+(?:be\s+)?(?:deny|denied|overlooked|missed)\b",
    rf"\b{_NOT}(?:\s+yet)?(?:\s+been)?\s+(?:resolved|cleared|disappeared|gone|changed|improved)\b|\bunchanged\b",
    r"\bnot\s+(?:severe|large|extensive|massive|marked|extending|small)\b",
    r"\bno\s+other\b|\bnot medical advice\b",
]
_OPEN_BEFORE = [
    r"\b(?:may|might|could|can)\b(?!\s+(?:see|identify|confirm|be seen|be identified|be appreciated|clearly|also see))",
    r"\bconsider(?:ed|ing)?\b(?! normal)|\bpossib(?:le|ly|ility(?: of)?)\b|\bperhaps\b|\bmaybe\b"
    r"|\bquestionable\b|\bquery\b|\bdoubtful\b|\bequivocal\b",
    r"\b(?:unclear|uncertain|unsure|not sure|not clear|not certain|unknown|undetermined|debatable)\b",
    r"\bwhether\b|\bif there (?:is|are)\b",
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to|not able to|difficult to|hard to|not possible to"
    r"|impossible to)\s+(?:\w+ly\s+)?(?:be\s+)?(?:exclude|rule out|say|tell|determine|assess|judge|evaluate|confirm"
    r"|be sure|distinguish|differentiate)\b",
    r"\b(?:presence or absence|to confirm|to exclude|to rule out)\b|\bdifferential\b",
    r"\b(?:versus|vs\.?|as likely as)\b|\bborderline\b",
]
_OPEN_AFTER = [
    rf"\b{_NOT}\s+(?:be\s+)?(?:\w+ly\s+)?(?:excluded|ruled out|determined|assessed|judged|evaluated)\b",
    r"\b(?:cannot|can't|can not|could not)\s+be\s+(?:\w+ly\s+)?(?:excluded|ruled out|determined|assessed|judged"
    r"|evaluated|confirmed|denied with certainty)\b",
    r"\bneither\s+(?:confirmed|excluded|proven)\s+nor\b",
    r"\b(?:is|are|remains?|seems?|appears?)\s+(?:also\s+)?(?:possible|questionable|uncertain|unclear|equivocal"
    r"|indeterminate|doubtful|debatable)\b",
    r"\b(?:should|must|can|could|may|might) be considered\b|\b(?:is|are) (?:a )?consideration\b",
    r"\b(?:may|might|could)\s+(?:also\s+)?be\s+(?:present|there|possible)\b|\bas likely as not\b|\bversus\b|\bvs\b|\?",
]
_DENIAL_BEFORE = [
    r"\b(?:no|nor|nil|without|zero|neither|none of|lacks?|lacking|free of|free from|clear of|devoid of)\b",
    r"\b(?:negative|negativity) for\b|\babsence of\b|\b(?:resolution|clearing|disappearance) of\b"
    r"|\brather than\b|\binstead of\b|\bargues? against\b|\bagainst\b",
    r"\b(?:denies|deny|excludes?|excluding|rules? out|ruling out|fails? to (?:show|demonstrate|reveal))\b",
    rf"\b(?:not|n't|never|cannot|can not)\b(?!{_ADVERB}\s+{_SEEN}\b)|n't\b(?!{_ADVERB}\s+{_SEEN}\b)",
    r"\b(?:unlikely|improbable)(?: to (?:be|represent|have))?\b",
    r"\bnormal\b(?=\W+(?:heart|cardiac|aort|pulmonary arter))",
]
_DENIAL_AFTER = [
    rf"\b(?:not|cannot|can not|never|no longer)\b{_ADVERB}\s+{_SEEN}\b|n't\b{_ADVERB}\s+{_SEEN}\b",
    r"\b(?:is|are|was|were|remains?|be)\s+(?:\w+ly\s+)?(?:absent|excluded|ruled out|unlikely|improbable|negative)\b",
    r"\b(?:ruled out|excluded|has resolved|have resolved|resolved|has cleared|has disappeared|is gone|no longer)\b",
    r"\b(?:is|are|seems?|appears?)\s+(?:\w+\s+)?(?:low|slim|negligible|remote|minimal)\W*$",
    r"[:,]?\s*\b(?:absent|none|negative|nil)\b\W*$",
    r"\b(?:and|but)\s+none\b(?:\s+is|\s+are)?(?:\s+\w+)?\W*$",
]
# Denies a statement, not a thing.
_REVERSAL_BEFORE = [
    r"\b(?:not|n't)\s+(?:true|the case|correct|right)\s+(?:that|to say)\b|\b(?:false|wrong|untrue|incorrect) that\b",
    r"\bdo(?:es)?(?:n't| not)\s+(?:think|believe|suspect)\b",
]
_REVERSAL_AFTER = [r"\b(?:cannot|can't|can not|could not)\s+be\s+(?:claimed|stated|asserted|maintained)\b"]
# Speaks of a finding without saying anything about this picture.
_NO_CLAIM_BEFORE = [
    r"\b(?:history of|family history|risk of|check(?:ed)? for|screen(?:ed|ing)? for|look(?:ed|ing)? for|asked about"
    r"|asks? (?:about|if|whether)|signs of .{0,30} include|defined as|previous|prior|treated for|question is)\b",
    r"\b(?:to|we|i) (?:decide|determine|assess|judge|evaluate|check|see|find out|establish|answer) (?:if|whether)\b",
    r"\b(?:to|for) (?:diagnose|diagnosing|detect|detecting)\b|^\W*if\b|\b(?:once|typically|usually|often|generally)\b",
]


def _any(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_COMPILED = {
    "no_denial": _any(_NO_DENIAL),
    "open_before": _any(_OPEN_BEFORE),
    "open_after": _any(_OPEN_AFTER),
    "denial_before": _any(_DENIAL_BEFORE),
    "denial_after": _any(_DENIAL_AFTER),
    "reversal_before": _any(_REVERSAL_BEFORE),
    "reversal_after": _any(_REVERSAL_AFTER),
    "no_claim": _any(_NO_CLAIM_BEFORE),
}
# A finite verb and a comma between a denial and a mention: the denial was of something else.
_NEW_STATEMENT = re.compile(r"\b(?:is|are|was|were|has|have|shows?|remains?)\b[^,]*,|\b(?:positive for|presence of)\b")
SOURCES = {name: pattern.pattern for name, pattern in _COMPILED.items()}


def polarity(clause: str, start: int, end: int) -> Polarity:
    """Return what a clause says about a mention in it.

    Args:
        clause: folded text.
        start: where the mention starts in it.
        end: where it ends.

    Returns:
        ``asserted``, ``denied``, ``open`` (an even hedge), or ``none``: nothing is said about this picture.
    """
    if clause.rstrip().endswith("?"):
        return "none"
    plain = _COMPILED["no_denial"].sub(lambda match: " " * len(match[0]), clause)
    # A denial may stand inside a mention of several words: "the heart is not enlarged".
    reversals = sum(len(_COMPILED[name].findall(plain)) for name in ("reversal_before", "reversal_after"))
    if _COMPILED["no_claim"].search(plain[:start]):
        return "none"
    if _open(plain, start, end):
        return "open"
    for name in ("reversal_before", "reversal_after"):
        plain = _COMPILED[name].sub(lambda match: " " * len(match[0]), plain)
    before, after = plain[:end], plain[end:]
    denials = [match for match in _COMPILED["denial_before"].finditer(before) if _reaches(before[match.end() : start])]
    denied = bool(denials) or _after("denial_after", after)
    return "denied" if denied != bool(reversals % 2) else "asserted"


def _open(clause: str, start: int, end: int) -> bool:
    return bool(_COMPILED["open_before"].search(clause[:start]) or _after("open_after", clause[end:]))


def _after(cues: str, words: str) -> bool:
    """Whether a cue after a mention reaches back to it: over a list, or a phrase between commas, not over one comma."""
    for match in _COMPILED[cues].finditer(words):
        between = words[: match.start()]
        if between.count(",") != 1 or re.search(r"\b(?:and|or|nor)\b", between) or not between.strip(" ,"):
            return True
    return False


def _reaches(between: str) -> bool:
    """Whether a denial reaches over these words to a mention."""
    return _NEW_STATEMENT.search(between) is None
