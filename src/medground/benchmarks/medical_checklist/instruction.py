"""Items as training conversations, as in the paper's Table IV: tuned on one type, evaluated on the others.

Each item becomes two conversations (the true caption as A and as B), so that a model cannot learn a letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist.asking import TEMPLATES
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.errors import ConfigError

THERAPEUTIC = "T061"
"""The type that the paper tunes on."""


def conversations(items: Iterable[ChecklistItem], tui: str, template: str = "literal-1") -> Iterator[dict[str, Any]]:
    """Yield one conversation an item of a type and order, in the layout of LLaVA's training files.

    Args:
        items: of a build.
        tui: the type to tune on.
        template: the prompt.
    """
    if tui not in TYPES:
        raise ConfigError("no such semantic type", expected=", ".join(TYPES), got=tui)
    for item in items:
        if item.tui != tui or item.image is None:
            continue
        for side in ("A", "B"):
            a, b = (item.positive, item.negative) if side == "A" else (item.negative, item.positive)
            yield {
                "id": f"{item.item_id}/{side}",
                "image": item.image,
                "conversations": [
                    {"from": "human", "value": "<image>\n" + TEMPLATES[template].format(a=a, b=b)},
                    {"from": "gpt", "value": f"Caption {side}"},
                ],
            }


def held_out(items: Sequence[ChecklistItem], tui: str) -> list[ChecklistItem]:
    """Return the items to evaluate on: other types, and no picture and no paper that was tuned on."""
    tuned = [i for i in items if i.tui == tui]
    clusters, images = {i.cluster for i in tuned}, {i.image for i in tuned}
    return [i for i in items if i.tui != tui and i.cluster not in clusters and i.image not in images]


def write(path: Path, items: Sequence[ChecklistItem], tui: str = THERAPEUTIC, template: str = "literal-1") -> int:
    """Write the conversations of a type as JSON; return how many."""
    held = list(conversations(items, tui, template))
    path.write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return len(held)
