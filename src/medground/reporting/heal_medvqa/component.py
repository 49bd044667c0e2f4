"""The report of HEAL-MedVQA: the sentence of each model, its tables, and pictures before and after a paste."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medground.reporting import plain
from medground.reporting.composition import Composition, Section
from medground.reporting.heal_medvqa.moments import moments
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images

_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")
_SIGNS = {"yes": "yes", "no": "no", "in part": "partly"}


def compose(runs: Sequence[Run], images: Images) -> Composition:
    """Return verdicts in the page's head, the tables of every run, and its specimens of pastes."""
    composition = plain.compose(runs, images)
    named = list(zip(runs, unique_names(runs), strict=True))
    sentences = [
        (_SIGNS.get(verdict.answer, "undecided"), f"{verdict.model}, {verdict.dataset}: {verdict.because}.")
        for run, _ in named
        for verdict in run.summary.verdicts
        if verdict.question == "region"
    ]
    notes = [("Note", note) for run, _ in named for note in run.summary.notes]
    shown = [
        Section(f"pastes-{number}", f"Before and after, {name}", "heal_medvqa/pictures.html", {"pairs": pairs})
        for number, (run, name) in enumerate(named)
        if (pairs := list(specimens(run.data)))
    ]
    models = dict.fromkeys(facts.label for run, _ in named for facts in run.summary.models)
    subject = f"{', '.join(models)} (HEAL-MedVQA)"
    return replace(
        composition,
        subject=subject,
        summary=sentences,
        facts=[*composition.facts, *notes],
        sections=[*composition.sections, *shown],
        moments=[moment for run in runs for moment in moments(specimens(run.data))],
    )


def specimens(data: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield what a summary kept of pastes; pictures that are no PNG in full are left out."""
    for one in data.get("specimens", ()):
        pictures = {key: str(one.get(key) or "") for key in ("before", "after")}
        if not all(_PNG.fullmatch(picture) for picture in pictures.values()):
            continue
        left = one.get("residue_hard")
        residue = "" if left is None else f", {100 * left:.0f} % of the lesion left"
        yield pictures | {
            "title": f"{one.get('finding')} in the {one.get('anatomy')}",
            "model": str(one.get("model")),
            "base": str(one.get("base")),
            "answer": str(one.get("answer")),
            "caption": f"{one.get('model')}: {one.get('base')} before, {one.get('answer')} after{residue}",
        }
