"""Ten published rules for yes and no, what each is known to misread, and that our reader does not.

The rules are written out here as their authors' code has them; "gold" is the right answer where a rule looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from medground.readers.base import Question
from medground.readers.yes_no import YesNo

Rule = Callable[[str, str], str]


def pope(reply: str, _gold: str) -> str:
    """First sentence, commas dropped, split at blanks; "No", "not" or "no" among the words is no, all else is yes."""
    words = reply.split(".", maxsplit=1)[0].replace(",", "").split(" ")
    return "no" if {"No", "not", "no"} & set(words) else "yes"


def medheval(reply: str, gold: str) -> str:
    """POPE's, but an empty reply is a state of its own."""
    return "none" if not reply.strip() else pope(reply, gold)


def vcd(reply: str, gold: str) -> str:
    """The gold word as a substring of the reply in lower case."""
    other = "no" if gold == "yes" else "yes"
    return gold if gold in reply.lower() else other


def probmed(reply: str, gold: str) -> str:
    """ "Yes" or "No", case as it is, as a substring, by the gold."""
    other = "no" if gold == "yes" else "yes"
    return gold if gold.capitalize() in reply else other


def llava_med_closed(reply: str, gold: str) -> str:
    """The gold answer occurs in the reply."""
    return gold if gold in reply.lower() else ("no" if gold == "yes" else "yes")


def lmms_eval_pope(reply: str, _gold: str) -> str:
    """Equal to the word after stripping and lower case."""
    text = reply.strip().lower()
    return text if text in ("yes", "no") else "none"


def lmms_eval_slake(reply: str, _gold: str) -> str:
    """One of a few words exactly, punctuation stripped."""
    text = re.sub(r"[^\w\s]", "", reply).strip().lower()
    return "yes" if text in ("yes", "yeah", "yep", "true") else "no" if text in ("no", "nope", "false") else "none"


def vlmevalkit(reply: str, _gold: str) -> str:
    """The words yes and no: one of them alone decides."""
    words = set(re.split(r"\W+", reply.lower()))
    return "yes" if "yes" in words and "no" not in words else "no" if "no" in words and "yes" not in words else "none"


def cares(reply: str, gold: str) -> str:
    """Phrases of declining come first, then POPE's rule."""
    phrases = (
        "sorry",
        "apologize",
        "cannot answer",
        "can't answer",
        "cannot provide",
        "not appropriate",
        "not visible",
    )
    return "none" if any(phrase in reply.lower() for phrase in phrases) else pope(reply, gold)


def first_word(reply: str, _gold: str) -> str:
    """The first word that is a yes or a no, wherever it stands."""
    found = re.search(r"\b(yes|no)\b", reply.lower())
    return found[1] if found else "none"


KNOWN: list[tuple[Rule, str, str, str]] = [
    (pope, "I'm sorry, but I can't analyse medical images.", "no", "refusal"),
    (pope, "Pleural effusion is absent.", "no", "no"),
    (pope, "NO", "no", "no"),
    (pope, "Yes, an effusion, though not a severe one.", "yes", "yes"),
    (pope, "", "no", "unreadable"),
    (medheval, "Without effusion.", "no", "no"),
    (medheval, "No\nthe left lower lung is clear.", "no", "no"),
    (vcd, "The costophrenic angle is blunted: an effusion, not a normal finding.", "no", "yes"),
    (vcd, "I do not know.", "no", "uncertain"),
    (probmed, "Nodular opacities and a pleural effusion are present.", "no", "yes"),
    (probmed, "yes, there is an effusion.", "yes", "yes"),
    (probmed, "Not possible to tell from this picture.", "no", "uncertain"),
    (llava_med_closed, "There is a nodule-like effusion; it is definitely present.", "no", "yes"),
    (lmms_eval_pope, "Yes.", "yes", "yes"),
    (lmms_eval_pope, "No, there is no effusion.", "no", "no"),
    (lmms_eval_slake, "Yes, there is a small pleural effusion.", "yes", "yes"),
    (lmms_eval_slake, "There is no pleural effusion.", "no", "no"),
    (vlmevalkit, "Yes, there is no effusion on the right, but there is one in the left lower lung.", "yes", "yes"),
    (vlmevalkit, "No problem, I can help! An effusion is present in the left lower lung.", "yes", "yes"),
    (cares, "An effusion is not visible.", "no", "no"),
    (cares, "Sorry for the delay: no effusion is seen.", "no", "no"),
    (first_word, "It is no wonder: the left lower lung shows a pleural effusion.", "yes", "yes"),
    (first_word, "The answer is not yes. There is no effusion.", "no", "no"),
]


@pytest.mark.parametrize(("rule", "reply", "gold", "right"), KNOWN, ids=lambda v: getattr(v, "__name__", None))
def test_what_a_published_rule_misreads_is_read(rule: Rule, reply: str, gold: str, right: str) -> None:
    assert rule(reply, gold) != right
    reading = YesNo().read(Question("", "pleural effusion", "left lower lung"), reply)
    assert (reading.value or reading.outcome) == right


def test_there_are_ten() -> None:
    assert len({rule.__name__ for rule, *_ in KNOWN}) == 10
