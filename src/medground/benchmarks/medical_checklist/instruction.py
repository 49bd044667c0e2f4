"""Items as training conversations, as in the paper's Table IV: tuned on one type, evaluated on the others.

Each item becomes two conversations (the true caption as A and as B), so that a model cannot learn a letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist import items as item_files
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


def export(file: Path, out: Path, *, semantic_type: str = THERAPEUTIC, template: str = "literal-1") -> str:
    """Write the items of one type as training conversations, and those of the others as a build to evaluate on.

    Args:
        file: folder of a build.
        out: new folder: ``train.json`` and ``held_out/``, which a run file names as ``build``.
        semantic_type: what is tuned on; the paper's is T061, therapeutic procedures.
        template: of the prompt.

    Returns:
        What was written, in a sentence.

    Raises:
        ConfigError: there is no such type or prompt, the build has no item of it with a picture, or ``out`` exists.
        DataError: the folder holds no build.
    """
    if template not in TEMPLATES:
        raise ConfigError("no such prompt", where="--template", expected=", ".join(TEMPLATES), got=template)
    if out.exists():
        raise ConfigError("the folder is there already", where=out, fix="name another one")
    items = item_files.read(file / "items.jsonl")
    rest = held_out(items, semantic_type)
    if not any(True for _ in conversations(items, semantic_type, template)):
        types = sorted({i.tui for i in items if i.image is not None})
        raise ConfigError(
            "the build has no item of this type with a picture", where="--semantic-type", expected=types,
            got=semantic_type,
        )  # fmt: skip
    (out / "held_out").mkdir(parents=True)
    number = write(out / "train.json", items, semantic_type, template)
    item_files.write(out / "held_out" / "items.jsonl", rest)
    report = json.loads((file / "build.json").read_text("utf-8")) | {"tuned_on": semantic_type, "items": len(rest)}
    text = json.dumps(report, indent=1, sort_keys=True) + "\n"
    (out / "held_out" / "build.json").write_text(text, encoding="utf-8")
    lost = len(items) - len(rest) - sum(i.tui == semantic_type for i in items)
    return (
        f"{number} conversations in {out / 'train.json'}; {len(rest)} items held out in {out / 'held_out'}, {lost} "
        f"left out because they share a picture or a paper; pictures: {file}"
    )
