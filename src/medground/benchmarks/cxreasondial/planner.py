"""A planner by rules: words for the task, verbs for the evidence type, the last request for what refers back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from medground.benchmarks.cxreasondial.plans import Plan, Step

#: What names a task in a query, most specific first.
_CUES: tuple[tuple[str, str], ...] = (
    ("descending_aorta_tortuous", r"tortuo\w+|curvature|winding|winds?\b(?! up)|serpentine|meander\w*|unfold\w+|six (?:edge )?points|course of (?:the )?descending"),
    ("ascending_aorta_enlargement", r"(?<!de)(?<!des)\bascending|heart-to-trachea line|border ?line"),
    ("descending_aorta_enlargement", r"\bdescending"),
    ("aortic_knob_enlargement", r"\bknob\w*|knuckle|aortic arch"),
    ("mediastinal_widening", r"mediastin\w+"),
    ("carina_angle", r"carin\w+|bronch\w+|bifurcation|subcarinal"),
    ("projection", r"\bap\b[^.?]{0,12}\bpa\b|\bpa\b[^.?]{0,12}\bap\b|projection|projected|scapula\w*|shoulder blades?"),
    ("rotation", r"rotat\w+|turned\b|clavic\w+|spinous|facing straight|twisted"),
    ("inspiration", r"inspir\w+|breath\w*|inhal\w+|\bribs?\b(?! cage)|hemidiaphragm|lung volume"),
    ("inclusion", r"inclu\w+ (?:of|complete)|inclusion|captured|lung coverage|coverage|cut off|all parts of (?:both|the) lungs?|whole lungs?|margins?|borders? of the (?:picture|film)|costophrenic|both lungs"),
    ("cardiomegaly", r"\bheart\b|cardiac|cardiomegaly|\bctr\b|cardiothoracic"),
    ("trachea_deviation", r"windpipe|trachea(?:l (?:dev|pos|shift|line)\w*)?\b"),
)  # fmt: skip
_PATTERNS = tuple((task, re.compile(pattern, re.I)) for task, pattern in _CUES)
_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\b(?:and then|also)\s*:", re.I)
#: Structures that are only a yardstick beside another task's own words.
_YARDSTICK = frozenset(("trachea_deviation", "cardiomegaly"))
_VISUAL = re.compile(
    r"\b(?:show|draw|mark|highlight|overlay|outline|point out|plot|annotate|sketch|trace|visuali[sz]e|paint|indicate on|"
    r"display|picture of|on the (?:image|picture|film)(?: what)?)\b",
    re.I,
)
#: Verbs of showing that only state where something stands.
_NOT_VISUAL = re.compile(
    r"\b(?:does (?:it|this|that|the (?:film|image|picture)) show|captured on|enlarged on|seen on|deviated on|wide on|on the film\?)",
    re.I,
)
_DIAGNOSTIC = re.compile(
    r"\b(?:is|are|was|were|does|did|do|how|what|which|give|tell|assess|check|say|judge|evaluate|report|state|conclusion|ratio|whether|compute|measure(?! )|"
    r"why|sure)\b",
    re.I,
)
_SET_ASIDE = re.compile(
    r"(?:i don't care about|never mind|not interested in|forget|leave (?:out|aside)|apart from|ignore|instead of|not the|other than)\b[^;.,?]*",
    re.I,
)
_BACK = re.compile(
    r"\b(?:that|this|it|there|them|both|same|again|sure|threshold|limit|criterion|cut-?off|other side|conclusion|value|rule|why|in words|picture|overlay|image)\b",
    re.I,
)
_THANKS = re.compile(r"^\W*(?:thanks|thank you|ok(?:ay)?|great|good|perfect|understood|i see|hello|hi)\b[^?]*$", re.I)
_QUALITY = re.compile(
    r"\b(?:image|film|technical|picture) quality\b|quality of the (?:film|image|picture)|technically", re.I
)
_AORTA = re.compile(r"\baorta\b|\baortic\b(?! (?:knob|knuckle|arch))", re.I)
QUALITY_TASKS = ("inclusion", "inspiration", "projection", "rotation")
AORTIC_TASKS = (
    "aortic_knob_enlargement",
    "ascending_aorta_enlargement",
    "descending_aorta_enlargement",
    "descending_aorta_tortuous",
)
#: Findings that no tool measures.
_NO_TOOL = re.compile(
    r"pneumothorax|effusion|pneumonia|nodule|mass\b|fracture|consolidation|atelectasis|edema|oedema|tube|pacemaker|hernia|emphysema|tumou?r|opacity",
    re.I,
)


def plan(query: str, before: Iterable[Step] = ()) -> Plan:
    """Plan one query.

    Args:
        query: the user's words.
        before: the steps of the last plan, for queries that refer back.

    >>> sorted(plan("Is the heart enlarged?"))
    [('cardiomegaly', 'diagnostic')]
    """
    text = _SET_ASIDE.sub(" ", query)
    last = sorted(before)
    if _THANKS.match(text):
        return frozenset()
    tasks = _tasks(text, last)
    if not tasks:
        return frozenset()
    return frozenset((task, kind) for task in tasks for kind in _kinds(text))


def _tasks(text: str, last: list[Step]) -> list[str]:
    strong: list[str] = []
    weak: list[str] = []
    for sentence in _SENTENCE.split(text):
        found = [task for task, pattern in _PATTERNS if pattern.search(sentence) is not None]
        if {"descending_aorta_tortuous", "descending_aorta_enlargement"} <= set(found) and not _asks_width(sentence):
            found.remove("descending_aorta_enlargement")
        for task in found:
            if task not in _YARDSTICK or _asked_itself(task, sentence):
                strong.append(task)
            elif len(found) == 1:
                weak.append(task)
    tasks = list(dict.fromkeys(strong or weak))
    if tasks:
        return tasks
    if _NO_TOOL.search(text):
        return []
    if _QUALITY.search(text):
        return list(QUALITY_TASKS)
    if _AORTA.search(text):
        return list(AORTIC_TASKS)
    return list(dict.fromkeys(task for task, _ in last)) if last and _BACK.search(text) else []


def _asks_width(text: str) -> bool:
    return re.search(r"\b(?:width|wide|broad|enlarg\w+|dilat\w+|ratio|calib\w+)\b", text, re.I) is not None


def _asked_itself(task: str, text: str) -> bool:
    """Whether a yardstick is asked for too: "heart size and tracheal position", not "compared with the trachea"."""
    if task == "cardiomegaly":
        return (
            re.search(
                r"heart size|size of the heart|is the heart|cardiac (?:size|silhouette)|cardiomegaly|\bctr\b|cardiothoracic|heart (?:enlarged|big)",
                text,
                re.I,
            )
            is not None
        )
    return (
        re.search(
            r"tracheal (?:dev|pos|shift)\w*|(?:side on which|direction of|position of|show) the (?:trachea|windpipe)|is the (?:trachea|windpipe)|trachea (?:pushed|deviat|central|in the mid)\w*|windpipe",
            text,
            re.I,
        )
        is not None
    )


def _kinds(text: str) -> list[str]:
    shows = [
        match for match in _VISUAL.finditer(_NOT_VISUAL.sub(" ", text)) if not match[0].lower().startswith("on the")
    ]
    if not shows:
        return ["diagnostic"]
    rest = " ".join(
        part
        for part in re.split(r"[?.;]|,? (?:and|then)(?: please)?(?= (?:draw|show|mark|plot|outline|highlight))|,", text)
        if not _VISUAL.search(part)
    )
    return ["diagnostic", "visual"] if _DIAGNOSTIC.search(rest) else ["visual"]
