"""How well a trained chat model tells true sentences from false ones, with the picture and with a grey one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from medground.models.networks.chat.tokens import SIZE as WORDS
from medground.training.chat.claims import STATEMENTS, Claims, question
from medground.training.chat.figures import Asker, Figure, balanced, figure
from medground.training.chat.scenes import SIZE
from medground.training.chat.second import SecondRecipe, draw_lessons

_GREY: Final = np.full((SIZE, SIZE), 128, np.uint8)


def sentences(asker: Asker, count: int, seed: int) -> dict[str, Figure]:
    """Return balanced accuracy of sentences by kind and over all; nothing for a model that knows no captions.

    Args:
        asker: around the network.
        count: unseen phantoms, drawn as the second stage's.
        seed: of those phantoms.
    """
    if asker.network.size < WORDS:
        return {}
    lessons = draw_lessons(SecondRecipe(pictures=count, pastes=1, phantom_seed=seed))
    claims = Claims(lessons.table)
    rows: list[tuple[str, bool, bool, bool, int]] = []
    for case in range(count):
        rng = np.random.default_rng([seed, case, 17])
        asked = claims.drawn(case, rng)
        texts = [question(claims.worded(number, rng)) for number, _ in asked]
        if not texts:
            continue
        seen, blind = asker.margins([lessons.scenes.images[case], _GREY], [texts, texts])
        for (number, true), s, b in zip(asked, seen, blind, strict=True):
            rows.append((STATEMENTS[number].kind, true, s > 0, b > 0, case))
    out = {"sentences, all": _balanced(rows, 2), "sentences, all, grey picture": _balanced(rows, 3)}
    for kind in dict.fromkeys(statement.kind for statement in STATEMENTS):
        out[f"sentences, {kind}"] = _balanced([row for row in rows if row[0] == kind], 2)
    return out


def _balanced(rows: Sequence[tuple[str, bool, bool, bool, int]], column: int) -> Figure:
    """Return the mean of the shares of true and false sentences that are read rightly."""
    parts = []
    for true in (True, False):
        of = [row for row in rows if row[1] == true]
        parts.append(figure([row[column] == true for row in of], [row[4] for row in of]))
    return balanced(parts[0], parts[1])
