"""How one picture and its captions are put to a model: matchers see pictures and captions, chat models a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.requests import Ask, Conversation
from medground.errors import DataError
from medground.imaging.colour import read_picture
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, Prepared, Preparing

Control = Literal["blank", "shuffled"]
Order = Literal["both", "single"]
Way = Literal["match", "choose", "reply"]
Asked = Literal["auto", "match", "choose", "reply"]

TEMPLATES: Mapping[str, str] = {
    "literal-1": (
        "You are given one medical image and two captions. Decide which caption describes the image more accurately. "
        "Answer with exactly one of these two answers and nothing else: Caption A or Caption B.\n"
        "The image is shown above.\n"
        "Caption A: {a}\n"
        "Caption B: {b}"
    )
}
"""Prompts by name and version; the order of their parts is the paper's, the wording is ours."""

CHOICES = ("Caption A", "Caption B")


@dataclass(frozen=True)
class Group:
    """One picture with all items that are made of its captions: asked together, so that it is encoded once."""

    image: Path
    other: Path | None
    items: tuple[ChecklistItem, ...]

    @property
    def captions(self) -> tuple[str, ...]:
        """Every different caption, in order: equal ones are encoded once."""
        return tuple(dict.fromkeys(c for item in self.items for c in (item.positive, item.negative)))


@dataclass(frozen=True)
class Pictures:
    """A picture and what stands in its place for the controls."""

    main: Radiograph | Prepared
    blank: Radiograph | Prepared | None
    shuffled: Radiograph | Prepared | None

    def named(self) -> list[tuple[str, Radiograph | Prepared]]:
        """Return the pictures that are asked about, the main one first."""
        given = [("main", self.main), ("blank", self.blank), ("shuffled", self.shuffled)]
        return [(name, picture) for name, picture in given if picture is not None]


def load(group: Group, controls: Sequence[Control]) -> Pictures:
    """Decode the picture of a group and make its controls.

    Raises:
        ImageError: the picture cannot be decoded.
        DataError: it is not there.
    """
    if not group.image.is_file():
        raise DataError("the picture of an item is missing", where=group.image)
    main = read_picture(group.image, case_id=group.items[0].caption_id, patient_id=group.items[0].cluster)
    blank = blank_like(main) if "blank" in controls else None
    other = read_picture(group.other) if "shuffled" in controls and group.other else None
    return Pictures(main, blank, replace(other, case_id=f"{main.case_id} shuffled") if other else None)


def prepared(pictures: Pictures, model: Any) -> Pictures:
    """Return pictures as a matcher takes them: what it does to pixels before its network is done here."""
    if not isinstance(model, Preparing):
        return pictures
    return Pictures(**{name: picture and model.prepare(picture) for name, picture in vars(pictures).items()})


def blank_like(picture: Radiograph) -> Radiograph:
    """Return a picture of the same size that is grey throughout, for the blind twin."""
    return replace(
        picture,
        pixels=np.full_like(picture.pixels, 0.5),
        colour=None,
        source="blank",
        case_id=f"{picture.case_id} blank",
    )


def converse(group: Group, pictures: Pictures, way: Way, order: Order, template: str) -> Conversation[dict[str, Any]]:
    """Ask everything about one picture in one round; the notes say which answer is which.

    Args:
        group: the picture's items.
        pictures: decoded.
        way: ``match`` (one request a picture), ``choose`` or ``reply`` (one a picture, item and order).
        order: ``both``, or ``single``: the side that the item was built with (the paper's).
        template: name of the prompt.
    """
    asks: list[Ask] = []
    plan: list[dict[str, Any]] = []
    for name, picture in pictures.named():
        if way == "match":
            asks.append(Ask("model", "match", {"image": picture, "captions": group.captions}))
            plan.append({"picture": name})
            continue
        for item in group.items:
            for first in ("A", "B") if order == "both" else (item.side,):
                asks.append(_chat(picture, item, first, way, template))
                plan.append({"picture": name, "item": item.item_id, "side": first})
    yield asks
    return {"plan": plan, "way": way}


def _chat(picture: Any, item: ChecklistItem, side: str, way: Way, template: str) -> Ask:
    a, b = (item.positive, item.negative) if side == "A" else (item.negative, item.positive)
    conversation = (Message("user", TEMPLATES[template].format(a=a, b=b), (picture,)),)
    key = {"item": item.item_id, "side": side}
    if way == "choose":
        return Ask("model", "choose", {"conversation": conversation, "choices": CHOICES}, key)
    return Ask("model", "reply", {"conversation": conversation, "options": GenerationOptions()}, key)
