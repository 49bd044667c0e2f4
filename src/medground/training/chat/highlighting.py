"""What highlighting does to a trained chat model: the right region, a located one, and a wrong one as the control.

The pair with a known answer is the shortcut twin: highlighted on the right region its answers must begin to follow it,
on a wrong one they must fall apart. On a model that already reads the region nothing need be gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message
from medground.models.chat.backbone import Backbone
from medground.models.chat.decoding.base import Decoding, Plain
from medground.models.chat.decoding.loba import LobaDecoding
from medground.models.chat.engine import Engine
from medground.models.networks.reference.vocabulary import ANATOMIES
from medground.training.chat import trials
from medground.training.chat.figures import Figure, balanced, figure
from medground.training.chat.sampling import HOLDS
from medground.training.chat.trials import Case, Closed

Masks = Literal["true", "located", "wrong"]

SETTINGS: Final[tuple[tuple[str, Masks, Decoding], ...]] = (
    ("plain", "true", Plain()),
    ("language 2", "true", LobaDecoding(vision=0, language=2, alpha=0)),
    ("language 4", "true", LobaDecoding(vision=0, language=4, alpha=0)),
    ("language 6", "true", LobaDecoding(vision=0, language=6, alpha=0)),
    ("vision 2", "true", LobaDecoding(vision=2, language=0, alpha=0)),
    ("both 2", "true", LobaDecoding(alpha=0)),
    ("both 2, contrast 0.3", "true", LobaDecoding(alpha=0.3)),
    ("language 6, contrast 0.3", "true", LobaDecoding(vision=0, language=6, alpha=0.3)),
    ("both 2, contrast 0.3", "located", LobaDecoding(alpha=0.3)),
    ("language 6", "located", LobaDecoding(vision=0, language=6, alpha=0)),
    ("language 6", "wrong", LobaDecoding(vision=0, language=6, alpha=0)),
)
"""Name, whose masks, and how: betas are additive."""


def highlighting(backbone: Backbone, cases: Sequence[Case], most: int = 160) -> dict[str, Figure]:
    """Return balanced accuracy and flips of the anatomy swap under every setting.

    Args:
        backbone: the model.
        cases: unseen phantoms.
        most: closed questions, a sample of the balanced ones.
    """
    everything = trials.closed(cases)
    order = np.random.default_rng(11).permutation(len(everything))[:most]
    asked = [everything[i] for i in sorted(order.tolist())]
    valid = np.stack([case.share for case in cases]).max(axis=0) > HOLDS
    out: dict[str, Figure] = {}
    for name, masks, decoding in SETTINGS:
        engine = Engine(backbone, decoding)
        replies = _yes(engine, cases, [(q.case, q.region, q.text) for q in asked], masks)
        pairs = list(zip(asked, replies, strict=True))
        yes = figure([s for q, s in pairs if q.gold], [q.case for q, _ in pairs if q.gold])
        no = figure([not s for q, s in pairs if not q.gold], [q.case for q, _ in pairs if not q.gold])
        key = f"{name}, {masks} masks" if decoding.needs_region else name
        out[f"{key}: balanced accuracy"] = balanced(yes, no)
        swapped = _swapped([q for q, s in pairs if q.gold and s], cases, valid)
        flips = [not s for s in _yes(engine, cases, swapped, masks)]
        out[f"{key}: anatomy swap, flips"] = figure(flips, [case for case, _, _ in swapped])
    return out


def _swapped(
    positives: Sequence[Closed], cases: Sequence[Case], valid: NDArray[np.bool_]
) -> list[tuple[int, int, str]]:
    """Return case, region and question of every anatomy swap."""
    rows = []
    for q in positives:
        text = trials.swaps(q, cases[q.case], valid).anatomy
        if text is not None:
            rows.append((q.case, next(i for i, name in enumerate(ANATOMIES) if f" {name} " in text), text))
    return rows


def _yes(engine: Engine, cases: Sequence[Case], asked: Sequence[tuple[int, int, str]], masks: Masks) -> list[bool]:
    """Return whether each question is answered with yes."""
    if not asked:
        return []
    conversations = [(Message("user", text, (_picture(cases[case]),)),) for case, _, text in asked]
    regions: list[Any] | None = None
    if masks != "located":
        shift = 0 if masks == "true" else 3  # the same third of the other lung, or a lung's third for heart and aorta
        numbers = [(region + shift) % 6 if shift else region for _, region, _ in asked]
        regions = [cases[case].drawing.anatomies[ANATOMIES[n]] for (case, _, _), n in zip(asked, numbers, strict=True)]
    replies = engine.reply(conversations, GenerationOptions(max_new_tokens=2), regions)
    return [reply.text == "yes" for reply in replies]


def _picture(case: Case) -> Radiograph:
    return Radiograph(case.drawing.pixels.astype(np.float32) / np.float32(255))
