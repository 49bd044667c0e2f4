"""Repliers that know nothing of the picture: what their scores are worth is printed beside every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from medground.benchmarks.cxreasondial.agent import plan_of
from medground.identity import fingerprint_of
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply


class Parrot:
    """Says again what the last assistant turn of the history said: what copying alone is worth."""

    name: ClassVar[str] = "baseline_parrot"
    info: ClassVar[ModelInfo] = ModelInfo(title="Repeats the history", kind="baseline", licence="part of medground")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply"})

    def fingerprint(self) -> str:
        """Nothing but its rule."""
        return fingerprint_of("baseline_parrot/1")

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Repeat everything that the assistant has said so far; nothing at the first turn."""
        del options
        return [Reply(" ".join(m.text for m in c if m.role == "assistant")) for c in conversations]


class Refuser:
    """Declines every turn in words."""

    name: ClassVar[str] = "baseline_refuser"
    info: ClassVar[ModelInfo] = ModelInfo(title="Declines", kind="baseline", licence="part of medground")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply"})

    def fingerprint(self) -> str:
        """Nothing but its rule."""
        return fingerprint_of("baseline_refuser/1")

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Decline."""
        del options
        return [Reply("I'm sorry, but I can't determine this from the image provided.") for _ in conversations]


class AllNormal:
    """Calls every film normal, with one typical value a task, whatever the picture."""

    name: ClassVar[str] = "baseline_all_normal"
    info: ClassVar[ModelInfo] = ModelInfo(title="Everything is normal", kind="baseline", licence="part of medground")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply"})

    def fingerprint(self) -> str:
        """Nothing but its words."""
        return fingerprint_of("baseline_all_normal/1", NORMAL)

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """Say what is normal about whatever the last message asks for."""
        del options
        return [Reply(" ".join(NORMAL[task] for task, _ in sorted(plan_of(c))) or "Fine.") for c in conversations]


#: What a radiologist would say of a normal film without looking at it.
NORMAL: Mapping[str, str] = {
    "inclusion": "The smallest margins are 0.050 at the apices, 0.050 beside the lateral ribs and 0.150 below the "
    "costophrenic angles. Needed are 0.01 at the apex, 0.005 at the side and 0.09 at the bottom. The lungs are fully "
    "included.",
    "inspiration": "Right posterior rib 10 crosses the right hemidiaphragm. Nine or more ribs count as a good breath. "
    "Inspiration is good.",
    "rotation": "The clavicle distance ratio is 0.80. A ratio of at least 0.4 means no rotation. The patient is not "
    "rotated.",
    "projection": "The scapula overlaps the lung by 0.10 on the right and 0.10 on the left. A scapular overlap of at "
    "least 0.3 on both sides indicates AP; below it on both sides, PA. This is a PA projection.",
    "cardiomegaly": "The cardiothoracic ratio is 0.45. On PA films the limit is 0.50. There is no cardiomegaly.",
    "mediastinal_widening": "The mediastinal ratio is 0.20. On PA films the cut-off is 0.25. The mediastinum is not "
    "widened.",
    "carina_angle": "The carina angle is 60 degrees. The normal range is 40 to 80 degrees. The carina angle is normal.",
    "trachea_deviation": "The trachea touches the midline on most levels. A level counts only if the whole trachea "
    "lies beyond the vertebral line. The trachea is not deviated.",
    "aortic_knob_enlargement": "The aortic knob is 1.80 times as wide as the trachea. It is called enlarged from 2.5 "
    "tracheal widths. The aortic knob is not enlarged.",
    "ascending_aorta_enlargement": "A share of 0.00 of the ascending aorta lies beyond the line. Enlargement is called "
    "when a share from 0.1 up to 0.3 lies beyond the line; none beyond it is normal. The ascending aorta is not "
    "enlarged.",
    "descending_aorta_enlargement": "The descending aorta is 1.50 times as wide as the trachea. The limit is 2.5 "
    "tracheal widths. The descending aorta is not enlarged.",
    "descending_aorta_tortuous": "The mean curvature of the descending aortic edge is 0.0003. From 0.0009 the course "
    "is called tortuous. The descending aorta is not tortuous.",
}
