"""CXReasonBench, the predecessor, over the same evidence: one diagnostic question reasoned through in stages.

Direct path: decision, criterion, (refined criterion), body parts, measurement, final decision with its value. A path
stops at the first stage that is not right. A model that does not know at the first stage, or declines the refined
criterion, is guided: body parts, measurement with its points drawn, final decision. One that passes the guided path is
evaluated again: the direct path on another case, with the guidance before it. Published codes of a stage: right 1,
wrong 0, does not know -1, no answer -2. The wording of questions and options is medground's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from medground.benchmarks.cxreasondial.scores import Share
from medground.benchmarks.cxreasondial.wording import WORDS
from medground.judges.base import Evidence, Request
from medground.tools import RULES, TASKS

Path = Literal["direct", "guided", "again"]
PATHS: tuple[Path, ...] = get_args(Path)
RIGHT, WRONG, UNKNOWN, NO_ANSWER = 1, 0, -1, -2
DONT_KNOW = "I don't know"
#: Tasks whose criterion is asked for in two steps.
REFINED = frozenset(
    (
        "inspiration", "projection", "mediastinal_widening", "aortic_knob_enlargement", "ascending_aorta_enlargement",
        "descending_aorta_enlargement", "descending_aorta_tortuous",
    )
)  # fmt: skip
#: Structures that a task is measured on.
PARTS: dict[str, str] = {
    "inclusion": "both lungs and the edge of the picture",
    "inspiration": "right posterior ribs and right hemidiaphragm",
    "rotation": "medial clavicle ends and spinous processes",
    "projection": "both scapulae and both lungs",
    "cardiomegaly": "heart and both lungs",
    "mediastinal_widening": "upper mediastinum and both lungs",
    "carina_angle": "carina and main bronchi",
    "trachea_deviation": "trachea and vertebrae",
    "aortic_knob_enlargement": "aortic arch and trachea",
    "ascending_aorta_enlargement": "ascending aorta, right heart border and trachea",
    "descending_aorta_enlargement": "descending aorta and trachea",
    "descending_aorta_tortuous": "left edge of the descending aorta",
}
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Question:
    """One stage: what is asked, what is offered, and which option is right."""

    stage: str
    text: str
    options: tuple[str, ...]
    answer: int

    def prompt(self) -> str:
        """The question with its lettered options."""
        letters = (f"({chr(65 + i)}) {option}" for i, option in enumerate(self.options))
        return "\n".join((self.text, *letters))


@dataclass(frozen=True)
class Walk:
    """How one path went.

    Attributes:
        passed: stages that were right, in order.
        codes: code of every stage that was asked.
        stated: the one number of the final answer; None where there is none, or several.
        chosen: the range that was chosen at the measurement stage, low and high.
    """

    task: str
    path: Path
    passed: tuple[str, ...]
    codes: tuple[tuple[str, int], ...]
    stated: float | None = None
    chosen: tuple[float, float] | None = None

    @property
    def depth(self) -> int:
        """Stages passed of the four that are numbered (three if guided): the first decision is none of them.

        A criterion that is asked for in two steps counts once both are right.
        """
        needed = "refined criterion" if self.task in REFINED else "criterion"
        return sum(stage in self.passed for stage in (needed, "body part", "measurement", "final"))

    @property
    def completed(self) -> bool:
        """Whether the final decision was reached and is right."""
        return ("final", RIGHT) in self.codes

    @property
    def aligned(self) -> bool | None:
        """Whether the stated value lies in the chosen range; None where no range was chosen or no value asked for."""
        if self.chosen is None or self.codes[-1][0] != "final":
            return None
        return self.stated is not None and self.chosen[0] <= self.stated <= self.chosen[1]


def questions(request: Request, path: Path, seed: int = 0) -> list[Question]:
    """Return the stages of a path; the order of options is drawn by seed, task and path."""
    rng = np.random.default_rng([seed, TASKS.index(request.task), PATHS.index(path)])
    evidence, task = request.evidence, request.task
    body = _choice(rng, "body part", "Which structures do you need?", PARTS[task], _others(rng, task, PARTS))
    measured = _measurement(rng, request)
    which = "value of the right side" if task == "projection" else "value"
    final = Question("final", f"{_decision(task)} State the {which}, too.", ("Yes", "No"), _yes(evidence))
    if path == "guided":
        return [q for q in (body, measured, final) if q is not None]
    quantities = {name: rule.quantity for name, rule in RULES.items()}
    first = Question("init", _decision(task), ("Yes", "No", DONT_KNOW), _yes(evidence))
    criterion = _choice(rng, "criterion", "What decides it?", quantities[task], _others(rng, task, quantities))
    refined = _refined(rng, request) if task in REFINED else None
    return [q for q in (first, criterion, refined, body, measured, final) if q is not None]


def walk(request: Request, path: Path, seed: int = 0) -> Generator[str, str, Walk]:
    """Ask stage after stage; yields a prompt, is sent the reply, stops at the first stage that is not right."""
    passed: list[str] = []
    codes: list[tuple[str, int]] = []
    stated, chosen = None, None
    for question in questions(request, path, seed):
        reply = yield question.prompt()
        picked = pick(reply, question.options)
        code = picked if isinstance(picked, int) and picked < 0 else int(picked == question.answer)
        if question.options[picked] == DONT_KNOW and picked >= 0:
            code = UNKNOWN
        codes.append((question.stage, code))
        if question.stage == "measurement" and picked >= 0:
            chosen = _range(question.options[picked])
        if question.stage == "final":
            numbers = {float(text) for text in _NUMBER.findall(re.sub(r"\([A-H]\)", " ", reply))}
            stated = numbers.pop() if len(numbers) == 1 else None
        if code != RIGHT:
            break
        passed.append(question.stage)
    return Walk(request.task, path, tuple(passed), tuple(codes), stated, chosen)


def guided_next(direct: Walk) -> bool:
    """Whether a direct path leads to the guided one: not known at the start, or the refined criterion declined."""
    last = direct.codes[-1] if direct.codes else ("", WRONG)
    return last == ("init", UNKNOWN) or (last[0] == "refined criterion" and last[1] in (UNKNOWN, NO_ANSWER))


def seed_of(case: str, seed: int) -> int:
    """The seed of a case's options: their order tells nothing from one case to the next."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{case}".encode()).digest()[:8], "big")


def pick(reply: str, options: Sequence[str]) -> int:
    """Return the option that a reply chooses; -1 if it does not know, -2 if no single option can be read."""
    text = reply.strip()
    letters = {ord(m[1].upper()) - 65 for m in re.finditer(r"\(([A-Ha-h])\)|^([A-H])[.):]?(?:\s|$)", text) if m[1]}
    letters |= {ord(m[1]) - 65 for m in re.finditer(r"^(?:answer\s*:?\s*)?([A-H])[.):]?(?:\s|$)", text)}
    letters = {letter for letter in letters if letter < len(options)}
    if len(letters) == 1:
        return letters.pop()
    low = text.lower()
    if re.search(r"\b(?:don't|do not|cannot|can't)\b[^.]{0,20}\b(?:know|tell|say|determine)\b", low):
        return options.index(DONT_KNOW) if DONT_KNOW in options else UNKNOWN
    named = [i for i, o in enumerate(options) if re.search(rf"(?<![\w.]){re.escape(o.lower())}(?![\w])", low)]
    return named[0] if len(named) == 1 and not letters else NO_ANSWER


@dataclass(frozen=True)
class StageScores:
    """Scores of one task's walks on one path.

    Attributes:
        completion: right final decisions of those started.
        depth: mean number of numbered stages passed.
        consistency: right first decisions among right final ones (not on the guided path, which asks for none).
        alignment: stated values inside the chosen range, of the walks that chose one and came to state it.
    """

    completion: Share
    depth: float | None
    consistency: Share
    alignment: Share


def score(walks: Sequence[Walk]) -> StageScores:
    """Score walks of one path."""
    done = [w for w in walks if w.completed]
    aligned = [w.aligned for w in walks if w.aligned is not None]
    depth = sum(w.depth for w in walks) / len(walks) if walks else None
    begun = [w for w in done if w.path != "guided"]
    first = sum(("init", RIGHT) in w.codes for w in begun)
    return StageScores(Share(len(done), len(walks)), depth, Share(first, len(begun)), Share(sum(aligned), len(aligned)))


def macro(values: Sequence[float | None]) -> float | None:
    """Mean over tasks that have a value."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def printed_score(ones: int, used: int, z: float = 1.96) -> float | None:
    """The score that the paper prints: Wilson's centre times one minus his half-width.

    >>> round(printed_score(50, 100), 3)
    0.452
    """
    if not used:
        return None
    share = ones / used
    spread = 1 + z * z / used
    centre = (share + z * z / (2 * used)) / spread
    half = z * np.sqrt(share * (1 - share) / used + z * z / (4 * used * used)) / spread
    return float(centre * (1 - half))


def _decision(task: str) -> str:
    return f"Is it true that {WORDS[task].claims[1]}?"


def _yes(evidence: Evidence) -> int:
    return 0 if evidence.conclusion.polarity == 1 else 1


def _others(rng: np.random.Generator, task: str, texts: dict[str, str]) -> list[str]:
    names = [name for name in TASKS if name != task]
    return [texts[names[i]] for i in rng.permutation(len(names))[:3]]


def _choice(rng: np.random.Generator, stage: str, text: str, right: str, others: Sequence[str]) -> Question:
    options = [right, *others]
    order = [int(i) for i in rng.permutation(len(options))]
    return Question(stage, text, (*(options[i] for i in order), DONT_KNOW), order.index(0))


def _refined(rng: np.random.Generator, request: Request) -> Question | None:
    text = request.evidence.criterion.text
    numbers = _NUMBER.findall(text or "")
    if text is None or not numbers:
        words = "Nine or more ribs" if text and text.startswith("Nine") else None
        others = [f"{n} or more ribs count as a good breath." for n in ("Seven", "Eleven", "Six")] if words else []
        return _choice(rng, "refined criterion", "Which limit applies?", text or "", others) if others else None
    number = numbers[0]
    digits = len(number.partition(".")[2])
    others = [text.replace(number, f"{float(number) * f:.{digits}f}", 1) for f in (0.5, 1.5, 2.0)]
    return _choice(rng, "refined criterion", "Which limit applies?", text, [o for o in others if o != text])


def _measurement(rng: np.random.Generator, request: Request) -> Question | None:
    value = request.evidence.measurements[0].value
    if isinstance(value, str):
        others = [side for side in ("flat", "right", "left", "right&left") if side != value]
        return _choice(rng, "measurement", "What do you measure?", value, others[:3])
    if not isinstance(value, (int, float)):
        return None
    tolerance = request.evidence.measurements[0].tolerance
    width = 2 * tolerance if tolerance else max(0.4 * abs(value), 2.0 if request.task == "inspiration" else 0.02)
    digits = 5 if request.task == "descending_aorta_tortuous" else 3
    place = int(rng.integers(4))
    low = float(value) - width / 2 - place * width
    bins = [(low + i * width, low + (i + 1) * width) for i in range(4)]
    options = tuple(f"{a:.{digits}f} to {b:.{digits}f}" for a, b in bins)
    side = " of the right side" if request.task == "projection" else ""
    return Question("measurement", f"In which range does the value{side} lie?", (*options, DONT_KNOW), place)


def _range(option: str) -> tuple[float, float] | None:
    ends = [float(text) for text in _NUMBER.findall(option)]
    return (ends[0], ends[1]) if len(ends) == 2 else None
