"""``medground validate --sheet``: some cases of every dataset of a run file, as decoded, with regions and maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from medground.datasets.base import Case
from medground.datasets.plausible import spread
from medground.errors import DataError, MedgroundError
from medground.imaging.reading import Radiograph, read_radiograph
from medground.imaging.regions import Region
from medground.models.base import Fitted, Grounder
from medground.models.capabilities import capabilities_of
from medground.reporting.sheet import Overlay, SheetPart, Tile, overlay, sheet, tile
from medground.session import Session

LOCALISED, OTHERS = 9, 3
"""Cases of a dataset that are shown: with regions, and without."""
MAPPED = 3
"""Cases of a dataset that models are asked about."""


def write_sheet(session: Session, target: Path) -> list[str]:
    """Write the contact sheet of a run file.

    Args:
        session: the run file, assembled.
        target: the page that is written.

    Returns:
        What could not be shown, in lines.

    Raises:
        OSError: the page cannot be written.
    """
    grounders, problems = _grounders(session.models)
    parts = []
    for entry in session.datasets:
        try:
            parts.append(_part(entry, grounders, problems))
        except MedgroundError as error:  # said in full by the check of its tables
            problems.append(f"dataset {entry.label} cannot be shown: {error.what}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(sheet(session.run.name, parts), encoding="utf-8")
    return problems


def _grounders(entries: Sequence[Any]) -> tuple[dict[str, Grounder], list[str]]:
    """Build the models that say where findings are; what cannot be built is a line of the result."""
    built: dict[str, Grounder] = {}
    problems: list[str] = []
    for entry in entries:
        if "ground" not in capabilities_of(entry.cls):
            continue
        try:
            built[entry.label] = entry.build()
        except MedgroundError as error:
            problems.append(f"{entry.label}: {error.what}")
    return built, problems


def _part(entry: Any, grounders: Mapping[str, Grounder], problems: list[str]) -> SheetPart:
    dataset = entry.build()
    cases = list(dataset.cases())
    localised = spread([case for case in cases if case.regions], LOCALISED)
    others = spread([case for case in cases if not case.regions], OTHERS)
    for model in grounders.values():
        if isinstance(model, Fitted):
            model.fit(cases, dataset.findings)
    asked = {case.case_id for case in spread(localised or others, MAPPED)}
    tiles = [
        _tile(case, grounders if case.case_id in asked else {}, list(dataset.findings), problems)
        for case in [*localised, *others]
    ]
    free = getattr(entry.card, "redistributable", False)
    terms = "" if free else "These pictures may not be passed on: keep this page to yourself."
    return SheetPart(entry.label, terms, len(cases), tiles)


def _tile(case: Case, grounders: Mapping[str, Grounder], findings: Sequence[str], problems: list[str]) -> Tile:
    try:
        image = read_radiograph(case.image, case_id=case.case_id, patient_id=case.patient_id)
    except DataError as error:
        problems.append(f"{case.case_id}: {error.what}")
        return Tile(case.case_id, (1, 1), "", (), problem=error.what)
    regions, notes = _regions(case)
    maps = [
        one for label, model in grounders.items() for one in _maps(label, model, image, regions, findings, problems)
    ]
    return tile(replace(image, case_id=case.case_id), regions, maps, case.labels, notes)


def _regions(case: Case) -> tuple[dict[str, Region], list[str]]:
    regions: dict[str, Region] = {}
    notes: list[str] = []
    for finding in case.regions:
        try:
            regions[finding] = case.regions[finding]
        except DataError as error:
            notes.append(f"{finding}: {error.what}")
    return regions, notes


def _maps(
    label: str,
    model: Grounder,
    image: Radiograph,
    regions: Mapping[str, Region],
    findings: Sequence[str],
    problems: list[str],
) -> Iterator[Overlay]:
    """Yield the model's maps of the findings that are localised in a case; what fails is a line of the result."""
    try:
        prediction = model.predict([image], list(findings))
        if prediction.saliency is None:
            return
        for finding in regions:
            place = findings.index(finding)
            saliency = np.asarray(prediction.saliency[0][place])
            if (0, place) in prediction.absent or saliency.ndim != 2 or not np.isfinite(saliency).all():
                problems.append(f"{label}, {image.case_id}, {finding}: no map")
            else:
                yield overlay(label, finding, saliency, prediction.geometry[0])
    except MedgroundError as error:
        problems.append(f"{label}, {image.case_id}: {error.what}")
    except Exception as error:  # a user's own model can raise anything, and the other tiles are drawn
        problems.append(f"{label}, {image.case_id}: {type(error).__name__}: {str(error)[:200]}")
