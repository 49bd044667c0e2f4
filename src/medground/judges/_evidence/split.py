"""From clean text to clauses, each with the task that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medground.judges._evidence.lexicon import foreign, lexicon

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|\s*\n+\s*")
_ABBREVIATION = re.compile(r"\b(approx|no|vs|i\.e|e\.g|dr|ca|fig|resp)\.(?=\s)", re.I)
#: Where one clause ends and another begins.
_CLAUSE = re.compile(
    r"(?:\s*[,;:]\s+|\s+[-/]\s+|\s*\(|\)\s*|\s*\.{3}\s*|\s+=>\s+|\s+)(?=(?:so|hence|thus|therefore|but|yet|though|although|however|"
    r"which|because|since|while|whereas|where|as the|i'd|i would|it is|it's|meaning|in other words|and)\b)|\s*[,;:]\s+|\s+-\s+|"
    r"\s*\.{3}\s*|\s+(?=so\b|hence\b|thus\b|therefore\b|but\b|yet\b|which\b|because\b)",
    re.I,
)
#: A topic before a colon claims nothing: "Rotation: ratio 0.81".
_HEADING = re.compile(
    r"^(?:regarding[^:]{0,60}|concerning[^:]{0,60}|as for[^:]{0,60}|(?:[a-z]+ ){0,3}(?:rotation|widening|enlargement|deviation|inclusion|tortuosity|"
    r"cardiomegaly|inspiration|projection|view))\s*:\s*(?!(?:yes|no|none|absent|present|negative|positive)\b)",
    re.I,
)
#: Sentences that say nothing about this measurement: questions, earlier turns, other patients, courtesy.
_PAST = re.compile(
    r"\b(?:earlier|previous(?:ly)?|before that|last (?:time|turn)|at first(?: glance)?|initially|you (?:mentioned|said|wrote|told)|"
    r"i (?:told|said|wrote|mentioned) (?:you )?|another patient|other patient|prior (?:film|study)|please forget|"
    r"was expecting)\b",
    re.I,
)
_COURTESY = re.compile(
    r"^(?:thank you|thanks|let me know|clinical correlation|please (?:consult|see|note)|great question|sure\b|i understand)[^.;]*$",
    re.I,
)


def sentences(text: str) -> list[str]:
    """Split into sentences, without questions, courtesy and what is said of the past.

    >>> sentences("You said 2.8 before; I get 1.72. Is that fine?")
    ['I get 1.72.']
    """
    if _ABBREVIATION.search(text):
        text = _ABBREVIATION.sub(r"\1", text)
    out = []
    for raw in _SENTENCE.split(text):
        sentence = _HEADING.sub(_topic, raw.strip())
        if not sentence or sentence.endswith("?") or _COURTESY.match(sentence):
            continue
        if _PAST.search(sentence):
            sentence = ", ".join(part for part in _CLAUSE.split(sentence) if part and not _PAST.search(part))
        if sentence:
            out.append(sentence)
    return out


def _topic(match: re.Match[str]) -> str:
    """Keep the words of a heading as a topic, without their judging forms."""
    return re.sub(r"(?:rotat|widen|enlarg|deviat|inclu|tortuo)\w+", _bare_topic, match[0], flags=re.I)


def _bare_topic(match: re.Match[str]) -> str:
    return {"rot": "clavicles", "inc": "margins", "tor": "curvature"}.get(match[0][:3].lower(), "")


def clauses(sentence: str) -> list[str]:
    """Split a sentence where it turns: commas, so, but, which, because.

    >>> clauses("It is 0.57, so the heart is enlarged.")
    ['It is 0.57', 'so the heart is enlarged.']
    """
    return [part for part in (piece.strip() for piece in _CLAUSE.split(sentence)) if part]


def by_task(text: str, tasks: Sequence[str]) -> dict[str, list[str]]:
    """Give every sentence to the task that it names, or to the last one named; other tasks' sentences to none."""
    out: dict[str, list[str]] = {task: [] for task in tasks}
    if len(tasks) == 1:
        out[tasks[0]] = _of_one(sentences(text), tasks[0])
        return out
    last: str | None = None
    for sentence in sentences(text):
        pieces: list[tuple[str | None, str]] = []
        for piece in _pieces(sentence):
            named = _named(piece, tasks)
            last = named or last
            pieces.append((named or last, piece))
        first = next((task for task, _ in pieces if task is not None), None)
        for task, piece in pieces:
            owner = task or first
            if owner is not None and (_named(piece, tasks) or not foreign(owner).search(piece)):
                if out[owner] and pieces and piece is not pieces[0][1] and pieces[0][0] == owner:
                    out[owner][-1] += ", " + piece
                else:
                    out[owner].append(piece)
    return out


def _pieces(sentence: str) -> list[str]:
    return [part for part in (p.strip() for p in re.split(r"[,;:]\s+|\band\b|\bbut\b", sentence)) if part]


def _named(text: str, tasks: Sequence[str]) -> str | None:
    hits = [(match.start(), task) for task in tasks if (match := lexicon(task).cue.search(text)) is not None]
    if not hits:
        return None
    specific = [hit for hit in hits if hit[1] == "descending_aorta_tortuous"]
    return (specific or sorted(hits))[0][1]


def _of_one(all_sentences: list[str], task: str) -> list[str]:
    out, own = [], True
    cue, other = lexicon(task).cue, foreign(task)
    for sentence in all_sentences:
        named = cue.search(sentence) is not None
        if named:
            own = True
        elif other.search(sentence):
            own = False
        if own:
            out.append(sentence if not other.search(sentence) else _without(sentence, cue, other))
    return [sentence for sentence in out if sentence]


def _without(sentence: str, cue: re.Pattern[str], other: re.Pattern[str]) -> str:
    """Drop the clauses that name another task alone."""
    kept = [part for part in re.split(r"(?<=[,;:])\s+", sentence) if cue.search(part) or not other.search(part)]
    return " ".join(kept)
