"""Which datasets share their pictures: pooled statistics over them would count patients twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from medground.datasets.base import Dataset, pictures_from


@dataclass(frozen=True)
class SharedSource:
    """Datasets whose pictures come from one collection.

    Attributes:
        source: the collection, by the name of its dataset.
        datasets: names of the datasets, in the order given.
        patients: how many patients certainly occur in several of them; those whose ids cannot be compared are not
            among them, so that 0 is no proof that there are none.
    """

    source: str
    datasets: tuple[str, ...]
    patients: int

    def __str__(self) -> str:
        known = f"at least {self.patients:,} patients occur" if self.patients else "patients may occur"
        return (
            f"{', '.join(self.datasets)} take their pictures from {self.source}: {known} more than once, so statistics "
            "pooled over them count patients twice and their intervals are too narrow"
        )


def shared_sources(datasets: Sequence[Dataset]) -> list[SharedSource]:
    """Return every collection that several of the datasets take their pictures from.

    Ids are compared as they are: RSNA's are those of the NIH only where its option ``crossref`` is given; ChestX-Det
    and SIIM name no patients of the NIH.
    """
    groups: dict[str, list[Dataset]] = defaultdict(list)
    for dataset in datasets:
        groups[pictures_from(dataset) or dataset.name].append(dataset)
    return [
        SharedSource(source, tuple(d.name for d in group), _common_patients(group))
        for source, group in groups.items()
        if len(group) > 1
    ]


def _common_patients(group: Sequence[Dataset]) -> int:
    """Count patients that several datasets of one source name by the same id."""
    met: dict[str, set[int]] = defaultdict(set)
    for place, dataset in enumerate(group):
        for case in dataset.cases():
            if case.patient_id is not None:
                met[case.patient_id].add(place)
    return sum(len(places) > 1 for places in met.values())
