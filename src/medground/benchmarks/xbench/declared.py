"""Holds what a run file or a model says of training data and names against the data at hand, with counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medground.benchmarks.base import Declared, Entry
from medground.datasets.base import Case, Dataset, names_of, pictures_from
from medground.errors import ConfigError, ModelError, did_you_mean
from medground.tables.ids import forms, plain_id
from medground.tables.join import shown


def hold(entry: Entry, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Yield what a run must say of a model's declarations.

    Args:
        entry: the model.
        datasets: by label.

    Raises:
        ConfigError: none of the patients to leave out is in the data, or a finding is none of any dataset.
    """
    declared, where = entry.declared, f"models ({entry.label})"
    known = [finding for dataset in datasets.values() for finding in dataset.findings]
    for finding in declared.findings:
        if finding not in known:
            raise ConfigError(
                f"{finding!r} is no finding of this run's datasets",
                where=f"{where}.findings",
                expected=", ".join(dict.fromkeys(known)),
                fix=did_you_mean(finding, known),
            )
    names = {name for label, dataset in datasets.items() for name in _names(label, dataset)}
    for name in declared.seen:
        if name not in names:
            near = did_you_mean(name, names)
            yield f"{entry.label} has seen {name!r}, which is no dataset of this run" + (f"; {near}" if near else "")
    if getattr(entry.cls, "reads_elsewhere", False):
        yield from _joined(entry, datasets)
    if declared.excluded:
        yield from _excluded(declared, datasets, entry.label, where)


def _joined(entry: Entry, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Yield what of predictions made elsewhere fits the data; nothing that fits is an error."""
    words, cases = entry.declared.findings, [(d, c) for d in datasets.values() for c in d.cases()]
    localised = [(c.case_id, words.get(f, f)) for d, c in cases for f in d.findings if f in c.regions]
    asked = [(c.case_id, words.get(f, f)) for d, c in cases for f in d.findings]
    yield from (f"{entry.label}: {line}" for line in entry.build().joined(localised, asked))


def _excluded(declared: Declared, datasets: Mapping[str, Dataset], label: str, where: str) -> Iterator[str]:
    for key, patients in declared.excluded.items():
        chosen = {name: data for name, data in datasets.items() if not key or key in _names(name, data)}
        if not chosen:
            raise ConfigError(
                f"{key!r} is no dataset of this run",
                where=f"{where}.exclude_patients",
                expected=", ".join(datasets),
                fix=did_you_mean(key, datasets),
            )
        matched: set[str] = set()
        for name, data in chosen.items():
            cases = data.cases()
            out = [case for case in cases if is_excluded(case, patients)]
            here = {plain_id(i) for case in out for i in (case.patient_id, case.case_id) if i} & patients
            matched |= here
            yield (
                f"{label}: {len(here):,} of {len(patients):,} patients of {declared.files[key]} are in {name}; "
                f"{len(out):,} of {len(cases):,} cases are left out"
            )
        if not matched:
            ids = [case.patient_id or case.case_id for data in chosen.values() for case in data.cases()]
            raise ConfigError(
                "none of the patients to leave out is in the data",
                where=f"{where}.exclude_patients: {declared.files[key]}",
                expected=f"ids such as {shown((i,) for i in dict.fromkeys(ids))} (form {forms(ids)})",
                got=f"{len(patients):,} ids such as {shown((p,) for p in sorted(patients))} (form {forms(patients)})",
                fix="write ids as the dataset does; or leave exclude_patients out, since nobody of the list is here",
            )


def is_excluded(case: Case, patients: frozenset[str]) -> bool:
    """Return whether a case is of one of some patients, whose ids are written one way; a list of cases serves too."""
    return any(plain_id(name) in patients for name in (case.patient_id, case.case_id) if name)


def excluded_of(declared: Declared, *names: str) -> frozenset[str]:
    """Return the patients of a dataset, known by these names, that a model's declaration leaves out."""
    return frozenset().union(*(ids for key, ids in declared.excluded.items() if key in ("", *names)))


def hold_seen(model: str, dataset: str, patients: Iterable[str], cases: Sequence[Case]) -> frozenset[str]:
    """Return the patients that a model says it was trained on, their ids written one way.

    Raises:
        ModelError: none of them is among the cases, and their ids look otherwise: they are written in another way.
    """
    given = frozenset(plain_id(patient) for patient in patients)
    here = {plain_id(case.patient_id) for case in cases if case.patient_id}
    if not given or not here or given & here:
        return given
    looks, expected = forms(given), forms(here)
    if set(looks.split(", ")) & set(expected.split(", ")):
        return given
    raise ModelError(
        f"none of the patients that {model} says it has seen is in {dataset}, and their ids look otherwise",
        expected=f"ids such as {shown((i,) for i in sorted(here))} (form {expected})",
        got=f"{len(given):,} ids such as {shown((i,) for i in sorted(given))} (form {looks})",
        fix="let seen_patients() return ids as the dataset writes them",
    )


def card_for(card: Any, datasets: Mapping[str, Dataset]) -> Any:
    """Return a model's card whose ``seen`` speaks of this run's datasets by their labels.

    A model that has seen the collection that a dataset's pictures are taken from has seen that dataset's pictures.
    """
    seen: Mapping[str, str] = getattr(card, "seen", None) or {}
    told: dict[str, str] = {}
    for label, dataset in datasets.items():
        source = pictures_from(dataset)
        if known := [name for name in (label, *names_of(dataset)) if seen.get(name)]:
            told[label] = seen[known[0]]
        elif source and source in seen:
            told[label] = f"{seen[source]} (of {source}, where its pictures are from)"
    return card if card is None or told == dict(seen) else replace(card, seen=told)


def _names(label: str, dataset: Dataset) -> set[str]:
    source = pictures_from(dataset)
    return {label, *names_of(dataset)} | ({source} if source else set())
