"""From clean text to clauses, each with the task that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from medground.judges._evidence.lexicon import foreign, lexicon
from medground.judges._evidence.numbers import numbers
from medground.judges._evidence.words import Words, small

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|\s*\n+\s*")
_ABBREVIATION = re.compile(r"\b(approx|no|vs|i\.e|e\.g|dr|ca|fig|resp)\.(?=\s)", re.I)
#: Where one clause ends and another begins.
_CLAUSE = re.compile(
    r"(?:\s*[,;:]\s+|\s+[-/]\s+|\s*\(|\)\s*|\s*\.{3}\s*|\s+=>\s+|(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bif)(?<!\bwhether)(?<!\bwhen)(?<!\bthat)\s+)(?=(?:so|hence|thus|therefore|but|yet|though|although|however|"
    r"which|because|since|while|whereas|where|as the|i'd|i would|it is|it's|meaning|in other words|and)\b)|\s*[,;:]\s+|\s+-\s+|"
    r"\s*\.{3}\s*|(?<!\bis)(?<!\bare)(?<!\bwas)\s+(?=so\b|hence\b|thus\b|therefore\b|but\b|yet\b|which\b|because\b)",
)
#: A topic before a colon claims nothing: "Rotation: ratio 0.81".
_HEADING = re.compile(
    r"^(?:regarding[^:]{0,60}|concerning[^:]{0,60}|as for[^:]{0,60}|(?:[a-z]+ ){0,3}(?:rotation|widening|enlargement|deviation|inclusion|tortuosity|"
    r"cardiomegaly|inspiration|projection|view))\s*:\s*(?!(?:yes|no|none|absent|present|negative|positive)\b)",
    re.I,
)
#: A finding answered with one word: "Rotation: yes".
_ANSWERED = re.compile(
    r"^((?:[a-z]+ ){0,3}(?:rotation|widening|enlargement|deviation|tortuosity|cardiomegaly))\s*[:=]\s*"
    r"(yes|present|positive|no|none|absent|negative|not present|not seen)\b",
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
        sentence = _HEADING.sub(_topic, _ANSWERED.sub(_asserted, raw.strip()))
        if not sentence or sentence.endswith("?") or _COURTESY.match(sentence):
            continue
        if _PAST.search(sentence):
            sentence = ", ".join(part for part in clauses(sentence) if not _PAST.search(part))
        if sentence:
            out.append(sentence)
    return out


def _asserted(match: re.Match[str]) -> str:
    return f"there is {'' if match[2].lower() in ('yes', 'present', 'positive') else 'no '}{match[1]}"


def _topic(match: re.Match[str]) -> str:
    """Keep the words of a heading as a topic, without their judging forms."""
    return re.sub(r"(?:rotat|widen|enlarg|deviat|inclu|tortuo|cardiomeg)\w+", _bare_topic, match[0], flags=re.I)


def _bare_topic(match: re.Match[str]) -> str:
    return {"rot": "clavicles", "inc": "margins", "tor": "curvature", "car": "heart"}.get(match[0][:3].lower(), "")


def clauses(sentence: str) -> list[str]:
    """Split a sentence where it turns: commas, so, but, which, because.

    >>> clauses("It is 0.57, so the heart is enlarged.")
    ['It is 0.57', 'so the heart is enlarged.']
    """
    return list(_clauses(sentence))


@lru_cache(maxsize=4096)
def _clauses(sentence: str) -> tuple[str, ...]:
    at, out = 0, []
    for match in _CLAUSE.finditer(small(sentence)):
        out.append(sentence[at : match.start()].strip())
        at = match.end()
    out.append(sentence[at:].strip())
    return tuple(part for part in out if part)


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
        for task in _sharing(sentence, pieces, tasks):
            out[task] = [part for part in out[task] if part not in sentence] + [sentence]
    return out


def _sharing(sentence: str, pieces: Sequence[tuple[str | None, str]], tasks: Sequence[str]) -> list[str]:
    """The tasks that a sentence names without a word of their own, where its predicate is said of several.

    "Heart and knob are normal", "neither the heart nor the knob is enlarged", "dilated and tortuous descending aorta".
    """
    named = [task for task in tasks if _named(sentence, (task,)) is not None]
    if len(named) < 2 or numbers(sentence):
        return []
    own = {task: " ".join(piece for owner, piece in pieces if owner == task) for task in named}
    return [task for task in named if lexicon(task).terms.search(own[task]) is None]


def _pieces(sentence: str) -> list[str]:
    return [
        part
        for part in (
            p.strip() for p in re.split(r"[,;:]\s+|\b(?:and|but|whereas|while|although|though|yet|however)\b", sentence)
        )
        if part
    ]


#: What names the projection where several things are asked: "it is an AP film", not "on AP films".
_VIEW = re.compile(r"\b(?i:is|was|as|it's)\s+(?:\w+ly )?(?:an? )?(?:AP|PA)\b")


def _named(text: str, tasks: Sequence[str]) -> str | None:
    hits = [(match.start(), task) for task in tasks if (match := lexicon(task).cue.search(text)) is not None]
    if "projection" in tasks and (match := _VIEW.search(text)) is not None:
        hits.append((match.start(), "projection"))
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


def _without(sentence: str, cue: Words, other: Words) -> str:
    """Drop the clauses that name another task alone."""
    kept = [part for part in re.split(r"(?<=[,;:])\s+", sentence) if cue.search(part) or not other.search(part)]
    return " ".join(kept)
