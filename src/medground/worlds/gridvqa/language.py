"""The closed language of GridVQA-X: what a question says, as text and as structure.

Grammar (arXiv 2606.14740 and its public code)::

    count    How many <targets> [are <list>]?              three relations: "that are <list>"
    exists   Is there any <target> [that is <list>]?
    compare  Are there more <targets> [<list>] than <targets> [<list>]?
    list     <direction> <anchor> ["and" <direction> <anchor>]      three: commas and a final ", and"

A target or an anchor is a colour and a shape, a shape alone, or a colour and the word "object".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from medground.errors import DataError

COLOURS = ("red", "green", "blue", "yellow")
SHAPES = ("circle", "square", "triangle", "pentagon")
DIRECTIONS = ("left of", "right of", "above", "below")
NOUN = "object"

Form = Literal["count", "exists", "compare"]
Type = Literal["A", "SO", "CO", "M", "CMP"]

_HEADS: dict[str, Form] = {"how": "count", "is": "exists", "are": "compare"}
_SHORT = {direction.split()[0]: direction for direction in DIRECTIONS}


@dataclass(frozen=True, slots=True)
class Kind:
    """A description of objects; None leaves an attribute open.

    Attributes:
        colour: one of :data:`COLOURS`, or None.
        shape: one of :data:`SHAPES`, or None.
    """

    colour: str | None = None
    shape: str | None = None

    def matches(self, colour: str, shape: str) -> bool:
        """Return whether an object of this colour and shape fits the description."""
        return self.colour in (None, colour) and self.shape in (None, shape)

    def phrase(self, *, plural: bool = False) -> str:
        """Return the words of the description."""
        noun = (self.shape or NOUN) + ("s" if plural else "")
        return f"{self.colour} {noun}" if self.colour else noun


@dataclass(frozen=True, slots=True)
class Relation:
    """A target lies in this ``direction`` (one of :data:`DIRECTIONS`) of the only object that fits ``anchor``."""

    direction: str
    anchor: Kind

    def phrase(self) -> str:
        """Return direction and anchor as words."""
        return f"{self.direction} {self.anchor.phrase()}"


@dataclass(frozen=True, slots=True)
class Clause:
    """Objects of one description, held by all of their relations."""

    target: Kind
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question: one clause, or two to compare.

    Attributes:
        form: ``count`` and ``exists`` ask about one clause, ``compare`` whether the first has more objects.
        clauses: one, or two for ``compare``.
    """

    form: Form
    clauses: tuple[Clause, ...]

    @property
    def depth(self) -> int:
        """The depth label of the paper: relations to intersect, or for comparisons relations a side plus one."""
        relations = max(len(clause.relations) for clause in self.clauses)
        return relations + 1 if self.form == "compare" else max(1, relations)

    @property
    def type(self) -> Type:
        """Attribute-only, shape-only, colour-only, mixed or comparison."""
        if self.form == "compare":
            return "CMP"
        target = self.clauses[0].target
        if target.colour is None:
            return "SO"
        if target.shape is None:
            return "CO"
        return "M" if self.clauses[0].relations else "A"

    @property
    def anchors(self) -> tuple[Kind, ...]:
        """Every anchor, in the order of the words."""
        return tuple(relation.anchor for clause in self.clauses for relation in clause.relations)

    @property
    def text(self) -> str:
        """The question in words."""
        first = self.clauses[0]
        if self.form == "compare":
            sides = [f"{c.target.phrase(plural=True)} {_join(c.relations)}".rstrip() for c in self.clauses]
            return f"Are there more {sides[0]} than {sides[1]}?"
        listed = _join(first.relations)
        if self.form == "exists":
            return f"Is there any {first.target.phrase()}{' that is ' if listed else ''}{listed}?"
        link = "" if not listed else " that are " if len(first.relations) > 2 else " are "
        return f"How many {first.target.phrase(plural=True)}{link}{listed}?"


def _join(relations: Sequence[Relation]) -> str:
    phrases = [relation.phrase() for relation in relations]
    if len(phrases) > 2:
        return ", ".join(phrases[:-1]) + ", and " + phrases[-1]
    return " and ".join(phrases)


def bare(word: str) -> str:
    """Return a word of a question without punctuation, capital and plural: ``"circles?"`` is ``"circle"``."""
    plain = word.strip(",.?").lower()
    return plain[:-1] if plain[:-1] in (*SHAPES, NOUN) else plain


@lru_cache(maxsize=65536)
def parse(text: str) -> Question:
    """Return the structure of a question.

    Args:
        text: a question of the grammar above, exactly.

    Raises:
        DataError: the text is not of the grammar.
    """
    question = read(re.findall(r"[a-z]+", text.lower()))
    if question.text != text:
        raise DataError(
            "not a question of the GridVQA-X grammar",
            expected=f"for instance {question.text!r}",
            got=repr(text),
            fix="ask with medground.worlds.gridvqa.language.Question(...).text",
        )
    return question


def read(words: Iterable[str], *, relations: bool = True) -> Question:
    """Return what remains of a question whose words may have been removed or replaced.

    A description ends with its noun, or where an attribute would come twice; further attributes before the next
    direction say nothing. The first description is the target's, one after a direction its anchor's. A missing first
    word leaves a count ("is" and "are" ask only with a capital, or before "there"), a missing "than" a single clause,
    which is compared with all objects.

    Args:
        words: words in order, without regard to punctuation.
        relations: False forgets the relations: what stands after a direction is no target, and nothing else.
    """
    form, parts = functions(words)
    sides: list[list[_Description]] = [[_Description()]]
    for part in parts:
        while part.side >= len(sides):
            sides.append([_Description()])
        if part.use == "direction":
            sides[part.side].append(_Description(_SHORT[part.word]))
        elif part.use == "attribute":
            sides[part.side][-1].add(part.word)
    clauses = [
        Clause(side[0].kind, tuple(Relation(str(d.direction), d.kind) for d in side[1:]) if relations else ())
        for side in sides
    ]
    if form == "compare" and len(clauses) == 1:
        clauses.append(Clause(Kind()))
    return Question(form, tuple(clauses))


Use = Literal["", "head", "attribute", "direction"]


@dataclass(frozen=True, slots=True)
class Part:
    """What one word of a question does.

    Attributes:
        word: without punctuation, capital and plural.
        use: ``head`` gives the form, ``direction`` opens a relation, ``attribute`` describes, the rest says nothing.
        side: 0, or 1 after "than".
        relation: 0 for the target of its side, else the number of its relation.
    """

    word: str
    use: Use
    side: int
    relation: int


def functions(words: Iterable[str]) -> tuple[Form, list[Part]]:
    """Return the form of a question and what each of its words does; see :func:`read`."""
    raw = list(words)
    plain = [bare(word) for word in raw]
    form, headed = _form(raw, plain)
    side, relation, described, closed = 0, 0, False, False
    parts = []
    for i, word in enumerate(plain):
        use: Use = ""
        if i == 0 and headed:
            use = "head"
        elif word == "than" and form == "compare" and side == 0:
            side, relation, described, closed = 1, 0, False, False
        elif word in _SHORT:
            relation, described, closed, use = relation + 1, False, False, "direction"
        elif word in COLOURS and not closed:
            use, closed, described = ("", True, True) if described else ("attribute", False, True)
        elif word in SHAPES and not closed:
            use, closed = "attribute", True
        elif word == NOUN:
            closed = True
        parts.append(Part(word, use, side, relation))
    return form, parts


def _form(raw: Sequence[str], plain: Sequence[str]) -> tuple[Form, bool]:
    """Return the form of a question and whether its first word says so."""
    if not plain or plain[0] not in _HEADS:
        return "count", False
    asks = plain[0] == "how" or raw[0][:1].isupper() or plain[1:2] == ["there"]
    return (_HEADS[plain[0]], True) if asks else ("count", False)


@dataclass(slots=True)
class _Description:
    """A description while it is read."""

    direction: str | None = None
    colour: str | None = None
    shape: str | None = None

    def add(self, word: str) -> None:
        """Take an attribute."""
        if word in COLOURS:
            self.colour = word
        else:
            self.shape = word

    @property
    def kind(self) -> Kind:
        return Kind(self.colour, self.shape)
